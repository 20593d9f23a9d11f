"""`startMonitoring`: watches all groups until it is interrupted, in RocketMQ's words."""

import json
import sys
from typing import Any

from gantrymq.cli.mqadmin.command import AdminOption, Invocation, command
from gantrymq.cli.mqadmin.output import JsonOutput
from gantrymq.cli.mqadmin.values import whole
from gantrymq.client.admin.groups.lag import GroupLag
from gantrymq.client.admin.monitoring.monitor import EVERY_SECONDS, Monitor
from gantrymq.client.admin.monitoring.monitor_round import MonitorRound, OffsetMovedEvent, Problem
from gantrymq.client.admin.monitoring.webhook import Webhook, WebhookFailed

PREFIX = "[MONITOR] "
NOTIFY = f"{PREFIX} [NOTIFY] "
RULE = "=" * 41


@command(
    "startMonitoring",
    "Start Monitoring.",
    AdminOption("i", "interval", "Seconds between rounds.", read=whole, default=int(EVERY_SECONDS)),
    AdminOption("c", "count", "End after so many rounds.", read=whole),
    AdminOption("w", "webhook", "Post problems to this URL, as JSON, once a round."),
)
async def start_monitoring(call: Invocation) -> None:
    await call.admin.cluster()
    hook = None if call["webhook"] is None else Webhook(call["webhook"])
    as_json = isinstance(call.out, JsonOutput)

    def line(text: str, row: dict[str, Any]) -> None:
        """In JSON a list at the end, or lines at once if there is no end."""
        if as_json and call["count"]:
            call.out.item(row, list)
            return
        sys.stdout.write((json.dumps(row, ensure_ascii=False) if as_json else text) + "\n")
        sys.stdout.flush()

    async def on_round(found: MonitorRound, problems: list[Problem]) -> None:
        line(f"{PREFIX}{RULE}beginRound", {"event": "beginRound", "time": found.at_ms})
        for group, row in zip(found.groups, found.rows(), strict=True):
            for text in group_lines(found, group):
                if not as_json:
                    line(text, {})
            if as_json:
                line("", {"event": "group", "time": found.at_ms, **row})
        for problem in problems:
            if as_json or problem.kind == "unknown":
                line(f"{NOTIFY}{problem.text}", {"event": "problem", **problem.row()})
        line(f"{PREFIX}{RULE}endRound", {"event": "endRound", "time": found.at_ms})
        if hook is not None and problems:
            rows = [problem.row() for problem in problems]
            try:
                await hook.post({"time": found.at_ms, "round": found.number, "problems": rows})
            except WebhookFailed as error:
                print(f"webhook: {error}; tried again next round", file=sys.stderr)

    async def on_moved(event: OffsetMovedEvent) -> None:
        row = {"event": "problem", "time": event.at_ms, **event.problem.row()}
        line(f"{PREFIX}reportDeleteMsgsEvent: {_event(event)}", row)

    watch = Monitor(call.admin, on_round=on_round, on_moved=on_moved)
    await watch.run(max(1, call["interval"]), rounds=call["count"] or None)


def group_lines(found: MonitorRound, group: GroupLag) -> list[str]:
    """What RocketMQ's monitor logs about one group; dead letters are ours."""
    name = group.group
    lines = []
    for topic in group.topics:
        worst = max((row.lag for row in topic.queues), default=0)
        age = 0 if topic.oldest_ms is None else max(0, found.at_ms - topic.oldest_ms)
        lines.append(
            f"{PREFIX}reportUndoneMsgs: UndoneMsgs [consumerGroup={name}, topic={topic.topic}, "
            f"undoneMsgsTotal={topic.lag}, undoneMsgsSingleMQ={worst}, "
            f"undoneMsgsDelayTimeMills={age}]"
        )
        if topic.is_retry and topic.lag:
            lines.append(
                f"{PREFIX}reportFailedMsgs: FailedMsgs [consumerGroup={name}, "
                f"topic={topic.topic}, failedMsgsTotalRecently={topic.lag}]"
            )
    if group.dead_count:
        lines.append(f"{PREFIX}deadLetters: ConsumerGroup: {name}, {group.dead_count}")
    if group.members.differ:
        lines.append(
            f"{NOTIFY}reportConsumerRunningInfo: ConsumerGroup: {name}, Subscription different"
        )
    lines += [
        f"{NOTIFY}reportConsumerRunningInfo: ConsumerGroup: {name}, "
        f"ClientId: {', '.join(row.holders)}, {row.queue} {row.trouble}"
        for topic in group.topics
        for row in topic.queues
        if row.holders and row.trouble
    ]
    return lines


def _event(event: OffsetMovedEvent) -> str:
    place = event.queue
    return (
        f"DeleteMsgsEvent [offsetMovedEvent=OffsetMovedEvent [consumerGroup={event.group}, "
        f"messageQueue=MessageQueue [topic={place.topic}, brokerName={place.broker_name}, "
        f"queueId={place.queue_id}], offsetRequest={event.requested}, "
        f"offsetNew={event.corrected}], eventTimestamp={event.at_ms}]"
    )


COMMANDS = (start_monitoring,)
