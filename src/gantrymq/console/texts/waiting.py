"""Words of the pages about what waits."""

from typing import Final

TEXTS: Final = {
    "waiting.delayed": ("Delayed", "延迟消息"),
    "waiting.transactions": ("Transactions", "事务"),
    "waiting.silent": ("{broker}: {why}", "{broker}：{why}"),
    "waiting.rooms": ("Delay levels and timer", "延迟级别与定时器"),
    "waiting.count": ("{count} wait", "{count} 条等待中"),
    "waiting.overdue": ("the next one is late by {time}", "下一条已延误 {time}"),
    "waiting.room": ("Where", "位置"),
    "waiting.messages": ("Messages", "消息"),
    "waiting.next": ("Next due", "下次到期"),
    "waiting.overdue_ms": ("Overdue, ms", "逾期（毫秒）"),
    "waiting.delivered": ("Delivered", "已投递"),
    "waiting.last_late": ("Last late, ms", "最近延误（毫秒）"),
    "waiting.max_late": ("Most late, ms", "最大延误（毫秒）"),
    "waiting.topics": ("By topic", "按主题"),
    "waiting.due": ("Due", "到期"),
    "waiting.late": ("late", "已延误"),
    "waiting.in": ("in {time}", "{time} 后"),
    "waiting.recall": ("Recall", "撤回"),
    "waiting.later": ("Later ones", "更晚的消息"),
    "waiting.none": ("Nothing waits for its time.", "没有等待中的消息。"),
    "waiting.undecided": ("Without a decision", "未裁决"),
    "waiting.more": ("there are more", "还有更多"),
    "waiting.check_hint": (
        "A broker asks the producer group by itself, at its interval; a check makes it ask now, "
        "and counts anew. RocketMQ's brokers ask at their interval only. Whom it asks has to be "
        "online.",
        "Broker 会按其间隔自动回查生产者组；“立即回查”可提前触发并重新计数，RocketMQ 的 Broker "
        "只按间隔回查。生产者组须在线。",
    ),
    "waiting.producer_group": ("Producer group", "生产者组"),
    "waiting.checks": ("Asked", "已回查"),
    "waiting.age": ("for {time}", "已 {time}"),
    "waiting.nobody": ("nobody online", "无在线成员"),
    "waiting.online": ("{count} online", "{count} 个在线"),
    "waiting.no_halves": ("Every transaction is decided.", "所有事务均已裁决。"),
    "waiting.gave_up": ("Given up", "已放弃"),
    "waiting.gave_up_hint": (
        "The broker asked as often as it may and put these aside. It can ask again.",
        "Broker 已达到最大回查次数并放弃这些消息，可以重新回查。",
    ),
    "waiting.check": ("Check again", "重新回查"),
    "waiting.check_now": ("Check now", "立即回查"),
}
