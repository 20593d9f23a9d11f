"""Publishing: epochs of messages, staged where nobody reads, that become visible exactly once."""
