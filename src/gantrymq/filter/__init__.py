"""Filters over message properties: SQL conditions and the bloom bitmaps that spare asking them."""

from gantrymq.filter.errors import BadSql
from gantrymq.filter.sql import Condition, condition

__all__ = ["BadSql", "Condition", "condition"]
