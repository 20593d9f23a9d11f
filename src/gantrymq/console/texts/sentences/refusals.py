"""Why the console does not do what a form or an address asks for."""

from typing import Final

SENTENCES: Final = {
    # who asks
    "{user} is no admin of this console: archives and reports hold messages of topics that a key "
    "may not read": ("{user} 不是本控制台的管理员：归档和报告中有密钥无权读取的主题的消息"),
    "{user} is no admin of this console": "{user} 不是本控制台的管理员",
    "{user} may look, and not change anything": "{user} 只能查看，不能修改",
    "{user} is a reader: who may do what is shown to admins": (
        "{user} 是只读用户：权限信息只对管理员显示"
    ),
    "{title:s} is a job of {user}": "{title}：这是 {user} 的任务",
    "log in first": "请先登录",
    "log in to {cluster} with a key of that cluster": "请用 {cluster} 的密钥登录该集群",
    "this login has ended": "登录已结束",
    "name or password is wrong": "名称或密码错误",
    "access key or secret key is wrong": "访问密钥或私钥错误",
    "give an access key and its secret key": "请提供访问密钥及其私钥",
    "too many wrong passwords; try again in {n:d} s": "密码错误次数过多，请在 {n} 秒后重试",
    "the cluster {cluster} takes any key: its access control is off, or the address of this "
    "console is on its white list. Give the console users of its own: {command}": (
        "集群 {cluster} 接受任何密钥：其访问控制未启用，或本控制台的地址在白名单中。"
        "请为控制台添加自己的用户：{command}"
    ),
    "the cluster {cluster} has no broker that could check the key": (
        "集群 {cluster} 没有可以校验密钥的 Broker"
    ),
    "the header Authorization cannot be read": "无法读取请求头 Authorization",
    "this console does not answer to the name {name}; use {names}": (
        "本控制台不响应名称 {name}；请使用 {names}"
    ),
    "a page of another site may not change anything here": "其他网站的页面不能在此修改任何内容",
    "{act} was done, and could not be noted in the audit trail: {why}": (
        "{act} 已完成，但无法写入审计日志：{why}"
    ),
    "{act} failed ({error:s}), and could not be noted in the audit trail: {why}": (
        "{act} 失败（{error}），且无法写入审计日志：{why}"
    ),
    "{kind}: a fault of this console; its log has more": "{kind}：控制台出错；详见其日志",
    # what is asked
    "nothing is at {path}": "{path} 不存在",
    "no language {code}; there are {known}": "没有语言 {code}；可选 {known}",
    "no cluster {name} in this console; it has {known}": "本控制台没有集群 {name}；现有 {known}",
    "no broker {name} with id {n:d} is registered": "没有注册编号为 {n} 的 Broker {name}",
    "no broker {name}; there are {known}": "没有 Broker {name}；现有 {known}",
    "{broker} does not tell what it has: {why}": "{broker} 没有提供其内容：{why}",
    "there is no topic {topic}": "没有主题 {topic}",
    "there is no group {group}": "没有消费者组 {group}",
    "group {group} exists: change it instead": "消费者组 {group} 已存在：请修改它",
    "{brokers} has topic {topic} already: change it instead": (
        "{brokers} 已有主题 {topic}：请修改它"
    ),
    "type the name {name} to confirm: it says {given}": "请输入名称 {name} 以确认：当前为 {given}",
    "say what to change, for instance retryMaxTimes": "请填写要修改的内容，例如 retryMaxTimes",
    "say what to change: queues, permission, order or attributes": (
        "请填写要修改的内容：队列、权限、顺序或属性"
    ),
    "say what to change: password, type or status": "请填写要修改的内容：密码、类型或状态",
    "say what to change: the secret key, or what the access key may do": (
        "请填写要修改的内容：私钥，或该访问密钥的权限"
    ),
    "queue is BROKER:NUMBER, for instance broker-a:0, not {text}": (
        "队列的写法为 BROKER:NUMBER，例如 broker-a:0，而不是 {text}"
    ),
    "a group has its own progress already: name another one": (
        "这就是该消费者组自己的进度：请指定另一个组"
    ),
    "a queue is a broker and a queueId": "队列由 Broker 和队列编号组成",
    "an offset needs its queue: broker and queueId": "偏移量需要指定队列：Broker 和队列编号",
    "that is no cursor: take it from the answer of a search": "游标无效：请使用查询结果中的游标",
    "that cursor is of another search": "该游标属于另一个查询",
    "{n:d} tails run already: close one, or poll new-messages": (
        "已有 {n} 个实时跟踪在运行：请关闭一个，或轮询 new-messages"
    ),
    "no message at {offset:d}: it was removed": "偏移量 {offset} 处没有消息：已被删除",
    "no message at {offset:d}: {why:s}": "偏移量 {offset} 处没有消息：{why}",
    "message {id} does not wait there any more": "消息 {id} 已不在那里等待",
    "{broker} asks at its own interval only": "{broker} 只按自己的间隔回查",
    "name the {kind}": "请指定 {kind}",
    "{text} is no time: write {example}": "{text} 不是时间：请写成 {example}",
    "{text} is not NAME=VALUE": "{text} 不是 NAME=VALUE",
    "the form cannot be read": "无法读取表单",
    "{key} is given twice": "{key} 重复",
    "send JSON with the header Content-Type: {kind}, not {given}": (
        "请发送 JSON，请求头 Content-Type 为 {kind}，而不是 {given}"
    ),
    "the body must be a JSON object": "正文必须是 JSON 对象",
    "the body is larger than {n:d} bytes": "正文超过 {n} 字节",
    "the connection ended within the body": "连接在正文传输中断开",
    "Expected {wanted}, got {given} - at {place}": "{place} 应为 {wanted}，而不是 {given}",
    "Expected {wanted} - at {place}": "{place} 应为 {wanted}",
    "Invalid enum value {value} - at {place}": "{place} 的值 {value} 不在可选范围内",
    "Object contains unknown field {field}": "未知字段 {field}",
    "Object missing required field {field}": "缺少字段 {field}",
    "{path}: Expected {wanted}": "{path}：应为 {wanted}",
    "bodyBase64: {why}": "bodyBase64 无效：{why}",
    "a value has a character that no command takes": "某个值包含命令不接受的字符",
    # what is kept here
    "{n:d} filters are saved already: remove one": "已保存 {n} 个过滤器：请先删除一个",
    "no filter {name} is saved": "没有名为 {name} 的过滤器",
    "{n:d} schemas are kept already: remove one": "已保存 {n} 个模式：请先删除一个",
    "no schema {id} is kept here": "这里没有保存模式 {id}",
    "no schema {id} is kept": "没有保存模式 {id}",
    "there are {n:d} rules already: remove one": "已有 {n} 条规则：请先删除一条",
    "there is no rule {id}": "没有规则 {id}",
    "there are {n:d} notes already: remove one": "已有 {n} 条备注：请先删除一条",
    "there is no note {id}": "没有备注 {id}",
    "{path} cannot be read: {why}; mend or remove it": "无法读取 {path}：{why}；请修复或删除它",
    "{path} cannot be written: {why}": "无法写入 {path}：{why}",
    # letters
    "it was sent again before; say `again` to send it once more": (
        "此死信已重新发送过；勾选“包括已重新发送过的”可再次发送"
    ),
    "{name} is the system's own property": "{name} 是系统属性",
    "job {id} does not send letters, or has ended": "任务 {id} 不是发送死信的任务，或已结束",
    "no job {id}: the console forgets old ones, and all at its end": (
        "没有任务 {id}：控制台会清除旧任务，结束时清除全部"
    ),
    "a job about {subject} runs already: wait for it, or stop it": (
        "关于 {subject} 的任务正在运行：请等待或停止它"
    ),
    "{n:d} jobs run already: wait for one of them, or stop one": (
        "已有 {n} 个任务在运行：请等待其中一个，或停止一个"
    ),
    # users and access keys
    "no broker of this cluster keeps users: {how:s}": "该集群没有 Broker 保存用户：{how}",
    "no broker of this cluster has access files: {how:s}": "该集群没有 Broker 使用访问文件：{how}",
    "start a new cluster with `gantry up --secure`, or give each broker aclEnable=true with an "
    "access file, or authenticationEnabled=true and authorizationEnabled=true with a first user": (
        "用 gantry up --secure 启动新集群，或为每个 Broker 设置 aclEnable=true 和访问文件，"
        "或设置 authenticationEnabled=true、authorizationEnabled=true 和首个用户"
    ),
    "no broker has a user {user}": "没有 Broker 拥有用户 {user}",
    "{brokers} has a user {user} already: change it, or copy it to the other brokers": (
        "{brokers} 已有用户 {user}：请修改它，或复制到其他 Broker"
    ),
    "{broker} has no user {user}": "{broker} 没有用户 {user}",
    "{broker} would have no super user that is enabled without {user}": (
        "没有 {user} 的话，{broker} 将没有启用的超级用户"
    ),
    "this console asks with the key of {user}: give it another one first": (
        "本控制台正在使用 {user} 的密钥：请先为控制台换一个"
    ),
    "this console asks with the key {key}: give it another one first": (
        "本控制台正在使用密钥 {key}：请先为控制台换一个"
    ),
    "a password begins and ends with no space": "密码首尾不能有空格",
    "a secret key begins and ends with no space": "私钥首尾不能有空格",
    "{user} has no entry about {resource} in its policy {kind}": (
        "{user} 的策略 {kind} 中没有关于 {resource} 的条目"
    ),
    "{text} is neither an address nor a network such as {example}": (
        "{text} 既不是地址，也不是 {example} 这样的网段"
    ),
    "{text} is no resource: write {examples}, or * for everything": (
        "{text} 不是资源：请写成 {examples}，或用 * 表示全部"
    ),
    "{text}: write Topic:NAME, Group:NAME or Cluster:NAME": (
        "{text}：请写成 Topic:NAME、Group:NAME 或 Cluster:NAME"
    ),
    "no broker has an access key {key}": "没有 Broker 拥有访问密钥 {key}",
    "{brokers} has an access key {key} already: change it": (
        "{brokers} 已有访问密钥 {key}：请修改它"
    ),
    "{broker} has no access file": "{broker} 没有访问文件",
    "{broker} has no access key {key}": "{broker} 没有访问密钥 {key}",
    "{broker} would have no admin without {key}": "没有 {key} 的话，{broker} 将没有管理员",
    "{text}: write each address by itself, brokers split at commas": (
        "{text}：请逐个填写地址，Broker 会在逗号处拆分"
    ),
    "no broker has an access file {path}": "没有 Broker 拥有访问文件 {path}",
    # archives and reports
    "the pipelines need Spark: {command}, and Java 17": "流水线需要 Spark：{command}，以及 Java 17",
    "{name} is no name: letters, digits, dot, dash and underscore, 64 at most": (
        "名称 {name} 无效：只能有字母、数字、点、连字符和下划线，最多 64 个"
    ),
    "no archive {name} in {folder}": "{folder} 中没有归档 {name}",
    "no report {name} in {folder}": "{folder} 中没有报告 {name}",
    "no replay {name} in {folder}": "{folder} 中没有重放 {name}",
    "its index cannot be read": "无法读取其索引",
    "the report {name} has no file {file}": "报告 {name} 没有文件 {file}",
    "{command} takes too long": "{command} 用时过长",
}
