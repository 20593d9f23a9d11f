"""Producers, consumers and the admin, over one core that they share."""
