"""Random conditions, and a slow evaluator that does step by step what RocketMQ's Java does.

Trees are tuples. Values are what Java has there: None, bool, str, and numbers tagged with their
class. Nothing is shared with the code under test.
"""

import math
import random
import re
from collections.abc import Mapping
from typing import Any

Tree = tuple[Any, ...]
LEVELS = {"or": 0, "and": 1, "=": 2, "<>": 2, "null": 2, "<": 3, "<=": 3, ">": 3, ">=": 3}
LEVELS |= {"between": 3, "in": 3, "holds": 3, "like": 3, "neg": 4, "plus": 4, "not": 4}
CONSTANTS = ("text", "I", "L", "D", "truth")
VALUES = ("text", "I", "L", "D", "prop", "neg")

NAMES = ("a", "b", "c", "_d", "$e")
TEXTS = ("", "x", "xy", "5", "true", "TRUE", "it's", "é", "5.0", "-3", "%", "a_b")
NUMBERS = (
    ("I", 0, "0"),
    ("I", 5, "5"),
    ("I", 5, "5L"),
    ("I", 2147483647, "2147483647"),
    ("L", 2147483648, "2147483648"),
    ("L", 3000000000, "3000000000l"),
    ("D", 5.0, "5.0"),
    ("D", 0.5, ".5"),
    ("D", 500.0, "5e2"),
    ("D", 5.0, "5."),
)
PROPERTIES = (
    "x", "xy", "5", "-5", "+5", "05", "5.0", "2147483648", "-2147483648", "3000000000", "true",
    "TRUE", "false", "it's", "é", "NaN", "Infinity", "-0.0", "0.0", " 5 ", "5d", "0x1p3", "a_b",
    "1e400", "٣", "0.5", "500", "99999999999999999999", "1_000", "inf",
)  # fmt: skip


class JavaError(Exception):
    """Java would throw."""


# Making


def random_tree(rng: random.Random, depth: int = 4) -> Tree:
    """A condition, most often one that RocketMQ takes."""
    kind = rng.choice(("and", "or", "not", "test", "test", "test"))
    if depth <= 0:
        kind = "test"
    if kind in ("and", "or"):
        return kind, random_tree(rng, depth - 1), random_tree(rng, depth - 1)
    if kind == "not":
        return "not", random_tree(rng, depth - 1)
    return _test(rng, depth - 1)


def _test(rng: random.Random, depth: int) -> Tree:
    kind = rng.choice(
        ("=", "=", "<>", "<", "<=", ">", ">=", "null", "between", "in", "holds", "like", "one")
    )
    negated = rng.random() < 0.3
    if kind in ("=", "<>"):
        return kind, _operand(rng, depth), _operand(rng, depth)
    if kind in ("<", "<=", ">", ">="):
        return kind, _number(rng, depth), _number(rng, depth)
    if kind == "null":
        return "null", _operand(rng, depth), negated
    if kind == "between":
        return "between", _number(rng, depth), _number(rng, depth), _number(rng, depth), negated
    if kind == "in":
        values = tuple(rng.choice(TEXTS) for _ in range(rng.randint(1, 6)))
        return "in", _property(rng), values, negated
    if kind == "holds":
        how = rng.choice(("CONTAINS", "STARTSWITH", "ENDSWITH"))
        return "holds", how, _operand(rng, depth), rng.choice(TEXTS), negated
    if kind == "like":
        pattern = "".join(rng.choice("x%_é'5") for _ in range(rng.randint(0, 4)))
        return "like", _property(rng), pattern, negated
    return _operand(rng, depth)


def _property(rng: random.Random) -> Tree:
    return "prop", rng.choice(NAMES)


def _number(rng: random.Random, depth: int) -> Tree:
    kind = rng.choice(("prop", "prop", "number", "number", "neg", "odd"))
    if kind == "prop" or depth <= 0:
        return _property(rng)
    if kind == "number":
        return rng.choice(NUMBERS)
    if kind == "neg":
        return rng.choice(("neg", "plus")), _number(rng, depth - 1)
    return _operand(rng, depth - 1)


def _operand(rng: random.Random, depth: int) -> Tree:
    kind = rng.choice(("prop", "prop", "prop", "text", "number", "truth", "neg", "tree"))
    if kind == "text":
        return "text", rng.choice(TEXTS)
    if kind == "number":
        return rng.choice(NUMBERS)
    if kind == "truth":
        return "truth", rng.choice((True, False, None))
    if kind == "neg" and depth > 0:
        return "neg", _operand(rng, depth - 1)
    if kind == "tree" and depth > 0:
        return random_tree(rng, depth - 1)
    return _property(rng)


def random_properties(rng: random.Random) -> dict[str, str]:
    return {name: rng.choice(PROPERTIES) for name in NAMES if rng.random() < 0.7}


# Writing


def written(tree: Tree, rng: random.Random, least: int = 0) -> str:
    """The condition as text, with no more parentheses than it needs, or a few."""
    level = LEVELS.get(tree[0], 5)
    text = _written(tree, rng, level)
    return f"({text})" if level < least or rng.random() < 0.1 else text


def _written(tree: Tree, rng: random.Random, level: int) -> str:
    kind = tree[0]
    no = f" {_word(rng, 'NOT')} "
    if kind in ("and", "or", "=", "<>", "<", "<=", ">", ">="):
        left, right = written(tree[1], rng, level), written(tree[2], rng, level + 1)
        return f"{left} {_word(rng, kind.upper())} {right}"
    if kind == "not":
        return f"{_word(rng, 'NOT')} {written(tree[1], rng, 4)}"
    if kind in ("neg", "plus"):
        return f"{'-' if kind == 'neg' else '+'} {written(tree[1], rng, 4)}"
    if kind == "null":
        return f"{written(tree[1], rng, 2)} IS{no if tree[2] else ' '}{_word(rng, 'NULL')}"
    left = written(tree[1], rng, 3) if kind in ("between", "in", "like") else ""
    if kind == "between":
        low, high = written(tree[2], rng, 4), written(tree[3], rng, 4)
        return f"{left}{no if tree[4] else ' '}BETWEEN {low} AND {high}"
    if kind == "in":
        return f"{left}{no if tree[3] else ' '}IN ({', '.join(map(_quoted, tree[2]))})"
    if kind == "like":
        return f"{left}{no if tree[3] else ' '}LIKE {_quoted(tree[2])}"
    if kind == "holds":
        left = written(tree[2], rng, 3)
        return f"{left}{no if tree[4] else ' '}{_word(rng, tree[1])} {_quoted(tree[3])}"
    if kind == "truth":
        return _word(rng, "NULL" if tree[1] is None else str(tree[1]).upper())
    return (
        str(tree[2] if kind in ("I", "L", "D") else tree[1]) if kind != "text" else _quoted(tree[1])
    )


def _word(rng: random.Random, word: str) -> str:
    return rng.choice((word, word.lower(), word.capitalize()))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# Checking, as Java does while it parses


def check(tree: Tree) -> None:
    """JavaError if RocketMQ refuses this condition."""
    _check(tree)
    _boolean(tree)


def _is_boolean(tree: Tree) -> bool:
    tree = _plain(tree)
    return tree[0] not in VALUES


def _plain(tree: Tree) -> Tree:
    while tree[0] == "plus":
        tree = tree[1]
    return tree


def _boolean(tree: Tree) -> None:
    if not _is_boolean(tree) and _plain(tree)[0] != "prop":
        raise JavaError


def _check(tree: Tree) -> None:
    kind = tree[0]
    for part in tree[1:2] if kind == "in" else tree[1:]:
        if isinstance(part, tuple):
            _check(part)
    if kind in ("and", "or"):
        _boolean(tree[1])
        _boolean(tree[2])
    elif kind == "not":
        _boolean(tree[1])
    elif kind in ("=", "<>"):
        left, right = _plain(tree[1]), _plain(tree[2])
        if ("truth", None) in (left, right):
            raise JavaError
        if left[0] == "truth" and right[0] in CONSTANTS and right[0] != "truth":
            raise JavaError
    elif kind in ("<", "<=", ">", ">="):
        _ordered(tree[1])
        _ordered(tree[2])
    elif kind == "between":
        for part in tree[1:4]:
            _ordered(part)
        low, high = _plain(tree[2]), _plain(tree[3])
        literal = low[0] in ("I", "L", "D") and high[0] in ("I", "L", "D")
        if literal and not tree[4] and _compare(high[:2], low[:2]) < 0:
            raise JavaError


def _ordered(tree: Tree) -> None:
    tree = _plain(tree)
    if tree[0] == "text" or _is_boolean(tree):
        raise JavaError


# Evaluating


def matches(tree: Tree, properties: Mapping[str, str]) -> bool:
    try:
        return evaluate(tree, properties) is True
    except JavaError:
        return False


def evaluate(tree: Tree, given: Mapping[str, str]) -> Any:
    kind = tree[0]
    if kind in ("I", "L", "D"):
        return tree[:2]
    if kind in ("text", "truth"):
        return tree[1]
    if kind == "prop":
        return given.get(tree[1])
    if kind == "plus":
        return evaluate(tree[1], given)
    if kind == "neg":
        value = evaluate(tree[1], given)
        return (value[0], -value[1]) if isinstance(value, tuple) else None
    if kind in ("and", "or", "not"):
        return _logic(tree, given)
    if kind in ("=", "<>"):
        same = _equal(evaluate(tree[1], given), evaluate(tree[2], given))
        return same if kind == "=" or same is None else not same
    if kind == "null":
        return (evaluate(tree[1], given) is None) is not tree[2]
    if kind in ("<", "<=", ">", ">="):
        return _order(kind, tree[1], tree[2], given)
    if kind == "between":
        first, second = ("<", ">") if tree[4] else (">=", "<=")
        parts = (first, tree[1], tree[2]), (second, tree[1], tree[3])
        return _logic(("or" if tree[4] else "and", *parts), given)
    return _text_test(tree, given)


def _logic(tree: Tree, given: Mapping[str, str]) -> bool | None:
    left = _as_condition(tree[1], given)
    if tree[0] == "not":
        return None if left is None else not left
    decisive = tree[0] == "or"
    if left is decisive:
        return decisive
    right = _as_condition(tree[2], given)
    if right is decisive:
        return decisive
    return None if left is None or right is None else not decisive


def _as_condition(tree: Tree, given: Mapping[str, str]) -> Any:
    value = evaluate(tree, given)
    if _plain(tree)[0] == "prop":
        return None if value is None else False
    return value


def _text_test(tree: Tree, given: Mapping[str, str]) -> bool | None:
    if tree[0] == "in":
        value = evaluate(tree[1], given)
        return None if value is None else (value in tree[2]) is not tree[3]
    if tree[0] == "like":
        value = evaluate(tree[1], given)
        pattern = "".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in tree[2])
        found = value is not None and re.fullmatch(pattern, value, re.DOTALL) is not None
        return None if value is None else found is not tree[3]
    _, how, of, text, negated = tree
    if not text:
        return False
    value = evaluate(of, given)
    if not isinstance(value, str):
        return False
    test = {"CONTAINS": str.__contains__, "STARTSWITH": str.startswith, "ENDSWITH": str.endswith}
    return bool(test[how](value, text)) is not negated


def _equal(left: Any, right: Any) -> bool | None:
    if (left is None) != (right is None):
        return None if left is None else False
    if left is None or (left == right and type(left) is type(right)):
        return True
    return _compare(left, right) == 0


def _order(sign: str, left: Tree, right: Tree, given: Mapping[str, str]) -> bool | None:
    one = evaluate(left, given)
    if one is None:
        return None
    two = evaluate(right, given)
    if two is None:
        return None
    if isinstance(one, str) and isinstance(two, str):
        one, two = ("D", _double(one)), ("D", _double(two))
    answer = _compare(one, two)
    return {"<": answer < 0, "<=": answer <= 0, ">": answer > 0, ">=": answer >= 0}[sign]


def _compare(left: Any, right: Any) -> int:
    """Java's __compare, with strings converted."""
    if isinstance(left, bool) or isinstance(right, bool):
        if isinstance(left, bool) and isinstance(right, str):
            raise JavaError  # a cast that cannot be
        if isinstance(left, str):
            left = left.lower() == "true"
        if not (isinstance(left, bool) and isinstance(right, bool)):
            return -1
        return int(left) - int(right)
    if isinstance(left, str) and isinstance(right, str):
        return 0 if left == right else 1
    if isinstance(left, str):
        left = (right[0], _read(left, right[0]))
    if isinstance(right, str):
        right = (left[0], _read(right, left[0]))
    one, two = left[1], right[1]
    if "D" in (left[0], right[0]):
        one, two = _rank(float(one)), _rank(float(two))
    return int(one > two) - int(one < two)


def _rank(number: float) -> tuple[int, float, int]:
    """NaN above everything, -0.0 below 0.0."""
    if math.isnan(number):
        return 1, 0.0, 0
    return 0, number, 0 if math.copysign(1, number) < 0 else 1


def _read(text: str, kind: str) -> float | int:
    if kind == "D":
        return _double(text)
    if not re.fullmatch(r"[+-]?\d+", text):
        raise JavaError
    number, bits = int(text), 31 if kind == "I" else 63
    if not -(2**bits) <= number < 2**bits:
        raise JavaError
    return number


def _double(text: str) -> float:
    text = text.strip("".join(map(chr, range(33))))
    if text.lstrip("+-") in ("NaN", "Infinity"):
        return float(text)
    if re.fullmatch(r"[+-]?0[xX][0-9a-fA-F.]+[pP][+-]?[0-9]+[fFdD]?", text):
        return float.fromhex(text.rstrip("fFdD"))
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?", text):
        return float(text.rstrip("fFdD"))
    raise JavaError
