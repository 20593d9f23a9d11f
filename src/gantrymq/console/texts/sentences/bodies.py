"""Why a body is not shown as it was asked for: decoding, schemas and masking."""

from typing import Final

SENTENCES: Final = {
    # masking
    "withheld: a rule masks a field of this topic by its path, and this body has no fields: it is "
    "neither JSON nor MessagePack with fields, nor does a kept schema fit it": (
        "不予显示：有规则按路径脱敏该主题的字段，而此正文没有字段：既不是带字段的 JSON 或 "
        "MessagePack，也没有匹配的模式"
    ),
    "withheld: rules mask parts of this topic, and this body is nested too deeply": (
        "不予显示：该主题有脱敏规则，而此正文嵌套过深"
    ),
    "withheld: {why:s}": "不予显示：{why}",
    "this body is withheld: {why:s}": "此正文不予显示：{why}",
    "this body is {why:s}": "此正文{why}",
    "property {name} is masked, so no condition may use it": "属性 {name} 已脱敏，不能用作条件",
    "keys are masked in {topic}, so nobody can search for one": (
        "{topic} 的 Key 已脱敏，不能按 Key 查询"
    ),
    "{what} is masked in {topic}, and not in {to}": "{what} 在 {topic} 中脱敏，而在 {to} 中没有",
    "masking by regular expressions needs google-re2: {command}": (
        "按正则表达式脱敏需要 google-re2：{command}"
    ),
    "a pattern has {n:d} characters at most": "表达式最多 {n} 个字符",
    "{text} is no pattern: {why}": "{text} 不是正则表达式：{why}",
    "{text} matches the empty text, so it would match everywhere": (
        "{text} 能匹配空文本，因此会匹配任何位置"
    ),
    "{text} is no path: write {examples}": "{text} 不是路径：请写成 {examples}",
    "{text} is no path: it has 1 to {n:d} parts, and a field last": (
        "{text} 不是路径：应有 1 到 {n} 段，且最后一段为字段"
    ),
    "{text}: write ** once": "{text}：** 只能写一次",
    "{text}: write * three times at most": "{text}：* 最多写三次",
    "{what} is the id of a message: without it nobody finds the message": (
        "{what} 是消息的 ID：没有它就无法找到消息"
    ),
    # what a body is not
    "the body is empty": "正文为空",
    "the body is no JSON: {why}": "正文不是 JSON：{why}",
    "the body is no MessagePack: {why}": "正文不是 MessagePack：{why}",
    "the body is no UTF-8 text: byte {n:d} is none": "正文不是 UTF-8 文本：第 {n} 个字节无效",
    "the body has more than {n:d} values": "正文的值超过 {n} 个",
    "the body is nested deeper than {n:d} levels": "正文嵌套超过 {n} 层",
    "the body is no Protocol Buffers message: a number does not end": (
        "正文不是 Protocol Buffers 消息：有数字没有结束"
    ),
    "the body is no Protocol Buffers message": "正文不是 Protocol Buffers 消息",
    "field {name} ends behind its message": "字段 {name} 超出其消息的末尾",
    "groups of proto2 are not read": "不支持 proto2 的 group",
    # schemas
    "a schema is for form=avro or form=protobuf": "模式只用于 form=avro 或 form=protobuf",
    "an Avro body can only be read with its schema": "Avro 正文只能用其模式解码",
    "a schema of more than {n:d} characters": "模式超过 {n} 个字符",
    "there are no schemas for {form}": "{form} 没有模式",
    "the schema does not fit: {n:d} bytes are left over": "模式不匹配：剩余 {n} 字节",
    "the schema does not fit: {what} has no branch {at}": "模式不匹配：{what} 没有分支 {at}",
    "the schema does not fit: the body ends too early": "模式不匹配：正文过早结束",
    "the schema does not fit: a number of more than ten bytes": "模式不匹配：有超过十个字节的数字",
    "the schema does not fit: a string is no UTF-8": "模式不匹配：有字符串不是 UTF-8",
    "the schema does not fit: field {name} is no {kind}": "模式不匹配：字段 {name} 不是 {kind}",
    "the schema does not fit: {name} is no UTF-8": "模式不匹配：{name} 不是 UTF-8",
    "the schema is nested too deeply": "模式嵌套过深",
    "the schema does not say what {name} is": "模式没有说明 {name} 是什么",
    "the schema declares no message": "模式没有声明消息",
    "no message {name} in the schema; it has {known}": "模式中没有消息 {name}；现有 {known}",
    "an Avro schema is JSON: {why}": "Avro 模式应为 JSON：{why}",
    "no Avro type: {what}": "不是 Avro 类型：{what}",
    "a type {kind} without a name": "类型 {kind} 没有名称",
    "fixed {name} without a size": "fixed {name} 没有大小",
    "enum {name} without symbols": "enum {name} 没有符号",
    "record {name} without fields": "record {name} 没有字段",
    "a field of {name} without a name": "{name} 有字段没有名称",
    "the .proto file declares no message": ".proto 文件没有声明消息",
    "line {n:d} of the .proto file: {word} is not expected here": (
        ".proto 文件第 {n} 行：此处不应有 {word}"
    ),
    "line {n:d} of the .proto file: {text}": ".proto 文件第 {n} 行：{text}",
    "messages are nested too deeply in the .proto file": ".proto 文件中消息嵌套过深",
    "the .proto file has groups of proto2; give a FileDescriptorSet": (
        ".proto 文件使用了 proto2 的 group；请提供 FileDescriptorSet"
    ),
    "the .proto file ends in the middle of a declaration": ".proto 文件在声明中间结束",
    "that is no FileDescriptorSet: it declares no message": (
        "不是 FileDescriptorSet：没有声明消息"
    ),
    "that is no FileDescriptorSet: {why:s}": "不是 FileDescriptorSet：{why}",
}
