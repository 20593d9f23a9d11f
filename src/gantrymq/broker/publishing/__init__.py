"""Epochs: messages staged in a topic that no client reads, made visible together, once."""
