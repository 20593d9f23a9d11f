"""Filters over message properties: SQL conditions, and bloom bitmaps of their results."""

from gantrymq.filter.errors import BadSql
from gantrymq.filter.sql import Condition, condition

__all__ = ["BadSql", "Condition", "condition"]
