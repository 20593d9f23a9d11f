"""Typed views of a command's extension fields, one module a subject."""
