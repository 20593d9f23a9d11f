"""What forms answer when something was done, and what previews say before it."""

from typing import Final

SENTENCES: Final = {
    # topics and groups
    "topic {topic} is on {brokers}": "主题 {topic} 已建立在 {brokers}",
    "topic {topic} is changed on {brokers}": "主题 {topic} 已在 {brokers} 上修改",
    "topic {topic} is deleted with {lost:s}": "主题 {topic} 已删除，同时删除：{lost}",
    "its route in the name servers: no broker has it": "名字服务器中的路由：没有 Broker 拥有它",
    "all that {brokers} stored in it, read by {groups}": (
        "{brokers} 中存储的全部消息，读取它的消费者组：{groups}"
    ),
    "all that {brokers} stored in it": "{brokers} 中存储的全部消息",
    "group {group} is created on {brokers}": "消费者组 {group} 已在 {brokers} 上创建",
    "group {group} is changed on {brokers}": "消费者组 {group} 已在 {brokers} 上修改",
    "group {group} is paused on {brokers}": "消费者组 {group} 已在 {brokers} 上暂停",
    "group {group} is resumed on {brokers}": "消费者组 {group} 已在 {brokers} 上恢复",
    "group {group} is deleted": "消费者组 {group} 已删除",
    "no retry queues: what members give back is dropped, not even a dead letter": (
        "没有重试队列：成员退回的消息将被丢弃，也不会成为死信"
    ),
    "members keep running and ask in vain, until the group is resumed": (
        "成员继续运行但取不到消息，直到消费者组恢复"
    ),
    "{moved:d} of {n:d} queue[s] would be moved: {again:d} message[s] again, {skipped:d} skipped": (
        "将移动 {n} 个队列中的 {moved} 个：重新消费 {again} 条消息，跳过 {skipped} 条"
    ),
    "{moved:d} of {n:d} queue[s] moved: {again:d} message[s] again, {skipped:d} skipped": (
        "已移动 {n} 个队列中的 {moved} 个：重新消费 {again} 条消息，跳过 {skipped} 条"
    ),
    "{target} has the progress of {group} on {topic}": (
        "{target} 已得到 {group} 在 {topic} 上的进度"
    ),
    "waits until these are read: {left}": "将等待以下消息读完：{left}",
    "nothing unread is in the way": "没有未读消息阻碍",
    # messages
    "message {id} is in {queue}, offset {offset:d}": "消息 {id} 已写入 {queue}，偏移量 {offset}",
    "{member} consumed it after {n:d} ms: {result}": "{member} 已消费，用时 {n} 毫秒：{result}",
    "{member} did not take it after {n:d} ms: {result}": (
        "{member} 没有接受，用时 {n} 毫秒：{result}"
    ),
    "{member} consumed it: {result}": "{member} 已消费：{result}",
    "{member} did not take it: {result}": "{member} 没有接受：{result}",
    "filter {name} is saved": "过滤器 {name} 已保存",
    "filter {name} is removed": "过滤器 {name} 已删除",
    "bodies of {topic} are read as {form} with this schema": (
        "{topic} 的正文将按此模式以 {form} 解码"
    ),
    "the schema is removed": "模式已删除",
    "path {what} is masked in messages of {topic}": "{topic} 的消息中字段 {what} 已脱敏",
    "property {what} is masked in messages of {topic}": "{topic} 的消息中属性 {what} 已脱敏",
    "pattern {what} is masked in messages of {topic}": "{topic} 的消息中匹配 {what} 的内容已脱敏",
    "the rule is removed": "规则已删除",
    "message {id} is recalled": "消息 {id} 已撤回",
    "message {id} was asked for; the broker does not tell more": (
        "已请求撤回消息 {id}；Broker 没有提供更多信息"
    ),
    "the broker asks again": "Broker 将再次回查",
    "the broker asks now": "Broker 正在回查",
    # letters
    "sent again: {queue}, offset {offset:d}": "已重新发送：{queue}，偏移量 {offset}",
    "readable now: {brokers}": "现已可读：{brokers}",
    "it was readable": "原本就可读",
    "the note is kept": "备注已保存",
    "the note is removed": "备注已删除",
    # users and access keys
    "user {user} is created on {brokers}": "用户 {user} 已在 {brokers} 上创建",
    "user {user} is changed on {brokers}": "用户 {user} 已在 {brokers} 上修改",
    "user {user} is on {brokers} as on {source}": "{brokers} 上的用户 {user} 已与 {source} 一致",
    "deleted: user {user}, {loss:s}": "已删除：用户 {user}，{loss}",
    "the user on {brokers}, with {n:d} policy [entry|entries]": (
        "{brokers} 上的该用户，包括 {n} 条策略"
    ),
    "{user}: the entry about {resource} is removed on {brokers}": (
        "{user}：关于 {resource} 的策略已在 {brokers} 上删除"
    ),
    "{user}: {rule}, on {brokers}": "{user}：{rule}，已在 {brokers} 上生效",
    "account {key} is added on {brokers}": "访问密钥 {key} 已在 {brokers} 上添加",
    "account {key} is changed on {brokers}": "访问密钥 {key} 已在 {brokers} 上修改",
    "account {key} is on {brokers} as on {source}": (
        "{brokers} 上的访问密钥 {key} 已与 {source} 一致"
    ),
    "account {key} is deleted on {brokers}": "访问密钥 {key} 已在 {brokers} 上删除",
    "the access key on {brokers}, with its secret key and rights": (
        "{brokers} 上的该访问密钥，包括其私钥和权限"
    ),
    "{brokers} has no such user": "{brokers} 上没有该用户",
    "{brokers} has no such access key": "{brokers} 上没有该访问密钥",
    "this console asks with its old password: give it the new one": (
        "本控制台仍使用旧密码：请更新为新密码"
    ),
    "this console asks with its old secret key: give it the new one": (
        "本控制台仍使用旧私钥：请更新为新私钥"
    ),
    "no key is needed from {addresses} on {brokers}": "{brokers} 不再要求 {addresses} 提供密钥",
}
