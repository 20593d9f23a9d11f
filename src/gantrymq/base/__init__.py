"""General tools that know nothing of messages.

Ports to the world: `disk`, `network`, `clock`, `offload`, `tokens` (chance). Tasks and waiting:
`background`, `upkeep`, `watermark`. Settings and small files: `config`, `own_file`, `files`,
`saved`. Java's types and hash, layouts of bytes, errors, logs and texts for people are the rest.
What is RocketMQ's own, on the wire or on disk, belongs to `protocol`.
"""
