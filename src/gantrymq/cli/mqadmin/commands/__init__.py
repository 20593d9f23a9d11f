"""The commands of `mqadmin`, a module a subject."""
