"""Messages: search and tail, one message with its history, saved filters, schemas and masking."""

from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from gantrymq.base.errors import GantryError
from gantrymq.console.api.decoding.forms import BodyForm
from gantrymq.console.api.direct_consumption import ChosenMember, consume_directly
from gantrymq.console.api.endpoint import OfCluster
from gantrymq.console.api.groups import NamedGroup, show_group
from gantrymq.console.api.http import convert
from gantrymq.console.api.kept_lists import (
    NamedFilter,
    NewFilter,
    NewRule,
    NewSchema,
    NumberedThing,
    add_mask_rule,
    delete_filter,
    delete_mask_rule,
    delete_schema,
    keep_schema,
    list_filters,
    list_mask_rules,
    list_schemas,
    save_filter,
)
from gantrymq.console.api.masking.rules import MaskKind
from gantrymq.console.api.message import (
    Changed,
    WantedBody,
    resend_message,
    show_history,
    show_message,
)
from gantrymq.console.api.messages import (
    LIMIT_DEFAULT,
    FoundMessages,
    WantedId,
    WantedKey,
    WantedMessages,
    WantedTail,
    find_by_id,
    find_by_key,
    poll_messages,
    search_messages,
)
from gantrymq.console.api.topics import NamedTopic, list_topic_groups
from gantrymq.console.pages.forms import edited
from gantrymq.console.pages.history_picture import picture_of
from gantrymq.console.pages.page import PageTable, View
from gantrymq.console.pages.search_fields import SINCE, kept, times_of
from gantrymq.console.texts import TEXTS

TABLE = PageTable("messages")
WAYS: Final = ("time", "id", "key")
_ASKED: Final = ("topic", "order", "broker", "queueId", "offset", "tags", "sql", "text", "limit")
_FILTERS: Final = ("topic", "tags", "sql", "text")
ROWS_IN_A_TAIL_MAX: Final = 500


def _fields(view: View) -> dict[str, str]:
    return {name: value for name, value in view.request.query_params.items() if value}


def _question(view: View, fields: dict[str, str], **others: object) -> WantedMessages:
    asked: dict[str, Any] = {name: fields[name] for name in _ASKED if name in fields}
    times = times_of(fields, view.ask.parts.clock.now_ms())
    given = asked | times | {"cluster": view.cluster} | others
    return convert(given, WantedMessages, is_text=True)


@TABLE.page("/c/{cluster}/messages")
async def messages(view: View) -> Response:
    """The form of a search, and what it found."""
    fields = _fields(view)
    way = fields.get("by", "time")
    values: dict[str, Any] = {
        "fields": fields, "way": way if way in WAYS else "time", "ways": WAYS, "since": SINCE,
        "filters": (await list_filters(view.ask, OfCluster(cluster=view.cluster))).filters,
        "kept_query": kept(fields), "found": None, "more": None, "indexed": None, "trouble": "",
    }  # fmt: skip
    try:
        if way == "id" and "id" in fields:
            wanted = {"cluster": view.cluster, "id": fields["id"], "topic": fields.get("topic")}
            values["indexed"] = await find_by_id(view.ask, convert(wanted, WantedId))
        elif way == "key" and "key" in fields and "topic" in fields:
            values["indexed"] = await _by_key(view, fields)
        elif way == "time" and "topic" in fields:
            asked = _question(view, fields, **_cursor(fields))
            found = await search_messages(view.ask, asked)
            values |= {"found": found, "more": _more(fields, found, asked.limit)}
    except GantryError as error:
        values["trouble"] = view.told(error)
    return view.show("messages.html", **values)


async def _by_key(view: View, fields: dict[str, str]) -> object:
    asked = {name: fields[name] for name in ("topic", "key", "limit") if name in fields}
    times = times_of(fields, view.ask.parts.clock.now_ms())
    if "untilMs" in fields:
        times["untilMs"] = int(fields["untilMs"]) if fields["untilMs"].isdecimal() else 0
    wanted = convert(asked | times | {"cluster": view.cluster}, WantedKey, is_text=True)
    return await find_by_key(view.ask, wanted)


def _cursor(fields: dict[str, str]) -> dict[str, str]:
    return {"cursor": fields["cursor"]} if "cursor" in fields else {}


def _more(fields: dict[str, str], found: FoundMessages, wanted: int) -> dict[str, Any]:
    """Whether the search goes on by itself, and the addresses of its next part."""
    is_full = len(found.messages) >= wanted
    limit = fields.get("limit") or str(LIMIT_DEFAULT)
    rest = limit if is_full else str(wanted - len(found.messages))
    changes = {"cursor": found.cursor or "", "rest": rest}
    return {
        "by_itself": found.cursor is not None and not is_full,
        "part": kept(fields, **changes),
        "page": kept(fields, cursor=found.cursor or ""),
    }


@TABLE.page("/c/{cluster}/message-rows")
async def message_rows(view: View) -> Response:
    """The next part of a search, for the table of the page."""
    fields = _fields(view)
    try:
        asked = _question(view, fields | {"limit": fields.get("rest", "50")}, **_cursor(fields))
        found = await search_messages(view.ask, asked)
    except GantryError as error:
        return view.show("table_trouble.html", text=view.told(error))
    more = _more(fields, found, asked.limit)
    return view.show("message_rows.html", found=found, more=more)


@TABLE.page("/c/{cluster}/tail")
async def tail(view: View) -> Response:
    """Messages as they arrive."""
    fields = _fields(view)
    return view.show("tail.html", fields=fields, query=_filter_query(fields), trouble="")


def _filter_query(fields: dict[str, str], **others: str) -> str:
    found = {name: fields[name] for name in _FILTERS if name in fields}
    return urlencode(found | others)


@TABLE.page("/c/{cluster}/tail-rows")
async def tail_rows(view: View) -> Response:
    """What arrived since the last look, for the table of the tail."""
    fields = _fields(view)
    asked = {name: fields[name] for name in (*_FILTERS, "cursor") if name in fields}
    try:
        found = await poll_messages(
            view.ask, convert(asked | {"cluster": view.cluster}, WantedTail, is_text=True)
        )
    except GantryError as error:
        return view.show("table_trouble.html", text=view.told(error))
    rows = found.messages[::-1]
    query = _filter_query(fields, cursor=found.cursor)
    return view.show("tail_rows.html", rows=rows, found=found, query=query)


# one message


@TABLE.page("/c/{cluster}/messages/{topic}/{broker}/{queueId}/{offset}")
async def message(view: View) -> Response:
    """Everything about a message."""
    wanted = view.query(WantedBody)
    found = await show_message(view.ask, wanted)
    schemas = await list_schemas(view.ask, OfCluster(cluster=view.cluster))
    explained = {
        each.name: view.texts(f"property.{each.name}")
        for each in found.properties
        if f"property.{each.name}" in TEXTS
    }
    own = [each for each in found.properties if not each.is_system and not each.is_masked]
    return view.show(
        "message.html",
        found=found,
        wanted=wanted,
        forms=list(BodyForm),
        schemas=schemas.schemas,
        explained=explained,
        own="\n".join(f"{each.name}={each.value}" for each in own),
        can_edit_body=not found.body.is_masked
        and not found.body.is_cut
        and found.body.form in ("json", "text"),
    )


@TABLE.page("/c/{cluster}/message-history/{id}")
async def message_history(view: View) -> Response:
    """The history of a message, for its page: it asks every group."""
    found = await show_history(view.ask, view.query(WantedId))
    return view.show("history.html", found=found, picture=picture_of(found))


@TABLE.act("/c/{cluster}/messages/{topic}/{broker}/{queueId}/{offset}/resend")
async def resend(view: View) -> str:
    """Send it again with what the form says; a form without a body leaves the stored one."""
    fields = await view.fields()
    wanted: dict[str, Any] = dict(view.request.path_params)
    wanted |= {"to": fields.get("to")} | edited(fields)
    return (await resend_message(view.ask, convert(wanted, Changed, is_text=True))).text


@TABLE.page("/c/{cluster}/messages/{topic}/{broker}/{queueId}/{offset}/consumers")
async def consumers(view: View) -> Response:
    """Who may be given the message: the groups of its topic, and the members of the chosen one."""
    fields = _fields(view)
    values: dict[str, Any] = {
        "origin": fields.get("origin") or view.request.path_params["topic"],
        "group": fields.get("group", ""), "readers": [], "members": [], "trouble": "",
    }  # fmt: skip
    try:
        topic = NamedTopic(cluster=view.cluster, topic=values["origin"])
        values["readers"] = (await list_topic_groups(view.ask, topic)).readers
        if values["group"]:
            asked = NamedGroup(cluster=view.cluster, group=values["group"])
            values["members"] = (await show_group(view.ask, asked)).members
    except GantryError as error:
        values["trouble"] = view.told(error)
    return view.show("message_consumers.html", **values)


@TABLE.act("/c/{cluster}/messages/{topic}/{broker}/{queueId}/{offset}/consume")
async def consume(view: View) -> str:
    done = await consume_directly(view.ask, await view.form(ChosenMember))
    return f"{done.text}; {done.remark}" if done.remark else done.text


# what is kept


@TABLE.act("/c/{cluster}/filters/save")
async def keep_filter(view: View) -> str:
    return (await save_filter(view.ask, await view.form(NewFilter))).text


@TABLE.act("/c/{cluster}/filters/remove")
async def remove_filter(view: View) -> str:
    return (await delete_filter(view.ask, await view.form(NamedFilter))).text


@TABLE.page("/c/{cluster}/masking")
async def masking(view: View) -> Response:
    """The rules of masking, and the schemas of topics."""
    asked = OfCluster(cluster=view.cluster)
    return view.show(
        "masking.html",
        rules=(await list_mask_rules(view.ask, asked)).rules,
        schemas=(await list_schemas(view.ask, asked)).schemas,
        kinds=list(MaskKind),
        forms=(BodyForm.AVRO, BodyForm.PROTOBUF),
        may_edit=view.ask.may_change and view.ask.is_admin,
    )


@TABLE.act("/c/{cluster}/masking/add")
async def add_rule(view: View) -> str:
    return (await add_mask_rule(view.ask, await view.form(NewRule))).text


@TABLE.act("/c/{cluster}/masking/remove")
async def remove_rule(view: View) -> str:
    return (await delete_mask_rule(view.ask, await view.form(NumberedThing))).text


@TABLE.act("/c/{cluster}/schemas/add")
async def add_schema(view: View) -> str:
    return (await keep_schema(view.ask, await view.form(NewSchema))).text


@TABLE.act("/c/{cluster}/schemas/remove")
async def remove_schema(view: View) -> str:
    return (await delete_schema(view.ask, await view.form(NumberedThing))).text
