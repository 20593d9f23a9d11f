"""`gantry nsaddr`: serve the addresses of name servers over HTTP, as clients look them up."""

import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click

PATH = "/rocketmq/nsaddr"


@click.command("nsaddr")
@click.argument("addresses", required=False)
@click.option("--file", "source", type=click.Path(), help="Read the addresses from this file.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option(
    "--port",
    default=8080,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="0 picks a free one.",
)
def nsaddr(addresses: str | None, source: str | None, host: str, port: int) -> None:
    """Serve ADDRESSES ("h1:9876;h2:9876") at /rocketmq/nsaddr.

    With --file the addresses can change while clients run: they ask every 2 minutes.
    """
    if (addresses is None) == (source is None):
        raise click.UsageError("give either ADDRESSES or --file")

    def current() -> str:
        return addresses if addresses is not None else Path(str(source)).read_text().strip()

    with ThreadingHTTPServer((host, port), _handler(current)) as server:
        print(f"http://{host}:{server.server_address[1]}{PATH}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


def _handler(current: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.split("?")[0].startswith(PATH):
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            try:
                text = current()
            except OSError as error:
                print(f"error: {error}", file=sys.stderr)
                self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR)
                return
            data = f"{text}\n".encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Log nothing: every client asks every 2 minutes."""

    return Page
