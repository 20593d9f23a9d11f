"""The source: where a query begins, how much a micro-batch takes, rows from brokers, progress."""
