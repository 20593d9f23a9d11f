"""Words of the login, and of the audit trail."""

from typing import Final

TEXTS: Final = {
    "login.title": ("Log in", "登录"),
    "login.name": ("Name", "用户名"),
    "login.password": ("Password", "密码"),
    "login.access_key": ("Access key", "Access Key"),
    "login.secret_key": ("Secret key", "Secret Key"),
    "login.enter": ("Log in", "登录"),
    "login.keys_hint": (
        "The key pair of your programs. The access control of the cluster decides what it may do.",
        "使用程序的密钥对登录，权限由集群的访问控制决定。",
    ),
    "login.users_hint": (
        "Users are made with: gantry console user add NAME",
        "创建用户的命令：gantry console user add NAME",
    ),
    "audit.when": ("When", "时间"),
    "audit.user": ("User", "用户"),
    "audit.act": ("Act", "操作"),
    "audit.asked": ("What was asked", "请求内容"),
    "audit.outcome": ("Outcome", "结果"),
    "audit.done": ("done", "完成"),
    "audit.containing": ("Containing", "包含"),
    "audit.none": ("Nothing was changed yet.", "还没有任何更改。"),
    "audit.older": ("Older changes", "更早的更改"),
    "audit.complete": ("These are all.", "已全部显示。"),
    "audit.hint": (
        "Every change through this console, and who made it: audit.jsonl in its folder.",
        "通过控制台进行的每一次更改及操作人。文件为数据目录下的 audit.jsonl。",
    ),
}
