"""A member of a group: its subscriptions, the rebalance, where it begins, offsets, send-backs."""
