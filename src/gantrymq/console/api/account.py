"""Who asks, and what was changed through this console by whom."""

import asyncio
from typing import Annotated, Any

import msgspec

from gantrymq.console.api.ask import Ask
from gantrymq.console.api.endpoint import Answer, EndpointTable, Question

TABLE = EndpointTable("account")

ENTRIES_MAX = 1_000


class WhoAmI(Question, frozen=True, kw_only=True):
    """Nothing to say: the login says it."""


class LoginState(Answer, frozen=True, kw_only=True):
    """The user of this login."""

    name: str
    role: str
    """reader, admin or cluster user"""
    may_change: bool
    is_admin: bool


class AuditQuestion(Question, frozen=True, kw_only=True):
    """Which changes to list."""

    containing: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """Only entries whose line of JSON contains this text."""
    count: Annotated[int, msgspec.Meta(ge=1, le=ENTRIES_MAX)] = 100
    before_ms: int | None = None
    """Only entries that are older."""


class AuditEntryShown(Answer, frozen=True, kw_only=True):
    """One change."""

    at_ms: int
    user: str
    act: str
    asked: dict[str, Any]
    error: str | None = None


class AuditEntries(Answer, frozen=True, kw_only=True):
    """Changes, the newest first."""

    entries: list[AuditEntryShown]
    is_complete: bool
    """Whether there are no older ones."""


@TABLE.get("/account")
async def show_account(ask: Ask, wanted: WhoAmI) -> LoginState:
    """Who is logged in, and what the user may do."""
    return LoginState(
        name=ask.user.name,
        role=ask.user.role.value,
        may_change=ask.may_change,
        is_admin=ask.is_admin,
    )


@TABLE.get("/audit")
async def list_changes(ask: Ask, wanted: AuditQuestion) -> AuditEntries:
    """What was changed through this console, by whom, when, and how it ended. For admins."""
    ask.check_admin()
    found = await asyncio.to_thread(
        ask.parts.audit.newest, wanted.count + 1, wanted.containing, wanted.before_ms
    )
    return AuditEntries(
        entries=[
            AuditEntryShown(
                at_ms=each.at_ms, user=each.user, act=each.act, asked=each.asked, error=each.error
            )
            for each in found[: wanted.count]
        ],
        is_complete=len(found) <= wanted.count,
    )
