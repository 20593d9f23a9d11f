"""Messages that wait: delay levels, timers, and the redirect of messages into system topics."""
