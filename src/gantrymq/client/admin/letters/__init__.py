"""Dead letters: reading them and sending them again."""
