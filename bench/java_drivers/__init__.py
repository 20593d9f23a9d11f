"""RocketMQ's own benchmark programs, which drive any broker."""
