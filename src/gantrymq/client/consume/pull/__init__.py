"""Consumers that ask for messages themselves: `PullConsumer` and `LitePullConsumer`."""
