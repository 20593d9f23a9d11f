"""Plurals in texts for people."""


def counted(number: int, noun: str, plural: str | None = None, *, form: str = "") -> str:
    """`1 message`, `2 messages`; `form` is how the number is written, such as `,`."""
    return f"{number:{form}} {noun if number == 1 else plural or f'{noun}s'}"


def are(number: int) -> str:
    """`is` for one of something, `are` for more."""
    return "is" if number == 1 else "are"
