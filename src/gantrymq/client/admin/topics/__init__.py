"""Topics: fixed queue lists, fewer queues, and a backlog spread over more queues."""
