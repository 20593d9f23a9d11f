"""Topics: the list, and one topic with everything that can be done with it."""

from typing import Final

from starlette.responses import Response

from gantrymq.base.errors import GantryError
from gantrymq.console.api.endpoint import OfCluster
from gantrymq.console.api.jobs import NamedJob, WantedJobs, list_jobs, show_job, stop_job
from gantrymq.console.api.overview import list_members
from gantrymq.console.api.topic_work import (
    NewMessage,
    Shrinking,
    ShrinkPlan,
    SpreadPlan,
    begin_shrink,
    begin_spread,
    preview_shrink,
    preview_spread,
    send_message,
)
from gantrymq.console.api.topics import (
    NamedTopic,
    NewTopic,
    TopicChanges,
    TopicDeletion,
    WantedTopics,
    create_topic,
    delete_topic,
    list_topic_groups,
    list_topics,
    preview_topic_deletion,
    show_topic,
    update_topic,
)
from gantrymq.console.pages.forms import (
    ListPart,
    checked,
    form_with,
    no_plan,
    pairs,
    several,
    words,
)
from gantrymq.console.pages.page import PageTable, View

TABLE = PageTable("topics")
TABS: Final = (
    "own", "normal", "fifo", "delay", "transaction", "mixed", "retry", "dead", "system", "all",
)  # fmt: skip
LEVELS: Final = ("1s", "5s", "10s", "30s", *(f"{number}m" for number in range(1, 11)), "20m", "30m",
                 "1h", "2h")  # fmt: skip
"""RocketMQ's delay levels, unless a broker has others."""


@TABLE.page("/c/{cluster}/topics")
async def topics(view: View) -> Response:
    wanted = view.query(WantedTopics)
    found = await list_topics(view.ask, wanted)
    part = ListPart(view, found.offset, wanted.limit, len(found.topics), found.count)
    own = sum(found.counts[kind] for kind in TABS[1:6])
    counts = found.counts | {"own": own, "all": sum(found.counts.values())}
    tabs = [kind for kind in TABS if counts[kind] or kind in ("own", wanted.kind)]
    return view.show("topics.html", found=found, wanted=wanted, part=part, tabs=tabs, counts=counts)


@TABLE.page("/c/{cluster}/new-topic")
async def new_topic(view: View) -> Response:
    members = await list_members(view.ask, OfCluster(cluster=view.cluster))
    brokers = sorted({each.broker for each in members.members})
    return view.show("new_topic.html", brokers=brokers)


@TABLE.act("/c/{cluster}/new-topic")
async def create(view: View) -> str:
    wanted = await form_with(view, NewTopic, brokers=several, attributes=pairs, order=checked)
    return (await create_topic(view.ask, wanted)).text


@TABLE.page("/c/{cluster}/topics/{topic}")
async def topic(view: View) -> Response:
    asked = view.query(NamedTopic)
    found = await show_topic(view.ask, asked)
    readers = await list_topic_groups(view.ask, asked)
    subject = f"topic {asked.topic}"
    jobs = await list_jobs(view.ask, WantedJobs(cluster=view.cluster, subject=subject))
    return view.show("topic.html", found=found, readers=readers, jobs=jobs.jobs, levels=LEVELS)


@TABLE.act("/c/{cluster}/topics/{topic}/send")
async def send(view: View) -> str:
    wanted = await form_with(view, NewMessage, keys=words, properties=pairs)
    return (await send_message(view.ask, wanted)).text


@TABLE.act("/c/{cluster}/topics/{topic}/change")
async def change(view: View) -> str:
    wanted = await form_with(view, TopicChanges, brokers=several, attributes=pairs, force=checked)
    return (await update_topic(view.ask, wanted)).text


@TABLE.page("/c/{cluster}/topics/{topic}/shrink")
async def shrink_preview(view: View) -> Response:
    """What stands in the way, for the form that asks for it."""
    try:
        plan = await preview_shrink(view.ask, view.query(ShrinkPlan))
    except GantryError as error:
        return no_plan(view, error)
    return view.show("plan.html", text=plan.text, rows=list(plan.unread.items()))


@TABLE.act("/c/{cluster}/topics/{topic}/shrink")
async def shrink(view: View) -> str:
    return (await begin_shrink(view.ask, await view.form(Shrinking))).text


@TABLE.page("/c/{cluster}/topics/{topic}/spread")
async def spread_preview(view: View) -> Response:
    """What would be moved, for the form that asks for it."""
    try:
        plan = await preview_spread(view.ask, view.query(SpreadPlan))
    except GantryError as error:
        return no_plan(view, error)
    text = view.texts("topics.would_move", count=plan.waiting)
    rows = [(f"{each.broker}:{each.queue_id}", each.waiting) for each in plan.queues]
    return view.show("plan.html", text=text, rows=rows)


@TABLE.act("/c/{cluster}/topics/{topic}/spread")
async def spread(view: View) -> str:
    return (await begin_spread(view.ask, await form_with(view, SpreadPlan, force=checked))).text


@TABLE.page("/c/{cluster}/topics/{topic}/deletion")
async def deletion(view: View) -> Response:
    """What is lost with the topic, for the form that deletes it."""
    try:
        loss = await preview_topic_deletion(view.ask, view.query(NamedTopic))
    except GantryError as error:
        return no_plan(view, error)
    return view.show(
        "plan.html", text=view.texts("topics.loses", what=view.told(loss.text)), rows=[]
    )


@TABLE.act("/c/{cluster}/topics/{topic}/delete", leads_to="topics")
async def delete(view: View) -> str:
    return (await delete_topic(view.ask, await view.form(TopicDeletion))).text


@TABLE.page("/c/{cluster}/jobs/{job}")
async def job(view: View) -> Response:
    return view.show("job.html", job=await show_job(view.ask, view.query(NamedJob)))


@TABLE.act("/c/{cluster}/jobs/{job}/stop")
async def stop(view: View) -> str:
    return (await stop_job(view.ask, await view.form(NamedJob))).text
