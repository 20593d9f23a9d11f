"""RocketMQ's grammar, one method a level: or, and, equality, comparison, unary, primary.

It accepts what RocketMQ accepts and refuses the rest, with four differences, which the guide names:
text after a complete condition is an error (RocketMQ ignores it), `0L` is zero, LIKE exists, and
the words of the text operators may also be names of properties.
"""

import math
from collections.abc import Callable

from gantrymq.filter.errors import BadSql
from gantrymq.filter.like import BadPattern, like
from gantrymq.filter.nodes import (
    AllOf,
    AnyOf,
    Bare,
    Equal,
    Holds,
    IsNull,
    Like,
    Node,
    Not,
    Number,
    OneOf,
    Order,
    Property,
    Text,
    Truth,
    Unknown,
)
from gantrymq.filter.numbers import DOUBLE, INT, INT_MAX, LONG, LONG_MAX, alike
from gantrymq.filter.tokens import BROKEN, END, SIGN, TEXT, WHOLE, WORD, Token, cut

DEPTH_MAX = 40
"""Nested parentheses, signs and operators."""
NODES_MAX = 1_000
"""Comparisons, literals and properties of one condition."""

RESERVED = frozenset({"NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS"})
TEXT_SIGNS = frozenset({"CONTAINS", "STARTSWITH", "ENDSWITH"})
ORDER_SIGNS = frozenset({">", ">=", "<", "<="})
TRUTHS = {"TRUE": True, "FALSE": False, "NULL": None}


def parse(sql: str) -> "Parsed":
    """The tree of a condition, or BadSql with the place and the reason."""
    return Parsed(sql)


class Parsed:
    """One condition: its tree, its size, and its operators that not every broker has."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.nodes = 0
        self.words: set[str] = set()
        """Operators that not every RocketMQ has: LIKE is ours, the others came with 5.1.3."""
        self._tokens = cut(sql)
        self._next = 0
        self._nested = 0
        self.root = self._condition(self._either())
        self._expect_end()

    # Tokens

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    @property
    def _after(self) -> Token:
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._token
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _took(self, text: str) -> bool:
        """Take a sign or a keyword, if it comes next."""
        if (self._token.word or self._token.text) != text:
            return False
        self._take()
        return True

    def _expect(self, text: str, where: str) -> None:
        if not self._took(text):
            raise self._bad(self._token, f"{where} needs {text}, not {self._token}")

    def _expect_end(self) -> None:
        token = self._token
        if token.kind == END or (token.text == "-" and self.sql.startswith("--", token.at)):
            return  # a last line comment without its line end
        last = self._tokens[self._next - 1]
        leading = token.kind == WHOLE and last.text == "0" and last.at + 1 == token.at
        hint = "; numbers do not begin with 0" if leading else ""
        if token.text in ("+", "-"):
            hint = "; there is no arithmetic"
        raise self._bad(token, f"{token} stands behind the end of the condition{hint}")

    def _bad(self, at: Token | Node, problem: str) -> BadSql:
        return BadSql(self.sql, at.at, problem)

    def _made(self, node: Node) -> Node:
        self.nodes += 1
        if self.nodes > NODES_MAX:
            raise self._bad(node, f"more than {NODES_MAX:,} parts")
        if node.deep > DEPTH_MAX:
            raise self._bad(node, f"nested more than {DEPTH_MAX} deep")
        return node

    # Levels

    def _either(self) -> Node:
        return self._joined(self._both, "OR", AnyOf)

    def _both(self) -> Node:
        return self._joined(self._equality, "AND", AllOf)

    def _joined(
        self, part: Callable[[], Node], word: str, kind: Callable[[int, list[Node]], Node]
    ) -> Node:
        first = part()
        if self._token.word != word:
            return first
        parts = [self._condition(first)]
        while self._took(word):
            parts.append(self._condition(part()))
        return self._made(kind(first.at, parts))

    def _equality(self) -> Node:
        left = self._comparison()
        while True:
            if self._took("="):
                left = self._equal(left, self._comparison())
            elif self._took("<>"):
                left = self._made(Not(left.at, self._equal(left, self._comparison())))
            elif self._took("IS"):
                negated = self._took("NOT")
                self._expect("NULL", "IS NOT" if negated else "IS")
                left = self._made(IsNull(left.at, left))
                if negated:
                    left = self._made(Not(left.at, left))
            else:
                return left

    def _comparison(self) -> Node:
        left = self._unary()
        while True:
            token = self._token
            if token.kind == SIGN and token.text in ORDER_SIGNS:
                self._take()
                left = self._order(token.text, left, self._unary())
                continue
            negated = token.word == "NOT"
            operator = self._after if negated else token
            if operator.word in TEXT_SIGNS | {"BETWEEN", "IN", "LIKE"}:
                self._take()
                if negated:
                    self._take()
                left = self._with_word(operator.word, left, negated)
            elif negated:
                problem = f"NOT needs IN, BETWEEN or LIKE, not {operator}"
                raise self._bad(operator, problem)
            else:
                return left

    def _with_word(self, word: str, left: Node, negated: bool) -> Node:
        if word == "BETWEEN":
            return self._between(left, negated)
        if word == "IN":
            return self._in(left, negated)
        self.words.add(word)
        if word == "LIKE":
            return self._like(left, negated)
        value = self._text(word)
        return self._made(Holds(left.at, word, left, value, negated))

    def _unary(self) -> Node:
        self._nested += 1
        token = self._token
        if self._nested > DEPTH_MAX:
            raise self._bad(token, f"nested more than {DEPTH_MAX} deep")
        if self._took("+"):
            node = self._unary()
        elif self._took("-"):
            node = self._made(_negated(token.at, self._unary()))
        elif self._took("NOT"):
            node = self._made(Not(token.at, self._condition(self._unary())))
        else:
            node = self._primary()
        self._nested -= 1
        return node

    def _primary(self) -> Node:
        token = self._take()
        if token.kind == TEXT:
            return self._made(Text(token.at, _unquoted(token)))
        if token.kind in (WHOLE, BROKEN):
            return self._made(self._number(token))
        if token.word in TRUTHS:
            return self._made(Truth(token.at, TRUTHS[token.word]))
        if token.kind == WORD and token.word not in RESERVED:
            return self._made(Property(token.at, token.text))
        if token.text == "(" and token.kind == SIGN:
            inner = self._either()
            self._expect(")", "the parenthesis")
            return inner
        raise self._bad(token, f"a property or a value is missing, found {token}")

    # Parts and what may stand in them

    def _condition(self, node: Node) -> Node:
        if isinstance(node, Property):
            return self._made(Bare(node.at, node))
        if not node.is_condition:
            raise self._bad(node, "this is a value, not a condition")
        return node

    def _equal(self, left: Node, right: Node) -> Node:
        for side in (left, right):
            if isinstance(side, Truth) and side.value is None:
                raise self._bad(side, "nothing equals NULL, write IS NULL")
        if isinstance(left, Truth) and _is_literal(right) and not isinstance(right, Truth):
            raise self._bad(right, "TRUE and FALSE cannot be compared with this")
        return self._made(Equal(left.at, left, right))

    def _order(self, sign: str, left: Node, right: Node) -> Node:
        for side in (left, right):
            if isinstance(side, Text):
                raise self._bad(side, f"{sign} compares numbers, not strings")
            if side.is_condition:
                raise self._bad(side, f"{sign} compares numbers, not conditions")
        return self._made(Order(left.at, sign, left, right))

    def _between(self, value: Node, negated: bool) -> Node:
        low = self._unary()
        self._expect("AND", "BETWEEN")
        high = self._unary()
        signs = ("<", ">") if negated else (">=", "<=")
        parts = [self._order(signs[0], value, low), self._order(signs[1], value, high)]
        if isinstance(low, Number) and isinstance(high, Number) and not negated:
            first, second = alike(low.value, high.value)
            if low.literal and high.literal and second < first:
                raise self._bad(high, "BETWEEN wants the smaller number first")
        return self._made((AnyOf if negated else AllOf)(value.at, parts))

    def _in(self, left: Node, negated: bool) -> Node:
        if not isinstance(left, Property):
            hint = "; write x NOT IN (...)" if isinstance(left, Not) else ""
            raise self._bad(left, f"IN wants a property on its left{hint}")
        self._expect("(", "IN")
        values = [self._text("IN")]
        while self._took(","):
            values.append(self._text("IN"))
        self._expect(")", "the list of IN")
        return self._made(OneOf(left.at, left, frozenset(values), negated))

    def _like(self, left: Node, negated: bool) -> Node:
        if not isinstance(left, Property):
            raise self._bad(left, "LIKE wants a property on its left")
        at = self._token
        pattern, escape = self._text("LIKE"), None
        if self._took("ESCAPE"):
            at = self._token
            escape = self._text("ESCAPE")
            if len(escape) != 1:
                raise self._bad(at, "ESCAPE wants one character")
        try:
            compiled = like(pattern, escape)
        except BadPattern as error:
            raise self._bad(at, str(error)) from None
        return self._made(Like(left.at, left, compiled, negated))

    def _text(self, where: str) -> str:
        token = self._take()
        if token.kind != TEXT:
            raise self._bad(token, f"{where} needs a string in single quotes, not {token}")
        return _unquoted(token)

    def _number(self, token: Token) -> Number:
        if token.kind == BROKEN:
            broken = float(token.text)
            if broken == 0 or math.isinf(broken):
                raise self._bad(token, f"{token} is no double above zero; write 0 for zero")
            return Number(token.at, broken, DOUBLE)
        digits = token.text.rstrip("lL")
        if len(digits) > len(str(LONG_MAX)) or int(digits) > LONG_MAX:
            raise self._bad(token, f"{token} is greater than {LONG_MAX}")
        whole = int(digits)
        return Number(token.at, whole, INT if whole <= INT_MAX else LONG)


def _is_literal(node: Node) -> bool:
    return isinstance(node, Text | Truth) or (isinstance(node, Number) and node.literal)


def _negated(at: int, of: Node) -> Node:
    if isinstance(of, Number):
        return Number(at, -of.value, of.type, literal=False)
    return Unknown(at, of)


def _unquoted(token: Token) -> str:
    return token.text[1:-1].replace("''", "'")
