"""Runs a console on a port."""

import asyncio
import contextlib
import socket
import ssl
from dataclasses import replace
from typing import Any, Final

import uvicorn

from gantrymq.base.errors import ConfigError
from gantrymq.base.tls.files import TlsFiles
from gantrymq.base.tls.settings import TlsParty, TlsSettings
from gantrymq.console.app import make_app
from gantrymq.console.settings import ConsoleSettings

KEEP_ALIVE_SECONDS: Final = 30
STOP_SECONDS_MAX: Final = 3


class _Config(uvicorn.Config):
    """With a TLS context of ours, which has the certificate that lies in the files now."""

    def __init__(self, app: Any, context: ssl.SSLContext | None, **others: Any) -> None:
        super().__init__(app, **others)
        self._context = context

    def load(self) -> None:
        super().load()
        self.ssl = self._context


class _QuietServer(uvicorn.Server):
    """Leaves the signals of the process to whoever runs the console."""

    def capture_signals(self) -> contextlib.AbstractContextManager[None]:  # type: ignore[override]
        return contextlib.nullcontext()


class ConsoleServer:
    """A console that listens: `async with ConsoleServer(settings) as console: console.url`."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self._settings = settings
        context = _tls_context(settings)
        self._socket = _listening(settings.host, settings.port)
        config = _Config(
            make_app(replace(settings, port=self._socket.getsockname()[1])),
            context,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=STOP_SECONDS_MAX,
        )
        self._server = _QuietServer(config)
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        host, port = self._socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if self._settings.tls_certificate else 'http'}://{shown}:{port}"

    async def __aenter__(self) -> "ConsoleServer":
        self._task = asyncio.create_task(self._server.serve([self._socket]))
        while not self._server.started:
            if self._task.done():
                self._task.result()
                raise ConfigError("the console did not start")
            await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.should_exit = True
        if self._task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._task


def _tls_context(settings: ConsoleSettings) -> ssl.SSLContext | None:
    """None without a certificate; raises ConfigError."""
    if settings.tls_certificate is None:
        return None
    own = TlsParty(
        cert_path=str(settings.tls_certificate),
        key_path=str(settings.tls_key),
        key_password=settings.tls_key_password,
    )
    return TlsFiles(TlsSettings(server=own)).lasting_context()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise ConfigError(
            f"the console cannot listen on {host}:{port}: {error.strerror}; choose another port"
        ) from error
    return made
