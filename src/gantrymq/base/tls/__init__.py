"""TLS: settings under RocketMQ's names, contexts, and a network with TLS on top of any other."""
