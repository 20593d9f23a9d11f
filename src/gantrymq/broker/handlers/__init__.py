"""The handlers of request codes, one file a topic. Each gets only the parts that it uses."""
