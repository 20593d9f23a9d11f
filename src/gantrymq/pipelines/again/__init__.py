"""Jobs that can be run again: a period of their result is replaced, all of it or nothing."""
