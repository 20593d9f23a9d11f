"""What the source says about the fields of a class: the string that stands below each of them."""

import ast
import inspect
import textwrap
from typing import Any


def field_docs(kind: type[Any]) -> dict[str, str]:
    """The text below each field, of the class and those that it extends; empty where none is."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith("gantrymq."):
            found |= _own_docs(each)
    return found


def _own_docs(kind: type[Any]) -> dict[str, str]:
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for field, below in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and _is_field(field):
            text = below.value if isinstance(below, ast.Expr) else None
            said = text.value if isinstance(text, ast.Constant) else ""
            found[ast.unparse(field.target)] = " ".join(str(said).split())
    return found


def _is_field(statement: ast.AnnAssign) -> bool:
    return not ast.unparse(statement.annotation).startswith("ClassVar")
