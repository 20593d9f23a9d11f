"""SQL conditions asked for raw properties, and what reading a condition costs."""

import time

from bench.rows import Row
from bench.workloads import Run
from gantrymq.filter.sql import Condition
from gantrymq.protocol.properties import encode

SQL = "region = 'eu' AND price > 10 AND quantity BETWEEN 5 AND 9"
EVALUATIONS = 500_000
READINGS = 500


def _properties(number: int) -> bytes:
    values = {
        "KEYS": f"order-{number}",
        "TAGS": "paid",
        "UNIQ_KEY": f"7F000001000018B4AAC2{number:012X}",
        "region": ("eu", "us")[number % 2],
        "price": f"{number % 40}",
        "quantity": f"{number % 12}",
    }
    return encode(values).encode()


def sql_filter(run: Run) -> list[Row]:
    """Six properties, three terms; half of the messages end at the first term."""
    condition = Condition(SQL)
    messages = [_properties(number) for number in range(1_000)]
    rounds = run.scaled(EVALUATIONS) // len(messages)
    begin = time.perf_counter()
    matched = sum(condition.matches(raw) for _ in range(rounds) for raw in messages)
    took = time.perf_counter() - begin
    begin = time.perf_counter()
    for _ in range(READINGS):
        Condition(SQL)
    reading = (time.perf_counter() - begin) / READINGS
    return [
        Row("sql-filter", "evaluations", rounds * len(messages) / took, "1/s", 100_000),
        Row("sql-filter", "of them matched", 100 * matched / (rounds * len(messages)), "%"),
        Row("sql-filter", "reading a condition", reading * 1e6, "us"),
    ]
