"""A condition as a tree. Only the parser makes nodes; it has checked their operands."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Node:
    at: int
    """Where it begins in the condition."""
    deep: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        self.deep = 1 + max((child.deep for child in self.children), default=0)

    @property
    def children(self) -> "Sequence[Node]":
        return ()

    @property
    def is_condition(self) -> bool:
        """Whether its value is true, false or unknown, and nothing else."""
        return True


# Operands


@dataclass(slots=True, eq=False)
class Property(Node):
    name: str

    @property
    def is_condition(self) -> bool:
        return False


@dataclass(slots=True, eq=False)
class Text(Node):
    value: str

    @property
    def is_condition(self) -> bool:
        return False


@dataclass(slots=True, eq=False)
class Number(Node):
    value: int | float
    type: str
    """int, long or double: property texts are read as the same."""
    literal: bool = True
    """False behind a minus sign, where RocketMQ no longer sees a constant."""

    @property
    def is_condition(self) -> bool:
        return False


@dataclass(slots=True, eq=False)
class Unknown(Node):
    """A minus sign before an operand that is no number; `behind` is still evaluated."""

    behind: Node

    @property
    def children(self) -> Sequence[Node]:
        return (self.behind,)

    @property
    def is_condition(self) -> bool:
        return False


# Conditions


@dataclass(slots=True, eq=False)
class Truth(Node):
    """TRUE, FALSE and NULL."""

    value: bool | None


@dataclass(slots=True, eq=False)
class Bare(Node):
    """A property as a condition: a text is never true, not even `true`."""

    of: Property

    @property
    def children(self) -> Sequence[Node]:
        return (self.of,)


@dataclass(slots=True, eq=False)
class Not(Node):
    of: Node

    @property
    def children(self) -> Sequence[Node]:
        return (self.of,)


@dataclass(slots=True, eq=False)
class AllOf(Node):
    parts: list[Node]

    @property
    def children(self) -> Sequence[Node]:
        return self.parts


@dataclass(slots=True, eq=False)
class AnyOf(Node):
    parts: list[Node]

    @property
    def children(self) -> Sequence[Node]:
        return self.parts


@dataclass(slots=True, eq=False)
class Equal(Node):
    left: Node
    right: Node

    @property
    def children(self) -> Sequence[Node]:
        return (self.left, self.right)


@dataclass(slots=True, eq=False)
class Order(Node):
    sign: str
    left: Node
    right: Node

    @property
    def children(self) -> Sequence[Node]:
        return (self.left, self.right)


@dataclass(slots=True, eq=False)
class IsNull(Node):
    of: Node

    @property
    def children(self) -> Sequence[Node]:
        return (self.of,)


@dataclass(slots=True, eq=False)
class OneOf(Node):
    of: Property
    values: frozenset[str]
    negated: bool

    @property
    def children(self) -> Sequence[Node]:
        return (self.of,)


@dataclass(slots=True, eq=False)
class Holds(Node):
    """CONTAINS, STARTSWITH and ENDSWITH."""

    how: str
    of: Node
    value: str
    negated: bool

    @property
    def children(self) -> Sequence[Node]:
        return (self.of,)


@dataclass(slots=True, eq=False)
class Like(Node):
    of: Property
    pattern: re.Pattern[str]
    negated: bool

    @property
    def children(self) -> Sequence[Node]:
        return (self.of,)
