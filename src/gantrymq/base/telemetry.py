"""Logging to a rotating file, written off the event loop."""

import logging
import logging.handlers
import os
import queue
import sys

FORMAT = "%(asctime)s %(levelname)s %(name)s - %(message)s"
FILE_BYTES_MAX = 64 * 1024 * 1024
FILES_KEPT = 10
LINES_WAITING_MAX = 10_000


class _OneLine(logging.Formatter):
    """Escapes control characters: a name from the network must not look like a line of its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        if not record.message.isprintable():
            shown = (c if c.isprintable() else repr(c)[1:-1] for c in record.message)
            record.message = "".join(shown)
        return super().formatMessage(record)


class _DroppingHandler(logging.handlers.QueueHandler):
    """Drops a line if the queue is full, so that it never blocks the event loop."""

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            return


def start_logging(directory: str, name: str) -> logging.handlers.QueueListener:
    """Log to `directory/name`, or to stderr when no directory is given. Stop the result at exit."""
    target: logging.Handler
    if directory:
        os.makedirs(directory, exist_ok=True)
        target = logging.handlers.RotatingFileHandler(
            f"{directory}/{name}", maxBytes=FILE_BYTES_MAX, backupCount=FILES_KEPT
        )
    else:
        target = logging.StreamHandler(sys.stderr)
    target.setFormatter(_OneLine(FORMAT))
    waiting: queue.Queue[logging.LogRecord] = queue.Queue(LINES_WAITING_MAX)
    listener = logging.handlers.QueueListener(waiting, target)
    listener.start()
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.handlers = [_DroppingHandler(waiting)]
    return listener
