"""What `gantry doctor` finds, and what mends it."""

from typing import Final

SENTENCES: Final = {
    # name servers and brokers
    "does not answer: {why}": "没有应答：{why}",
    "start mqnamesrv at {address}, or take it out of namesrvAddr": (
        "启动 {address} 上的 mqnamesrv，或将其从 namesrvAddr 中移除"
    ),
    "does not know {names:s}, which other name servers know: clients that ask it do not "
    "find them": ("不认识其他名字服务器已知的 {names}：向它查询的客户端找不到这些 Broker"),
    "give every broker all name servers: {command}": (
        "让每个 Broker 注册到所有名字服务器：{command}"
    ),
    "does not list {n:d} topic[s] that others list: {names:s}": (
        "缺少其他名字服务器上的 {n} 个主题：{names}"
    ),
    "wait for the next registration of the brokers (30 s), then look at the log of the brokers for "
    "a registration that failed": (
        "等待 Broker 的下一次注册（30 秒），然后在 Broker 日志中查找失败的注册"
    ),
    "registered {address}, which does not answer from here: {why}": (
        "注册的地址 {address} 从这里无法连通：{why}"
    ),
    "start the broker if it is down; if it runs, set brokerIP1 in its file to an address that "
    "clients reach, and start it anew": (
        "如果 Broker 已停止，请启动它；如果正在运行，请在其配置文件中将 brokerIP1 "
        "设为客户端可达的地址并重启"
    ),
    "registered {address}, which clients on other machines cannot reach": (
        "注册的地址 {address} 其他机器上的客户端无法访问"
    ),
    "set brokerIP1 in its file to an address of its machine, and start it anew": (
        "在其配置文件中将 brokerIP1 设为本机的对外地址并重启"
    ),
    "refuses to tell about itself, so it was not checked: {why}": (
        "拒绝提供自身信息，未能检查：{why}"
    ),
    "give a key that it knows: ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY, or the file that "
    "GANTRY_CREDENTIALS names": (
        "提供它认识的密钥：ROCKETMQ_ACCESS_KEY 和 ROCKETMQ_SECRET_KEY，"
        "或 GANTRY_CREDENTIALS 指定的文件"
    ),
    "its clock is {span} ahead of the clock of this machine: delays, searches by time and "
    "retention go by the clock of the broker": (
        "其时钟比本机快 {span}：延时、按时间查询和保留时间都以 Broker 的时钟为准"
    ),
    "its clock is {span} behind the clock of this machine: delays, searches by time and "
    "retention go by the clock of the broker": (
        "其时钟比本机慢 {span}：延时、按时间查询和保留时间都以 Broker 的时钟为准"
    ),
    "timedatectl set-ntp true on the machine whose clock is wrong": (
        "在时钟不准的机器上执行 timedatectl set-ntp true"
    ),
    "its disk is {used} full: sends are refused when the next file does not fit": (
        "磁盘已用 {used}：放不下下一个文件时将拒绝写入"
    ),
    "its disk is {used} full: above {limit} sends are refused": (
        "磁盘已用 {used}：超过 {limit} 将拒绝写入"
    ),
    "its disk is {used} full: from {limit} on old files go at any hour": (
        "磁盘已用 {used}：达到 {limit} 后随时会删除旧文件"
    ),
    "make room on the disk": "清理磁盘空间",
    "{command} -v HOURS, or make room on the disk": "{command} -v 小时数，或清理磁盘空间",
    "has no master: nothing can be sent to it": "没有主节点：无法向其发送消息",
    "start the master of {name}; or make the slave at {address} the master "
    "(docs/guides/slaves.md)": (
        "启动 {name} 的主节点；或将 {address} 上的从节点提升为主节点（docs/guides/slaves.md）"
    ),
    "start the master of {name}": "启动 {name} 的主节点",
    "is a SYNC_MASTER without a slave in sync: sends are answered with SLAVE_NOT_AVAILABLE, and "
    "the next lost machine loses messages": (
        "是没有已同步从节点的 SYNC_MASTER：发送会得到 SLAVE_NOT_AVAILABLE，再失去一台机器就会丢消息"
    ),
    "start a slave ({settings}), or look into the log of the slave for: the copy of": (
        "启动从节点（{settings}），或在从节点日志中查找：the copy of"
    ),
    "{n:d} of {all:d} slave[s] [is|are] not in sync": "{all} 个从节点中有 {n} 个未同步",
    "mqadmin haStatus -b {address}, then look into the log of the slave": (
        "执行 mqadmin haStatus -b {address}，然后查看从节点日志"
    ),
    "the slave at {address} is {n:d} bytes behind": "{address} 上的从节点落后 {n} 字节",
    "a faster disk or network for the slave, or fewer sends": (
        "为从节点换用更快的磁盘或网络，或减少写入"
    ),
    "{n:d} of {all:d} member[s] [is|are] up: without a majority nobody leads, and nothing can be "
    "sent": "{all} 个成员中只有 {n} 个在线：没有多数派就没有领导者，无法发送消息",
    "start the members that are down; gantry raft status shows them": (
        "启动离线的成员；可用 gantry raft status 查看"
    ),
    "has a majority, and no member serves as its leader": "有多数派，但没有成员担任领导者",
    "wait for the election (some seconds), then look at gantry raft status": (
        "等待选举（数秒），然后查看 gantry raft status"
    ),
    "{n:d} of {all:d} member[s] [is|are] down": "{all} 个成员中有 {n} 个离线",
    "start the member again; gantry raft status shows which": (
        "重新启动该成员；可用 gantry raft status 查看是哪一个"
    ),
    # topics
    "{writes:d} write queues and {reads:d} read queues: what is sent to {n:d} queue[s] is read by "
    "nobody": "写队列 {writes} 个，读队列 {reads} 个：发送到其中 {n} 个队列的消息无人读取",
    "{reads:d} read queues and {writes:d} write queues: nothing comes to {n:d} queue[s], whose "
    "consumers are idle": "读队列 {reads} 个，写队列 {writes} 个：{n} 个队列没有消息，其消费者空闲",
    "gantry topic shrink {one}, or gantry topic update {other}": (
        "gantry topic shrink {one}，或 gantry topic update {other}"
    ),
    "has permission {perm}: its dead letters cannot be read": "权限为 {perm}：其死信无法读取",
    # groups
    "its members have different subscriptions: {older} wants {expression} of {topic}, {newer} "
    "wants {other}; messages are lost": (
        "成员的订阅不一致：{older} 订阅 {topic} 的 {expression}，{newer} 订阅 {other}；会丢失消息"
    ),
    "its members have different subscriptions; messages are lost": "成员的订阅不一致；会丢失消息",
    "gantry group members {group}; give all members the same subscriptions, or each kind a group "
    "of its own": (
        "gantry group members {group}；让所有成员使用相同的订阅，或为每种订阅使用各自的消费者组"
    ),
    "is not allowed to consume, and has {n:d} unread message[s]": "不允许消费，有 {n} 条未读消息",
    "no member runs, and there [is|are] {n:d} unread message[s]": (
        "没有成员在运行，有 {n} 条未读消息"
    ),
    "start its consumers; if the group is not needed: {command}": (
        "启动其消费者；如果不再需要该组：{command}"
    ),
    "{members:d} member[s] for {queues:d} queue[s] of {topic}: {n:d} member[s] [has|have] nothing "
    "to read": "{topic} 有 {queues} 个队列和 {members} 个成员：{n} 个成员没有可读的队列",
    "{command} (on all brokers together), or stop the members that are idle": (
        "{command}（所有 Broker 合计），或停止空闲的成员"
    ),
    "{n:d} message[s] [was|were] deleted before the group read them": (
        "{n} 条消息未被该组读取就已删除"
    ),
    "its progress is {span} old, and messages are kept for {hours} h: they are deleted before the "
    "group reads them": "消费进度停在 {span} 之前，而消息只保留 {hours} 小时：未读取就会被删除",
    "{command} -v HOURS, or keep the messages elsewhere: gantry pipeline archive": (
        "{command} -v 小时数，或将消息另行保存：gantry pipeline archive"
    ),
    "{queue} has {n:d} of {all:d} unread messages: more consumers do not help": (
        "{all} 条未读消息中有 {n} 条在 {queue}：增加消费者没有帮助"
    ),
    "{command}, or send with keys that differ more": "{command}，或使用更分散的键发送",
    "is {version} in {language}: clients before V4_0_0 miss what brokers ask of them": (
        "是 {language} 的 {version}：V4_0_0 之前的客户端不理解 Broker 的请求"
    ),
    "give that program a client of RocketMQ 4 or 5, or gantrymq": (
        "让该程序使用 RocketMQ 4 或 5 的客户端，或 gantrymq"
    ),
    "the progress of groups on {broker}: {why}": "{broker} 上消费者组的进度：{why}",
    "members of {n:d} groups with smaller backlogs were not asked about themselves; `gantry lag "
    "GROUP` does": "未询问另外 {n} 个积压较小的消费者组的成员；可用 `gantry lag 组名`",
    "the first offsets of {n:d} topics with smaller backlogs": (
        "另外 {n} 个积压较小的主题的最小位点"
    ),
}
