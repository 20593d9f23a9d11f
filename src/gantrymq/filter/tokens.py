"""A condition cut into words, as RocketMQ's grammar cuts it."""

import re
from typing import NamedTuple

from gantrymq.filter.errors import BadSql

CHARACTERS_MAX = 65_536

WORD, TEXT, WHOLE, BROKEN, SIGN, END = "word", "text", "whole", "broken", "sign", "end"
"""Kinds: keyword or property, string, integer, floating point, operator, end of the condition."""

_TOKEN = re.compile(
    r"""
    (?P<skip>   [ \t\n\r\f]+ | /\*.*?\*/ )
  | (?P<text>   '(?:''|[^'])*' )
  | (?P<broken> [0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)? | \.[0-9]+(?:[eE][+-]?[0-9]+)?
              | [0-9]+[eE][+-]?[0-9]+ )
  | (?P<whole>  (?:0|[1-9][0-9]*)[lL]? )
  | (?P<word>   [a-zA-Z_$][a-zA-Z0-9_$]* )
  | (?P<sign>   <> | >= | <= | [=<>(),+-] )
    """,
    re.VERBOSE | re.DOTALL,
)
_LINE_COMMENT = re.compile(r"--[^\n\r]*[\n\r]")
"""It needs its line end: without one, `--` is two minus signs, as in RocketMQ. It is looked for
only before the last line end: a row of minus signs would be read to its end from each of them."""


class Token(NamedTuple):
    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """The word in upper case, as keywords have no case; empty for other tokens."""
        return self.text.upper() if self.kind == WORD else ""

    def __str__(self) -> str:
        return "the end" if self.kind == END else self.text


def cut(sql: str) -> list[Token]:
    """The tokens, with one for the end."""
    if len(sql) > CHARACTERS_MAX:
        raise BadSql(sql, CHARACTERS_MAX, f"more than {CHARACTERS_MAX:,} characters")
    found: list[Token] = []
    at, last_line_end = 0, max(sql.rfind("\n"), sql.rfind("\r"))
    while at < len(sql):
        if at < last_line_end and (comment := _LINE_COMMENT.match(sql, at)):
            at = comment.end()
            continue
        match = _TOKEN.match(sql, at)
        if match is None:
            raise BadSql(sql, at, _oddity(sql, at))
        kind = match.lastgroup
        assert kind is not None, "every alternative has a name"
        if kind != "skip":
            found.append(Token(kind, match[0], at))
        at = match.end()
    found.append(Token(END, "", at))
    return found


def _oddity(sql: str, at: int) -> str:
    if sql[at] == "'":
        return "the string has no closing quote"
    if sql.startswith("/*", at):
        return "the comment has no end"
    if sql.startswith("!=", at):
        return "there is no !=, write <>"
    if sql[at] == '"':
        return "strings stand in single quotes"
    if sql[at] in "*/":
        return f"there is no arithmetic: {sql[at]!r}"
    return f"{sql[at]!r} means nothing here"
