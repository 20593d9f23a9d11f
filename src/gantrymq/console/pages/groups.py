"""Groups: the list, and one group with everything that can be done with it."""

from typing import Final

from starlette.responses import Response

from gantrymq.base.errors import GantryError
from gantrymq.console.api.group_members import WantedMember, show_member
from gantrymq.console.api.group_progress import (
    ProgressCopy,
    ResetPlan,
    clone_progress,
    preview_reset,
    reset_group,
    show_group_lag,
)
from gantrymq.console.api.groups import (
    GroupDeletion,
    GroupSettings,
    NamedGroup,
    NewGroup,
    SettingChanges,
    WantedGroups,
    create_group,
    delete_group,
    list_groups,
    pause_group,
    resume_group,
    show_group,
    update_group,
)
from gantrymq.console.api.samples import WantedSamples, show_samples
from gantrymq.console.pages.forms import ListPart, checked, form_with, no_plan
from gantrymq.console.pages.page import PageTable, View

TABLE = PageTable("groups")
SETTINGS: Final = (
    "consume_enable", "consume_broadcast_enable", "consume_from_min_enable",
    "consume_message_orderly", "notify_consumer_ids_changed_enable", "retry_max_times",
    "retry_queue_nums", "broker_id", "which_broker_when_consume_slowly",
)  # fmt: skip
"""In the order of the table and of the forms."""
CAMEL: Final = {
    name: "".join(word.title() if at else word for at, word in enumerate(name.split("_")))
    for name in SETTINGS
}
"""RocketMQ's names, which are those of the fields."""


@TABLE.page("/c/{cluster}/groups")
async def groups(view: View) -> Response:
    wanted = view.query(WantedGroups)
    found = await list_groups(view.ask, wanted)
    part = ListPart(view, found.offset, wanted.limit, len(found.groups), found.count)
    return view.show("groups.html", found=found, wanted=wanted, part=part)


@TABLE.page("/c/{cluster}/new-group")
async def new_group(view: View) -> Response:
    return view.show("new_group.html", names=SETTINGS, camel=CAMEL)


@TABLE.act("/c/{cluster}/new-group")
async def create(view: View) -> str:
    return _said(await create_group(view.ask, await view.form(NewGroup)))


@TABLE.page("/c/{cluster}/groups/{group}")
async def group(view: View) -> Response:
    asked = view.query(NamedGroup)
    found = await show_group(view.ask, asked)
    backlog = await show_group_lag(view.ask, asked)
    topics = list(dict.fromkeys(each.topic for each in backlog.queues))
    trend = await show_samples(
        view.ask, WantedSamples(cluster=view.cluster, kind="group", name=asked.group)
    )
    return view.show(
        "group.html",
        found=found,
        backlog=backlog,
        trend=trend,
        topics=topics,
        names=SETTINGS,
        camel=CAMEL,
    )


@TABLE.page("/c/{cluster}/groups/{group}/member")
async def member(view: View) -> Response:
    wanted = view.query(WantedMember)
    return view.show("member.html", found=await show_member(view.ask, wanted), wanted=wanted)


@TABLE.act("/c/{cluster}/groups/{group}/change")
async def change(view: View) -> str:
    return _said(await update_group(view.ask, await view.form(SettingChanges)))


@TABLE.act("/c/{cluster}/groups/{group}/pause")
async def pause(view: View) -> str:
    return _said(await pause_group(view.ask, await view.form(NamedGroup)))


@TABLE.act("/c/{cluster}/groups/{group}/resume")
async def resume(view: View) -> str:
    return _said(await resume_group(view.ask, await view.form(NamedGroup)))


def _said(found: GroupSettings) -> str:
    return "; ".join([found.text, *found.warnings])


@TABLE.page("/c/{cluster}/groups/{group}/reset")
async def reset_plan(view: View) -> Response:
    """What the reset in a form would do."""
    try:
        plan = await preview_reset(view.ask, view.query(ResetPlan))
    except GantryError as error:
        return no_plan(view, error)
    return view.show("reset.html", plan=plan)


@TABLE.act("/c/{cluster}/groups/{group}/reset")
async def reset(view: View) -> str:
    return (await reset_group(view.ask, await form_with(view, ResetPlan, force=checked))).text


@TABLE.act("/c/{cluster}/groups/{group}/clone")
async def clone(view: View) -> str:
    return (await clone_progress(view.ask, await view.form(ProgressCopy))).text


@TABLE.act("/c/{cluster}/groups/{group}/delete", leads_to="groups")
async def delete(view: View) -> str:
    wanted = await form_with(view, GroupDeletion, deadLetters=checked, force=checked)
    return (await delete_group(view.ask, wanted)).text
