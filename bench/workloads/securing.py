"""What signatures and TLS cost a broker, message for message beside plain sends of 1 KiB."""

import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from bench.rows import Row
from bench.send_cost import SendCost, measure_sends
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
        costs: dict[str, list[SendCost]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                costs[name].append(measure_sends(clusters[name], run.scaled(200_000), *way.sender))
    rows = []
    for name in ways:
        us, tps = (statistics.median(figures) for figures in zip(*costs[name], strict=True))
        rows += [
            Row("send-secured", f"messages, {name}, median", tps, "1/s"),
            Row("send-secured", f"broker's processor time, {name}, median", us, "us/message"),
        ]
    for name, most in (("signed", SIGNED_MAX), ("TLS", TLS_MAX)):
        pairs = zip(costs[name], costs["plain"], strict=True)
        ratios = [secured.us / plain.us for secured, plain in pairs]
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
