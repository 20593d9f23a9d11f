"""Endpoints as HTTP: values from path, query and body become the question, the answer is JSON."""

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from gantrymq.base.errors import GantryError
from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import PREFIX, Download, Endpoint, Question
from gantrymq.console.errors import BadInput, status_of

log = logging.getLogger(__name__)

BODY_BYTES_MAX: Final = 8 * 1024 * 1024
"""Of a request: a message with its properties."""
JSON: Final = "application/json"
WITH_BODY: Final = ("POST", "PUT")

Asker = Callable[[Request], Ask]
Q = TypeVar("Q", bound=Question)


class Trouble(msgspec.Struct, frozen=True):
    """What an endpoint answers when it cannot do what was asked."""

    error: str


def route_of(endpoint: Endpoint, ask_of: Asker) -> Route:
    """The route that serves one endpoint; `ask_of` says who asks."""

    async def serve(request: Request) -> Response:
        try:
            question = await question_of(endpoint, request)
            answer = await endpoint.function(ask_of(request), question)
        except GantryError as error:
            return trouble(status_of(error), str(error))
        return response_of(answer)

    return Route(PREFIX + endpoint.path, serve, methods=[endpoint.method], name=endpoint.name)


async def question_of(endpoint: Endpoint, request: Request) -> Question:
    """The question as a value; BadInput says what is wrong with it."""
    if endpoint.method in WITH_BODY:
        return convert(await _body_of(request) | _of_path(endpoint, request), endpoint.question)
    given: dict[str, Any] = {}
    for key, value in request.query_params.multi_items():
        if key in given:
            raise BadInput(f"{key} is given twice")
        given[key] = value
    return convert(given | dict(request.path_params), endpoint.question, is_text=True)


def _of_path(endpoint: Endpoint, request: Request) -> dict[str, Any]:
    """The values in the path; beside a body of JSON these alone are texts that may be numbers."""
    kinds = {each.encode_name: each.type for each in msgspec.structs.fields(endpoint.question)}
    try:
        return {
            name: msgspec.convert(value, kinds[name], strict=False)
            for name, value in request.path_params.items()
        }
    except msgspec.ValidationError as error:
        raise BadInput(f"{request.url.path}: {error}") from None


def convert(values: Mapping[str, Any], kind: type[Q], *, is_text: bool = False) -> Q:
    """The struct of these values; texts may stand for numbers where they come from an address."""
    try:
        return msgspec.convert(values, kind, strict=not is_text)
    except msgspec.ValidationError as error:
        raise BadInput(str(error)) from None


async def _body_of(request: Request) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != JSON:
        raise BadInput(f"send JSON with the header Content-Type: {JSON}, not {kind or 'nothing'}")
    body = await read_body(request)
    try:
        found = msgspec.json.decode(body or b"{}")
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput(f"the body is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadInput("the body must be a JSON object")
    return found


async def read_body(request: Request, most: int = BODY_BYTES_MAX) -> bytes:
    """The whole body; BadInput if it is too large, or ends before its end."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise BadInput(f"the body is larger than {most} bytes")
    except ClientDisconnect:
        raise BadInput("the connection ended within the body") from None
    return bytes(body)


def response_of(answer: object) -> Response:
    """The HTTP response for what an endpoint returned."""
    if isinstance(answer, Download):
        headers = {"Cache-Control": "no-store"}
        if answer.file_name:
            headers["Content-Disposition"] = f'attachment; filename="{answer.file_name}"'
        if answer.policy:
            headers["Content-Security-Policy"] = answer.policy
        return StreamingResponse(answer.chunks, media_type=answer.media_type, headers=headers)
    return Response(msgspec.json.encode(answer), media_type=JSON)


def trouble(status: HTTPStatus, text: str) -> Response:
    """An error as JSON."""
    return Response(msgspec.json.encode(Trouble(text)), status, media_type=JSON)
