"""Logging of a server: lines as text or JSON in a rotating file, written off the event loop."""

import json
import logging
import logging.handlers
import os
import queue
import sys
from collections.abc import Collection
from datetime import datetime
from typing import Final

from gantrymq.base.telemetry_settings import LOG_KEYS, TelemetrySettings, levels_of

FORMAT: Final = "%(asctime)s %(levelname)s %(name)s - %(message)s"
FILE_BYTES_MAX: Final = 64 * 1024 * 1024
FILES_KEPT: Final = 10
LINES_WAITING_MAX: Final = 10_000
PACKAGE: Final = "gantrymq"

_parts: set[str] = set()
"""Loggers that have a level of their own."""


class _TextLines(logging.Formatter):
    """Escapes control characters: a name from the network must not look like a line of its own."""

    def __init__(self) -> None:
        super().__init__(FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        record.message = record.getMessage()
        if record.exc_text:
            record.message += "\n" + record.exc_text
        record.asctime = self.formatTime(record)
        if not record.message.isprintable():
            shown = (c if c.isprintable() else repr(c)[1:-1] for c in record.message)
            record.message = "".join(shown)
        return self.formatMessage(record)


class _JsonLines(logging.Formatter):
    """One object for each line: time, level, logger, message, and the traceback of an error."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).astimezone()
        line = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_text:
            line["exception"] = record.exc_text
        return json.dumps(line, ensure_ascii=False)


class _DroppingHandler(logging.handlers.QueueHandler):
    """Drops a line if the queue is full, so that it never blocks the event loop."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Put the arguments into the message now: they may change before the line is written."""
        text = record.getMessage()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        found = logging.makeLogRecord(record.__dict__)
        found.msg, found.args, found.exc_info = text, None, None
        return found

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            return


def start_logging(
    directory: str, name: str, settings: TelemetrySettings
) -> logging.handlers.QueueListener:
    """Log to `directory/name`, or to stderr when no directory is given. Stop the result at exit."""
    target: logging.Handler
    if directory:
        os.makedirs(directory, exist_ok=True)
        target = logging.handlers.RotatingFileHandler(
            f"{directory}/{name}",
            maxBytes=FILE_BYTES_MAX,
            backupCount=FILES_KEPT,
            encoding="utf-8",
            errors="backslashreplace",  # a name from the network may have halves of characters
        )
    else:
        target = logging.StreamHandler(sys.stderr)
    target.setFormatter(_JsonLines() if settings.log_format == "json" else _TextLines())
    waiting: queue.Queue[logging.LogRecord] = queue.Queue(LINES_WAITING_MAX)
    listener = logging.handlers.QueueListener(waiting, target)
    listener.start()
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.handlers = [_DroppingHandler(waiting)]
    set_levels(settings)
    return listener


def set_levels(settings: TelemetrySettings) -> None:
    """Log from the levels of the settings on. Loggers of other packages keep theirs."""
    logging.getLogger(PACKAGE).setLevel(settings.log_level)
    wanted = levels_of(settings)
    for part in _parts - wanted.keys():
        logging.getLogger(f"{PACKAGE}.{part}").setLevel(logging.NOTSET)
    for part, level in wanted.items():
        logging.getLogger(f"{PACKAGE}.{part}").setLevel(level)
    _parts.clear()
    _parts.update(wanted)


def levels_changed(settings: TelemetrySettings, keys: Collection[str]) -> None:
    """Take over settings that a request changed, if they are about logs."""
    if not set(LOG_KEYS).isdisjoint(keys):
        set_levels(settings)
