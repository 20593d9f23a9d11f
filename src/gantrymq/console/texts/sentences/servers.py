"""Why a server or a part of a cluster did not tell or do something, and gaps of searches."""

from typing import Final

SENTENCES: Final = {
    # no answer
    "connect to {address} failed: {why}": "连接 {address} 失败：{why}",
    "connect to {address} took over {n:d} s": "连接 {address} 超过 {n} 秒",
    "{address} closed the connection": "{address} 关闭了连接",
    "{address} is not connected": "未连接到 {address}",
    "{address} did not answer in time": "{address} 没有及时应答",
    "no name server answers: {why:s}": "没有名字服务器应答：{why}",
    "{address} answered code {n:d}: {why}": "{address} 应答错误码 {n}：{why}",
    "no route for topic {topic}: {why:s}; create the topic first (Admin.create_topic, mqadmin "
    "updateTopic) or let the brokers create it on first send (autoCreateTopicEnable)": (
        "没有主题 {topic} 的路由：{why}；请先创建主题（mqadmin updateTopic），或让 Broker 在首次"
        "发送时创建（autoCreateTopicEnable）"
    ),
    "no route for topic {topic}; create the topic first (Admin.create_topic, mqadmin updateTopic) "
    "or let the brokers create it on first send (autoCreateTopicEnable)": (
        "没有主题 {topic} 的路由；请先创建主题（mqadmin updateTopic），或让 Broker 在首次发送时创建"
        "（autoCreateTopicEnable）"
    ),
    "it has queues to write to, but no broker with a master": "有可写队列，但没有带主节点的 Broker",
    "no master among {names}": "{names} 中没有主节点",
    "no broker {name}; known: {known}": "没有 Broker {name}；已知：{known}",
    "no broker at {address}; known: {known}": "{address} 没有 Broker；已知：{known}",
    "no member {client} of group {group} is connected": "消费者组 {group} 没有连接的成员 {client}",
    # a change at several brokers
    "{what:s}: done on {done}; failed on {why:s}. It can be repeated as a whole": (
        "{what}：已在 {done} 上完成；失败：{why}。可以整体重试"
    ),
    "{what:s}: done nowhere; failed on {why:s}. It can be repeated as a whole": (
        "{what}：均未完成；失败：{why}。可以整体重试"
    ),
    "user {user} is to be created": "创建用户 {user}",
    "user {user} is to be changed": "修改用户 {user}",
    "user {user} is to be copied from {source}": "从 {source} 复制用户 {user}",
    "user {user} is to be deleted": "删除用户 {user}",
    "a policy of user {user} is to be put": "写入用户 {user} 的策略",
    "a policy of user {user} is to be removed": "删除用户 {user} 的策略",
    "account {key} is to be added": "添加访问密钥 {key}",
    "account {key} is to be changed": "修改访问密钥 {key}",
    "account {key} is to be copied from {source}": "从 {source} 复制访问密钥 {key}",
    "account {key} is to be deleted": "删除访问密钥 {key}",
    "the white list is to be changed": "修改白名单",
    "create topic {topic}": "创建主题 {topic}",
    "delete topic {topic}": "删除主题 {topic}",
    "change group {group}": "修改消费者组 {group}",
    "delete group {group}": "删除消费者组 {group}",
    "clone offsets of {group}": "复制 {group} 的进度",
    "{name} belongs to the brokers and cannot be deleted": "{name} 属于 Broker，不能删除",
    "{n:d} member[s] of {group} still run[s]: stop them first, or use --force": (
        "{group} 还有 {n} 个成员在运行：请先停止它们，或强制删除"
    ),
    "{topic} has {n:d} queue[s] to read on {broker}: fewer hide what lies in the others; {command} "
    "waits until they are read, --force does not": (
        "{topic} 在 {broker} 上有 {n} 个读队列：减少会隐藏其余队列中的消息；{command} 会等待读完"
    ),
    "{topic} is on none of {brokers}": "{brokers} 上都没有 {topic}",
    # progress
    "{queue} is no queue of {topic} that can be read": "{queue} 不是 {topic} 的可读队列",
    "{queue} holds offsets {first:d} to {end:d}; {to} is none of them": (
        "{queue} 的偏移量为 {first} 到 {end}；{to} 不在其中"
    ),
    "{broker} cannot move the progress of a running group by itself (useServerSideResetOffset is "
    "not on): stop {group} first, its members would undo it": (
        "{broker} 不能自行移动运行中消费者组的进度（useServerSideResetOffset 未启用）："
        "请先停止 {group}，否则其成员会撤销修改"
    ),
    # what waits
    "a RocketMQ broker tells what waits in its delay levels, and not its timer messages nor how "
    "late deliveries were": (
        "RocketMQ 的 Broker 只提供延迟级别中等待的消息，不提供定时消息和投递延误"
    ),
    "more messages than are shown may be due at this same time: ask for more of them at once": (
        "同一时间到期的消息可能多于所显示的：请一次查询更多"
    ),
    "broker {name} cannot tell what waits: only GantryMQ can": (
        "Broker {name} 不能提供等待的消息：只有 GantryMQ 可以"
    ),
    # letters
    "{id} is no dead letter of {group}": "{id} 不是 {group} 的死信",
    "{topic} cannot be read on {brokers}: brokers before 4.9.2 made it write-only. {command} gives "
    "it read permission": (
        "{topic} 在 {brokers} 上不可读：4.9.2 之前的 Broker 将其设为只写。{command} 可授予读权限"
    ),
    "{message} does not tell which topic it came from": "{message} 没有说明来自哪个主题",
    "{topic} does not exist: nothing would read the letter": "{topic} 不存在：没有人会读取该死信",
    # searches
    "no message {id}": "没有消息 {id}",
    "{id} is no message id: {why}": "{id} 不是消息 ID：{why}",
    "{broker} did not answer: {why:s}": "{broker} 没有应答：{why}",
    "stopped after {n:d} message[s]; go on from {ms:d} ms": (
        "在 {n} 条消息后停止；可从 {ms} 毫秒继续"
    ),
    "stopped after {n:d} message[s]": "在 {n} 条消息后停止",
    "{queue} holds {first:d} to {last:d}": "{queue} 的偏移量为 {first} 到 {last}",
    "{broker} has more than {n:d} of them": "{broker} 上超过 {n} 条",
    "{queue}: {first:d} to {last:d} are not there any more": "{queue}：{first} 到 {last} 已不存在",
    "{queue}: messages before {offset:d} are deleted": "{queue}：{offset} 之前的消息已删除",
    "what {queue} held before {ms:d} ms is deleted": "{queue} 中 {ms} 毫秒之前的消息已删除",
}
