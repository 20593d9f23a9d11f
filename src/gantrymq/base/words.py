"""Small words in what people read."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 message`, `2 messages`."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
