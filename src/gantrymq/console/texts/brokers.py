"""Words of the page about one broker."""

from typing import Final

TEXTS: Final = {
    "brokers.producers": ("Connected producers", "已连接的生产者"),
    "brokers.no_producers": ("No producer is connected.", "没有已连接的生产者。"),
    "brokers.group": ("Producer group", "生产者组"),
    "brokers.figures": ("Figures", "运行数据"),
    "brokers.settings": ("Settings", "配置"),
    "brokers.settings_hint": (
        "What a setting means, and where it comes from: gantry config explain NAME. To change one: "
        "mqadmin updateBrokerConfig.",
        "配置的含义和来源：gantry config explain NAME。修改配置：mqadmin updateBrokerConfig。",
    ),
}
