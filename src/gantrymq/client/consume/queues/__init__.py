"""The queues that a member holds: pull loops, locks, unfinished messages, giving a queue back."""
