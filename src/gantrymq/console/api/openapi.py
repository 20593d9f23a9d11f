"""The OpenAPI document of the API, from the table of endpoints."""

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from gantrymq.console.api.endpoint import PREFIX, Download, Endpoint
from gantrymq.console.api.http import WITH_BODY, Trouble

REF: Final = "#/components/schemas/{name}"
_FIELD: Final = re.compile(r"\{(\w+)\}")
ERRORS: Final = {
    "400": "The question makes no sense; the text says what would.",
    "401": "Nobody is logged in.",
    "403": "The user may not do that.",
    "404": "There is no such cluster, topic, group or message.",
    "409": "A broker refused; the text has its words.",
    "429": "Too many wrong passwords, or too many answers without an end; try again later.",
    "503": "A server of the cluster does not answer.",
}


def document(endpoints: Sequence[Endpoint], version: str) -> dict[str, Any]:
    """The document as a value for JSON."""
    kinds: list[type] = [Trouble]
    for each in endpoints:
        kinds += [kind for kind in (each.question, each.answer) if kind is not Download]
    _, schemas = msgspec.json.schema_components(dict.fromkeys(kinds), ref_template=REF)
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        operation = _operation(each, schemas[each.question.__name__])
        paths.setdefault(PREFIX + each.path, {})[each.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "GantryMQ console", "version": version},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _operation(endpoint: Endpoint, question: dict[str, Any]) -> dict[str, Any]:
    fields, required = question["properties"], question.get("required", [])
    of_path = _FIELD.findall(endpoint.path)
    others = [name for name in fields if name not in of_path]
    has_body = endpoint.method in WITH_BODY
    parameters = [_parameter(name, "path", fields[name], is_required=True) for name in of_path]
    if not has_body:
        parameters += [
            _parameter(name, "query", fields[name], is_required=name in required) for name in others
        ]
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [endpoint.subject],
        "parameters": parameters,
        "responses": {"200": _answer(endpoint), **_errors()},
    }
    if has_body:
        body = {
            "type": "object",
            "properties": {name: fields[name] for name in others},
            "required": [name for name in others if name in required],
            "additionalProperties": False,
        }
        operation["requestBody"] = {
            "required": bool(body["required"]),
            "content": {"application/json": {"schema": body}},
        }
    return operation


def _parameter(
    name: str, place: str, schema: dict[str, Any], *, is_required: bool
) -> dict[str, Any]:
    return {"name": name, "in": place, "required": is_required, "schema": schema}


def _answer(endpoint: Endpoint) -> dict[str, Any]:
    if endpoint.answer is Download:
        content: dict[str, Any] = {kind: {} for kind in endpoint.media_types}
    else:
        schema = {"$ref": REF.format(name=endpoint.answer.__name__)}
        content = {"application/json": {"schema": schema}}
    return {"description": endpoint.summary, "content": content}


def _errors() -> dict[str, Any]:
    schema = {"$ref": REF.format(name=Trouble.__name__)}
    return {
        code: {"description": text, "content": {"application/json": {"schema": schema}}}
        for code, text in ERRORS.items()
    }
