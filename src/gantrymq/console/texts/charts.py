"""Words of charts and alarms."""

from typing import Final

TEXTS: Final = {
    "charts.time": ("Time", "时间"),
    "charts.in": ("in", "写入"),
    "charts.out": ("out", "读取"),
    "charts.lag": ("unread", "未读"),
    "charts.read": ("read per second", "每秒消费"),
    "charts.sent": ("sent per second", "每秒写入"),
    "charts.empty": (
        "Nothing is known of this time yet. A value is taken every 10 seconds.",
        "此时间段暂无数据，每 10 秒采样一次。",
    ),
    "charts.as_table": ("As a table", "以表格显示"),
    "charts.groups": ("Groups with the most unread messages", "未读最多的消费者组"),
    "charts.disk": ("Disk used by the message log", "消息日志磁盘占用"),
    "charts.of_cluster": ("whole cluster", "整个集群"),
    "charts.trouble": ("The last sample has gaps: {why}", "最近采样不完整：{why}"),
    "nav.alarms": ("Alarms", "告警"),
    "alarms.now": ("Now", "当前"),
    "alarms.none": ("No alarm.", "没有告警。"),
    "alarms.ended": ("Over", "已结束"),
    "alarms.deleted": ("Deleted before they were read", "未读即被删除"),
    "alarms.kind": ("Kind", "类型"),
    "alarms.kind.waiting": ("too many unread", "未读过多"),
    "alarms.kind.oldest": ("waits too long", "等待过久"),
    "alarms.kind.retries": ("too many retries", "重试过多"),
    "alarms.kind.dead": ("dead letters", "死信"),
    "alarms.kind.stuck": ("stuck", "卡住"),
    "alarms.kind.differing": ("subscriptions differ", "订阅不一致"),
    "alarms.kind.deleted": ("deleted unread", "未读已删除"),
    "alarms.kind.unknown": ("not known", "未知"),
    "alarms.group": ("Group", "消费者组"),
    "alarms.what": ("What", "内容"),
    "alarms.since": ("Since", "开始"),
    "alarms.until": ("Until", "结束"),
    "alarms.looked": (
        "{groups} groups, looked at last:",
        "{groups} 个消费者组，最近检查：",
    ),
    "alarms.first": ("All groups are being looked at.", "正在检查所有消费者组。"),
    "alarms.trouble": ("The cluster cannot be watched: {why}", "无法监控集群：{why}"),
    "alarms.limits": (
        "An alarm is more than {waiting} unread messages of a group, an unread message older than "
        "{oldest}, more than {retries} retries, more than {dead} new dead letters, a stuck queue, "
        "or members that differ.",
        "以下情况告警：消费者组未读超过 {waiting} 条、最早未读超过 {oldest}、重试超过 "
        "{retries} 条、新增死信超过 {dead} 条、队列卡住或成员订阅不一致。",
    ),
    "alarms.cli": (
        "The same as log lines, and for a webhook:",
        "同样的内容也可输出到日志或 Webhook：",
    ),
}
