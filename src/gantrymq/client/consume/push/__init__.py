"""The push consumer: pulls messages ahead and gives them to a handler or to `async for`."""
