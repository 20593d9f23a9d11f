"""The sink: rows to messages, tasks that send them, epochs that publish them."""
