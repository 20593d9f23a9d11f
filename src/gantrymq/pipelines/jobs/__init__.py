"""Jobs: messages to rows of a table; a period of the result is replaced as a whole."""
