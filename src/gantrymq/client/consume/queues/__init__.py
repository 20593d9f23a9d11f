"""Process queues: pull loops, locks, unfinished messages, and giving a queue up."""
