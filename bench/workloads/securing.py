"""What signatures and TLS cost a broker, message for message beside plain sends of 1 KiB."""

import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from bench import programs
from bench.rows import Row
from bench.servers import ROOT, Ours
from bench.workloads import Run

ROUNDS = 5
SIGNED_MAX, TLS_MAX = 1.25, 2.0
"""How many times the processor time of a plain send each may take."""
KEYS = "accessKey: bench-key, secretKey: bench-secret"


class Way(NamedTuple):
    """One way to send: what the broker is set to, and what the sender is told."""

    settings: dict[str, str]
    sender: tuple[str, ...] = ()


def send_secured(run: Run) -> list[Row]:
    """Plain, signed and encrypted sends in turns; each round has ratios of its own."""
    with tempfile.TemporaryDirectory(prefix="gantrymq-bench-") as folder, ExitStack() as opened:
        ways = _ways(Path(folder))
        clusters = {
            name: opened.enter_context(Ours(settings=way.settings)) for name, way in ways.items()
        }
        costs: dict[str, list[float]] = {name: [] for name in ways}
        rates: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                us, tps = _round(clusters[name], run, *way.sender)
                costs[name].append(us)
                rates[name].append(tps)
    rows = []
    for name in ways:
        rows += [
            Row("send-secured", f"messages, {name}, median", statistics.median(rates[name]), "1/s"),
            Row(
                "send-secured",
                f"broker's processor time, {name}, median",
                statistics.median(costs[name]),
                "us/message",
            ),
        ]
    for name, most in (("signed", SIGNED_MAX), ("TLS", TLS_MAX)):
        ratios = [dear / plain for dear, plain in zip(costs[name], costs["plain"], strict=True)]
        rows += [
            Row(
                "send-secured",
                f"processor time as a ratio, {name}, median of {ROUNDS} rounds",
                statistics.median(ratios),
                "x",
                most,
                at_most=True,
            ),
            Row("send-secured", f"processor time as a ratio, {name}, lowest", min(ratios), "x"),
            Row("send-secured", f"processor time as a ratio, {name}, highest", max(ratios), "x"),
        ]
    return rows


def _ways(folder: Path) -> dict[str, Way]:
    sys.path.insert(0, str(ROOT / "tests" / "kits"))
    from tlskit import Authority

    rules, keys = folder / "plain_acl.yml", folder / "keys.yml"
    rules.write_text(f"accounts: [{{{KEYS}, defaultTopicPerm: PUB}}]")
    keys.write_text(f"{{{KEYS}}}")
    authority = Authority(folder)
    certificate = authority.issue("server")
    return {
        "plain": Way({}),
        "signed": Way({"aclEnable": "true", "aclFile": str(rules)}, ("--keys", str(keys))),
        "TLS": Way(
            {
                "tls.server.certPath": str(certificate.cert),
                "tls.server.keyPath": str(certificate.key),
            },
            ("--tls", str(authority.cert)),
        ),
    }


def _round(cluster: Ours, run: Run, *how: str) -> tuple[float, float]:
    """Microseconds of the broker's processor time for a message, and messages a second."""
    programs.load(cluster.broker, *how, "--count", 20_000)
    before = cluster.cpu_seconds()
    found = programs.load(cluster.broker, *how, "--count", run.scaled(200_000))
    return (cluster.cpu_seconds() - before) / found["count"] * 1e6, found["tps"]
