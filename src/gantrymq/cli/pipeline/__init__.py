"""`gantry pipeline`: one module a command."""
