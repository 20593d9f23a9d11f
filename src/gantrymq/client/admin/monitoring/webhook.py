"""Posts JSON to a URL, off the event loop."""

import asyncio
import base64
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

from gantrymq.base.errors import ConfigError
from gantrymq.client.core.errors import ClientError

POST_SECONDS_MAX: Final = 10.0


class WebhookFailed(ClientError):
    """The URL was not reached, or did not answer with success."""


class Webhook:
    """One URL; credentials in it are never shown."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"{url!r} is no URL to post to: write http://HOST/PATH or https://")
        host = parts.netloc.rpartition("@")[2]
        self._url = urlunsplit((parts.scheme, host, parts.path, parts.query, ""))
        self.shown = urlunsplit((parts.scheme, host, parts.path, "", ""))
        self._headers = {"Content-Type": "application/json; charset=utf-8"}
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"

    async def post(self, value: Mapping[str, Any]) -> None:
        """Post one JSON object; raises WebhookFailed."""
        body = json.dumps(value, ensure_ascii=False).encode()
        await asyncio.get_running_loop().run_in_executor(None, self._post, body)

    def _post(self, body: bytes) -> None:
        request = urllib.request.Request(self._url, body, self._headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=POST_SECONDS_MAX):
                return
        except urllib.error.HTTPError as error:
            raise WebhookFailed(f"{self.shown} answered {error.code} {error.reason}") from error
        except (OSError, ValueError) as error:
            raise WebhookFailed(f"{self.shown} cannot be reached: {error}") from error
