"""Titles of jobs, what they say while they run, and how they end."""

from typing import Final

SENTENCES: Final = {
    # any job
    "{title:s}: begun": "{title}：已开始",
    "{title:s}: running": "{title}：运行中",
    "{title:s}: done": "{title}：已完成",
    "{title:s}: failed": "{title}：失败",
    "{title:s}: stopped": "{title}：已停止",
    "stopped": "已停止",
    "it ended with {code}": "进程以 {code} 结束",
    "the command failed without a word": "命令失败，没有输出",
    # letters that are sent again
    "send {n:d} letter[s] of {group} again": "重新发送 {group} 的 {n} 条死信",
    "send all chosen letters of {group} again": "重新发送 {group} 的全部所选死信",
    "{n:d} failed in a row; {said:s}": "连续 {n} 条失败；{said}",
    "a stage of {n:d} is done: waiting until somebody lets it go on": (
        "一批 {n} 条已完成：等待有人让任务继续"
    ),
    "going on": "继续",
    "{sent:d} sent again, {skipped:d} skipped because they were before, {failed:d} failed, "
    "{rest:d} left untouched": (
        "已重新发送 {sent} 条，跳过此前已发送的 {skipped} 条，失败 {failed} 条，{rest} 条保持不变"
    ),
    "it waits": "任务已暂停",
    "it goes on": "任务已继续",
    # fewer queues
    "shrink {topic} to {n:d} queue[s]": "将 {topic} 缩减到 {n} 个队列",
    "topic {topic} has {n:d} queue[s] on each broker": "主题 {topic} 在每个 Broker 上有 {n} 个队列",
    "a topic needs at least one queue": "主题至少需要一个队列",
    "no broker has more than {n:d} queue[s] of it: nothing to do": (
        "没有 Broker 的队列超过 {n} 个：无需操作"
    ),
    "{broker}: write queues {before:d} to {after:d}": "{broker}：写队列由 {before} 改为 {after}",
    "{broker}: read queues {before:d} to {after:d}": "{broker}：读队列由 {before} 改为 {after}",
    "waiting {n:d} s for producers to notice": "等待 {n} 秒，让生产者得知",
    "waiting for {left}": "等待读完：{left}",
    "not read yet in the queues from {n:d} on: {left}. Write queues are down already; run it again "
    "when the groups have caught up": (
        "从 {n} 号起的队列尚未读完：{left}。写队列已减少；请在消费者组读完后再次运行"
    ),
    "nobody reads it": "没有人读取",
    "no broker has topic {topic}": "没有 Broker 拥有主题 {topic}",
    # more queues
    "spread {n:d} message[s] of {topic} into {to}": "将 {topic} 的 {n} 条消息移到 {to}",
    "{n:d} message[s] moved to {to}, {skipped:d} had been before: let {group} subscribe to "
    "{same}": ("已移动 {n} 条消息到 {to}，另有 {skipped} 条此前已移动：请让 {group} 订阅 {same}"),
    "{name} belongs to the system: only topics of yours are spread": (
        "{name} 属于系统：只能扩展自己的主题"
    ),
    "a topic is spread into another one, not into itself": "目标必须是另一个主题",
    "queues and rate are above 0": "队列数和速率必须大于 0",
    "group {group} has never read {topic}": "消费者组 {group} 从未读取 {topic}",
    "{queue}: {n:d} message[s] came meanwhile: run it again for more": (
        "{queue}：期间又到达 {n} 条消息：可再次运行"
    ),
    "stopped, run it again to go on: {why:s}": "已停止，可再次运行以继续：{why}",
    "{done:d} of {all:d} moved, {rate:d} a second": "已移动 {done} / {all}，每秒 {rate} 条",
    "whether members run is not known: {why:s}": "不清楚是否有成员在运行：{why}",
    "members of {group} broadcast: each keeps its own progress, so nothing waits for the group": (
        "{group} 的成员为广播消费：各自保存进度，因此没有等待该组的消息"
    ),
    "{group} reads {topic} right now ({names}): its members would get messages twice and out of "
    "order. Stop them first, or force it": (
        "{group} 正在读取 {topic}（{names}）：其成员会重复且乱序收到消息。请先停止它们，或强制执行"
    ),
    "{broker}: topic {topic} with {n:d} queue[s]": "{broker}：主题 {topic}，{n} 个队列",
    "{topic} has {n:d} queue[s] on {broker}, not {wanted:d}: keys would change their queue "
    "half-way": ("{topic} 在 {broker} 上有 {n} 个队列，而不是 {wanted}：键会中途更换队列"),
    "{topic} has no queue that may be written to": "{topic} 没有可写的队列",
    # archives, replays and reports
    "archive {topics}": "归档 {topics}",
    "replay {topic} into {to} (dry run)": "重放 {topic} 到 {to}（试运行）",
    "replay {topic} into {to}": "重放 {topic} 到 {to}",
    "report {name}": "报告 {name}",
}
