"""A condition's tree turned into one Python expression over the raw properties of a message.

The condition's text never becomes code: names and values are constants of the function, under
generated names. Every node is written in one of three ways:

- `value`: True, False or None (unknown), and Undecidable is raised where Java would throw;
- `truth`: anything truthy exactly when the value is True, and raises the same;
- `hope`: truthy exactly when the value is True; where the value could not be decided it may also
  be falsy, because the caller takes both for "no match".

Java evaluates the right side of an AND also if the left one is unknown, and an exception there
ends the evaluation: only `hope` may stop at the first part that is not true.
"""

import operator
from collections.abc import Callable
from typing import Any

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
from gantrymq.filter.numbers import (
    DOUBLE,
    INT,
    LONG,
    Undecidable,
    alike,
    as_bool,
    as_double,
    as_int,
    as_long,
    ranked,
)
from gantrymq.kernel import find_property

READERS = {INT: "as_int", LONG: "as_long", DOUBLE: "as_double"}
ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
WORLD: dict[str, object] = {
    "find": find_property,
    "as_int": as_int,
    "as_long": as_long,
    "as_double": as_double,
    "as_bool": as_bool,
    "Undecidable": Undecidable,
}


def function_of(root: Node) -> Callable[[bytes], bool]:
    """A function that says whether a message with these raw properties matches."""
    writer = _Writer()
    hope = writer.hope(root)
    code = (
        "def matches(raw):\n"
        "    try:\n"
        f"        return True if {hope} else False\n"
        "    except Undecidable:\n"
        "        return False\n"
    )
    world = dict(writer.world)
    exec(compile(code, "<SQL condition>", "exec"), world)
    made: Callable[[bytes], bool] = world["matches"]  # type: ignore[assignment]
    return made


class _Writer:
    """Writes expressions, and collects the constants they name."""

    def __init__(self) -> None:
        self.world: dict[str, object] = dict(WORLD)
        self._spares = 0

    def _constant(self, value: object) -> str:
        name = f"k{len(self.world)}"
        self.world[name] = value
        return name

    def _spare(self) -> str:
        self._spares += 1
        return f"t{self._spares}"

    # The three ways

    def value(self, node: Node) -> str:
        if isinstance(node, AllOf):
            return self._all_value(node)
        if isinstance(node, AnyOf):
            return self._any_value(node)
        if isinstance(node, Not):
            if isinstance(node.of, IsNull):
                return f"({self.operand(node.of.of)} is not None)"
            name = self._spare()
            return f"(None if ({name} := {self.value(node.of)}) is None else not {name})"
        if isinstance(node, Truth):
            return str(node.value)
        if isinstance(node, Bare):
            return f"(None if {self.operand(node.of)} is None else False)"
        if isinstance(node, IsNull):
            return f"({self.operand(node.of)} is None)"
        if isinstance(node, Equal):
            return self._equal(node)
        if isinstance(node, Order):
            return self._order(node)
        return self._text_test(node)

    def truth(self, node: Node) -> str:
        if isinstance(node, AllOf):
            if not any(_may_raise(part) for part in node.parts[1:]):
                return "(" + " and ".join(self.truth(part) for part in node.parts) + ")"
            return self._all_value(node)
        if isinstance(node, AnyOf):
            return "(" + " or ".join(self.truth(part) for part in node.parts) + ")"
        if isinstance(node, Not) and not isinstance(node.of, IsNull):
            return f"({self.value(node.of)} is False)"
        if (
            isinstance(node, Equal)
            and isinstance(node.left, Property)
            and isinstance(node.right, Text)
        ):  # None never equals a text
            return f"({self.operand(node.left)} == {self.operand(node.right)})"
        if isinstance(node, OneOf) and not node.negated:
            return f"({self.operand(node.of)} in {self._texts(node)})"
        return self.value(node)

    def hope(self, node: Node) -> str:
        if isinstance(node, AllOf):
            return "(" + " and ".join(self.hope(part) for part in node.parts) + ")"
        if isinstance(node, AnyOf):
            parts = [self.truth(part) for part in node.parts[:-1]]
            return "(" + " or ".join([*parts, self.hope(node.parts[-1])]) + ")"
        return self.truth(node)

    # Operands: bytes for texts, numbers, None for unknown, conditions as they are

    def operand(self, node: Node) -> str:
        if isinstance(node, Property):
            return f"find(raw, {self._constant(node.name.encode())})"
        if isinstance(node, Text):
            return self._constant(_raw(node.value))
        if isinstance(node, Number):
            return self._constant(node.value)
        if isinstance(node, Unknown):
            return f"({self.operand(node.behind)}, None)[1]"
        return self.value(node)

    # Logic

    def _all_value(self, node: AllOf) -> str:
        names = [self._spare() for _ in node.parts]
        tests = [
            f"({name} := {self.value(part)}) is not False"
            for name, part in zip(names, node.parts, strict=True)
        ]
        # Each is True or None now: the chain is None if one is, and True otherwise.
        return f"({' and '.join(tests)} and ({' and '.join(names)}))"

    def _any_value(self, node: AnyOf) -> str:
        names = [self._spare() for _ in node.parts]
        tests = [
            f"({name} := {self.value(part)})" for name, part in zip(names, node.parts, strict=True)
        ]
        return f"({' or '.join(tests)} or (None if None in ({', '.join(names)}) else False))"

    # Comparisons

    def _equal(self, node: Equal) -> str:
        left, right = node.left, node.right
        if _is_constant(right):
            name, other = self._spare(), self.operand(right)
            same = self._same(left, right, name, other)
            return f"(None if ({name} := {self.operand(left)}) is None else {same})"
        if _is_constant(left):
            name, other = self._spare(), self.operand(left)
            same = self._same(left, right, other, name)
            return f"(False if ({name} := {self.operand(right)}) is None else {same})"
        one, two = self._spare(), self._spare()
        both = f"(({one} := {self.operand(left)}), ({two} := {self.operand(right)}))"
        same = self._same(left, right, one, two)
        return (
            f"((True if {two} is None else None) if {both}[0] is None"
            f" else False if {two} is None else {same})"
        )

    def _same(self, left: Node, right: Node, one: str, two: str) -> str:
        """Equality of two values that are known."""
        if isinstance(left, Number) and isinstance(right, Number):
            first, second = alike(left.value, right.value)
            return str(first == second)
        if _is_text(left) and _is_text(right):
            return f"{one} == {two}"
        if isinstance(right, Number) and _is_text(left):
            return f"{READERS[right.type]}({one}) == {two}"
        if isinstance(left, Number) and _is_text(right):
            return f"{one} == {READERS[left.type]}({two})"
        if isinstance(left, Number | Unknown) or isinstance(right, Number | Unknown):
            return "False"
        if _is_text(left):
            return f"as_bool({one}) == {two}"
        if _is_text(right):
            return f"{self._constant(_refuse)}()"
        return f"{one} == {two}"

    def _order(self, node: Order) -> str:
        left, right = node.left, node.right
        if isinstance(left, Unknown):
            return self.operand(left)
        if isinstance(right, Unknown):
            return f"(None if {self.operand(left)} is None else {self.operand(right)})"
        if isinstance(left, Number) and isinstance(right, Number):
            return str(ORDERS[node.sign](*alike(left.value, right.value)))
        name = self._spare()
        if isinstance(right, Number):
            test = f"{READERS[right.type]}({name}) {node.sign} {self.operand(right)}"
            return f"(None if ({name} := {self.operand(left)}) is None else {test})"
        if isinstance(left, Number):
            test = f"{self.operand(left)} {node.sign} {READERS[left.type]}({name})"
            return f"(None if ({name} := {self.operand(right)}) is None else {test})"
        compare = self._constant(_order_of(ORDERS[node.sign]))
        return f"{compare}({self.operand(left)}, {self.operand(right)})"

    # Texts

    def _text_test(self, node: Node) -> str:
        if isinstance(node, OneOf):
            name, word = self._spare(), "not in" if node.negated else "in"
            test = f"{name} {word} {self._texts(node)}"
            return f"(None if ({name} := {self.operand(node.of)}) is None else {test})"
        if isinstance(node, Like):
            name, word = self._spare(), "is" if node.negated else "is not"
            match = self._constant(node.pattern.fullmatch)
            test = f"{match}({name}.decode('utf-8', 'replace')) {word} None"
            return f"(None if ({name} := {self.operand(node.of)}) is None else {test})"
        assert isinstance(node, Holds)
        return self._holds(node)

    def _texts(self, node: OneOf) -> str:
        return self._constant(frozenset(_raw(value) for value in node.values))

    def _holds(self, node: Holds) -> str:
        if not node.value:
            return "False"
        if not _is_text(node.of):
            return f"({self.operand(node.of)}, False)[1]"
        name, value = self._spare(), self._constant(_raw(node.value))
        test = {
            "CONTAINS": f"{value} in {name}",
            "STARTSWITH": f"{name}.startswith({value})",
            "ENDSWITH": f"{name}.endswith({value})",
        }[node.how]
        if node.negated:
            test = f"not {test}"
        return f"(({name} := {self.operand(node.of)}) is not None and {test})"


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _is_text(node: Node) -> bool:
    return isinstance(node, Property | Text)


def _is_constant(node: Node) -> bool:
    """Whether the value is known without a message; NULL is handled before."""
    return isinstance(node, Text | Number | Truth)


def _may_raise(node: Node) -> bool:
    if isinstance(node, Order):
        return True
    if isinstance(node, Equal):
        kinds = _is_text(node.left), _is_text(node.right)
        if kinds == (True, False) and isinstance(node.right, Number):
            return True
        if kinds == (False, True) and not isinstance(node.left, Unknown):
            return True
    return any(_may_raise(child) for child in node.children)


def _refuse() -> bool:
    """Raise Undecidable: Java cannot compare a boolean on the left with a text."""
    raise Undecidable


def _order_of(sign: Callable[[Any, Any], bool]) -> Callable[[bytes | None, bytes | None], Any]:
    def compare(left: bytes | None, right: bytes | None) -> bool | None:
        """Compare two properties as doubles; None if one is missing."""
        if left is None or right is None:
            return None
        return sign(ranked(as_double(left)), ranked(as_double(right)))

    return compare
