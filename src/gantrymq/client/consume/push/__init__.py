"""The push consumer: messages are fetched ahead and given to handlers or to `async for`."""
