"""One file a conversation. Handlers get the two or three parts they use, never the broker."""
