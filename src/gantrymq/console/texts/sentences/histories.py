"""The history of a message: where it is, what happened, and how each group stands."""

from typing import Final

SENTENCES: Final = {
    # the message itself
    "in its topic ({places})": "在其主题中（{places}）",
    "no longer in its topic; from: {source}": "已不在其主题中；来源：{source}",
    "a recall took it back before its time": "在到期之前被撤回",
    "its producer never decided; the broker stopped asking": "生产者一直未裁决；Broker 已停止回查",
    "its copy in the topic is not there (any more)": "主题中（已）没有它的副本",
    "its producer rolled the transaction back": "生产者回滚了事务",
    "waits for its producer to decide, not asked yet": "等待生产者裁决，尚未回查",
    "waits for its producer to decide, asked once so far": "等待生产者裁决，已回查 1 次",
    "waits for its producer to decide, asked {n:d} times so far": "等待生产者裁决，已回查 {n} 次",
    # events
    "made by its producer": "由生产者产生",
    "transaction committed": "事务已提交",
    "transaction rolled back": "事务已回滚",
    "nobody decided on the transaction: put aside": "无人裁决该事务：已搁置",
    "called back before its time": "在到期之前撤回",
    "stored in its topic": "存入其主题",
    "to the dead letters after {n:d} [delivery|deliveries]{reason}": (
        "投递 {n} 次后转入死信{reason}"
    ),
    "back for delivery {n:d}": "返回等待第 {n} 次投递",
    "producer group {group} asked, time {n:d}": "第 {n} 次回查生产者组 {group}",
    "half message: producer group {group} has to decide": "半消息：等待生产者组 {group} 裁决",
    "given back after {n:d} [delivery|deliveries]{reason}; waits for the next": (
        "投递 {n} 次后退回{reason}；等待下一次"
    ),
    "given back after {n:d} [delivery|deliveries]{reason}; waits": (
        "投递 {n} 次后退回{reason}；等待中"
    ),
    "waits for its time": "等待到期",
    "sent by group {group} in {ms:d} ms, stored less safely than asked for": (
        "由组 {group} 发送，用时 {ms} 毫秒，存储的安全级别低于要求"
    ),
    "sent by group {group} in {ms:d} ms": "由组 {group} 发送，用时 {ms} 毫秒",
    "delivery {n:d}": "第 {n} 次投递",
    "acknowledged after {n:d} ms": "{n} 毫秒后确认",
    "was not finished in time after {n:d} ms": "{n} 毫秒内未完成",
    "failed with an exception after {n:d} ms": "{n} 毫秒后抛出异常",
    "failed: the listener returned null after {n:d} ms": "{n} 毫秒后失败：监听器返回了 null",
    "failed after {n:d} ms": "{n} 毫秒后失败",
    "producer group {group} committed the transaction when asked": (
        "生产者组 {group} 在回查时提交了事务"
    ),
    "producer group {group} committed the transaction": "生产者组 {group} 提交了事务",
    "producer group {group} rolled back the transaction when asked": (
        "生产者组 {group} 在回查时回滚了事务"
    ),
    "producer group {group} rolled back the transaction": "生产者组 {group} 回滚了事务",
    "producer group {group} did not decide on the transaction when asked": (
        "生产者组 {group} 在回查时未裁决事务"
    ),
    "producer group {group} did not decide on the transaction": "生产者组 {group} 未裁决事务",
    "group {group} called it back": "组 {group} 撤回了它",
    # how a group stands
    "dead after {n:d} [delivery|deliveries]{reason} (the group's limit: {limit:d})": (
        "投递 {n} 次后成为死信{reason}（该组的上限：{limit}）"
    ),
    "broadcasting: every member keeps its own progress": "广播模式：每个成员各自保存进度",
    "subscribed to {expression}, the message has tag {tag}": (
        "订阅了 {expression}，而消息的标签是 {tag}"
    ),
    "acknowledged in delivery {n:d}": "在第 {n} 次投递时确认",
    "ready for delivery {n:d}: {where:s}": "等待第 {n} 次投递：{where}",
    "not in the topic yet": "尚未进入主题",
    "has not begun with {queue}": "尚未开始消费 {queue}",
    "acknowledged: the group stands at {at:d} in {queue}": "已确认：该组在 {queue} 的位点为 {at}",
    "the group stands at {at:d} in {queue}, {n:d} before the message": (
        "该组在 {queue} 的位点为 {at}，距该消息还有 {n} 条"
    ),
    "the group stands at {at:d} in {queue}, the message is next": (
        "该组在 {queue} 的位点为 {at}，下一条就是该消息"
    ),
    # what is not known
    "no trace from {broker}: {why}": "没有来自 {broker} 的轨迹：{why}",
    "{broker} returned {n:d} trace messages: more are there": (
        "{broker} 返回了 {n} 条轨迹消息：还有更多"
    ),
    "{n:d} trace records could not be read": "{n} 条轨迹记录无法读取",
    "the id names a place of this cluster, but {why}": "该 ID 指向本集群中的位置，但是 {why}",
    "no trace: no client that traces to {topic} had the message": (
        "没有轨迹：没有向 {topic} 写轨迹的客户端处理过该消息"
    ),
    "only {n:d} of {all:d} topics were searched: name the topic": (
        "只搜索了 {all} 个主题中的 {n} 个：请指定主题"
    ),
    "topic {topic} does not exist (any more): its groups are not known": (
        "主题 {topic}（已）不存在：不清楚有哪些消费者组"
    ),
    "only {n:d} of the topic's {all:d} groups were looked at": (
        "只查看了该主题 {all} 个消费者组中的 {n} 个"
    ),
    "when it is due is not known: {why}": "不清楚何时到期：{why}",
    "whether it was decided on: over {n:d} decisions came since": (
        "是否已裁决：此后又有超过 {n} 次裁决"
    ),
    "whether it was decided on: {why}": "是否已裁决：{why}",
}
