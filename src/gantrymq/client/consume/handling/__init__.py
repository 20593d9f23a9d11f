"""User handlers: checked when they are registered, called by workers."""
