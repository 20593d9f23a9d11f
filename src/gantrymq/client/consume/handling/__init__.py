"""User handlers: `handler_check` checks them when registered, `workers` call them."""
