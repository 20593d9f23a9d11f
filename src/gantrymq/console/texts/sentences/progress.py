"""How groups get on: alarms, advice, and what holds up a queue."""

from typing import Final

SENTENCES: Final = {
    # what holds up a queue
    "no member runs": "没有成员在运行",
    "not known who holds it: {members} does not answer": "不清楚由谁持有：{members} 没有应答",
    "no member says that it holds it": "没有成员声明持有它",
    "stuck: nothing finished for {n:d} s": "停滞：{n} 秒内没有完成任何消息",
    "stuck: offset {n:d} holds up all behind it": "停滞：位点 {n} 阻塞了其后的所有消息",
    "not pulled for {n:d} s": "{n} 秒没有拉取",
    "{queues:s}: {trouble:s} (held by {holders})": "{queues}：{trouble}（由 {holders} 持有）",
    # alarms
    "{group} has {n:d} waiting message[s]": "{group} 有 {n} 条等待的消息",
    "the oldest message that waits for {group} is {span} old": (
        "{group} 最早的等待消息已有 {span}"
    ),
    "{group} has {n:d} [retry|retries] waiting": "{group} 有 {n} 条等待的重试",
    "{group} got {n:d} dead letter[s] since the last round": "{group} 自上一轮以来新增 {n} 条死信",
    "{n:d} message[s] of {queue} [was|were] deleted before {group} read them: it asked for offset "
    "{asked:d} and goes on at {at:d}": (
        "{queue} 的 {n} 条消息在 {group} 读取前已删除：它请求位点 {asked}，将从 {at} 继续"
    ),
    "{group} asked for offset {asked:d} of {queue}, which ends before it: it goes on at {at:d}": (
        "{group} 请求 {queue} 的位点 {asked}，超出了队列末尾：将从 {at} 继续"
    ),
    "{n:d} message[s] of {queue} deleted before {group} read them": (
        "{queue} 的 {n} 条消息在 {group} 读取前已删除"
    ),
    "{queue} of {group}, held by {holders}: {trouble:s}": (
        "{group} 的 {queue}（由 {holders} 持有）：{trouble}"
    ),
    "members of {group} have different subscriptions": "{group} 的成员订阅不一致",
    # advice against a backlog
    "{group} is not allowed to consume: {command}": "{group} 不允许消费：{command}",
    "{queue} is held by {holders}, {trouble:s}: look at that process": (
        "{queue} 由 {holders} 持有，{trouble}：请检查该进程"
    ),
    "{topic}: no member of {group} runs: start consumers, up to {n:d} (one a queue)": (
        "{topic}：{group} 没有成员在运行：请启动消费者，最多 {n} 个（每个队列一个）"
    ),
    "{queue} has {n:d} of {all:d} unread messages: more consumers do not help; {command} spreads "
    "its keys": (
        "{all} 条未读消息中有 {n} 条在 {queue}：增加消费者没有帮助；可用 {command} 分散其键"
    ),
    "{topic}: more consumers: {n:d} pop now": "{topic}：增加消费者：目前有 {n} 个以 POP 方式消费",
    "{topic}: more consumers: {n:d} for {queues:d} queue[s], up to {more:d} more would help": (
        "{topic}：增加消费者：{queues} 个队列目前有 {n} 个，最多再加 {more} 个"
    ),
    "{topic}: spread: {n:d} queue[s], each with a consumer already; {command}": (
        "{topic}：扩展队列：{n} 个队列都已有消费者；{command}"
    ),
    "more workers: {member} has {n:d} message[s] in hand and {workers:d} worker[s] "
    "(consume_thread_max)": (
        "增加工作线程：{member} 手中有 {n} 条消息，只有 {workers} 个线程（consume_thread_max）"
    ),
    # last, since it fits most: queues of a finding, and what holds them up
    "{topic}@{queues:s}: {trouble:s}": "{topic}@{queues}：{trouble}",
    "{names} and {n:d} more": "{names} 等，另有 {n} 个",
}
