"""The faults as values: who is hit, and with what. Pure; chance comes from a seeded generator.

The names and meanings are OpenChaos's. *Nodes* are all servers of a cluster, the name server
first. A minority is the largest number of nodes that leaves a majority, at least one; a majority
is the smallest number of nodes that is more than half. *Fixed* nodes are named by the one who asks,
here those of the mode. Partitions are between nodes: clients reach all of them, as OpenChaos's
do. The three disk faults are ours.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from chaos.links import Link, Links, cut, lossy

Action = Literal["kill", "suspend", "network", "disk-full", "disk-read-only", "disk-slow"]
LOSS_SHARE: Final = 0.2
"""The share of packets that a lossy node loses, in each direction."""


@dataclass(frozen=True)
class Scene:
    """What the choice depends on."""

    nodes: Sequence[str]
    leader: str
    fixed: Sequence[str]
    """The nodes of the faults with fixed nodes."""
    clients: Sequence[str] = ()
    """Hosts of clients: only loss concerns them."""


@dataclass(frozen=True)
class Harm:
    """What is done, and undone when the fault is over."""

    action: Action
    nodes: tuple[str, ...] = ()
    """Those that are killed, suspended, or have the bad disk."""
    links: Links = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Who is hit: nodes, or links between nodes."""
        pairs = sorted({tuple(sorted(link)) for link in self.links})
        return ", ".join(self.nodes) or ", ".join("-".join(pair) for pair in pairs)


Choose = Callable[[Scene, random.Random], Sequence[str]]


@dataclass(frozen=True)
class Fault:
    """One kind of fault."""

    name: str
    meaning: str
    harm: Callable[[Scene, random.Random], Harm]


def minority(count: int) -> int:
    return max(1, (count - 1) // 2)


def majority(count: int) -> int:
    return count // 2 + 1


def _minor(scene: Scene, rng: random.Random) -> Sequence[str]:
    return rng.sample(list(scene.nodes), minority(len(scene.nodes)))


def _major(scene: Scene, rng: random.Random) -> Sequence[str]:
    return rng.sample(list(scene.nodes), majority(len(scene.nodes)))


def _one(scene: Scene, rng: random.Random) -> Sequence[str]:
    return [rng.choice(list(scene.nodes))]


def _fixed(scene: Scene, _rng: random.Random) -> Sequence[str]:
    return scene.fixed


def _leader(scene: Scene, _rng: random.Random) -> Sequence[str]:
    return [scene.leader]


def _on(action: Action, choose: Choose) -> Callable[[Scene, random.Random], Harm]:
    def harm(scene: Scene, rng: random.Random) -> Harm:
        return Harm(action, tuple(sorted(choose(scene, rng))))

    return harm


def between(some: Sequence[str], others: Sequence[str]) -> list[Link]:
    return [(a, b) for a in some for b in others]


def _isolated(choose: Choose) -> Callable[[Scene, random.Random], Harm]:
    """The chosen nodes see each other, the rest see each other, and nothing passes between."""

    def harm(scene: Scene, rng: random.Random) -> Harm:
        chosen = choose(scene, rng)
        rest = [node for node in scene.nodes if node not in chosen]
        return Harm("network", links=cut(between(chosen, rest)))

    return harm


def _majorities_ring(scene: Scene, rng: random.Random) -> Harm:
    """Each node sees a majority, and no two see the same one.

    On a ring a node keeps its nearest neighbours, as many as a majority needs. With three nodes
    that would be all: there one link is cut, so that two nodes see a majority each and the third
    sees both.
    """
    ring = rng.sample(list(scene.nodes), len(scene.nodes))
    count = len(ring)
    if count < 3:
        return Harm("network", links=cut(between(ring[:1], ring[1:])))
    if count == 3:
        return Harm("network", links=cut([(ring[0], ring[1])]))
    reach = majority(count) // 2  # on either side
    far = [
        (a, b)
        for at, a in enumerate(ring)
        for to, b in enumerate(ring)
        if at < to and min(to - at, count - (to - at)) > reach
    ]
    return Harm("network", links=cut(far))


def _bridge(scene: Scene, rng: random.Random) -> Harm:
    """Two halves that do not see each other, and one node that sees and is seen by both."""
    order = rng.sample(list(scene.nodes), len(scene.nodes))
    half = (len(order) - 1) // 2 or 1
    left, right = order[:half], order[half + 1 :] or order[half:]
    return Harm("network", links=cut(between(left, right)))


def _loss(scene: Scene, rng: random.Random) -> Harm:
    """A random number of nodes loses packets, to and from everybody."""
    hit = rng.sample(list(scene.nodes), rng.randint(1, len(scene.nodes)))
    everybody = [*scene.nodes, *scene.clients]
    return Harm("network", links=lossy(hit, everybody, LOSS_SHARE))


OPENCHAOS: Final = (
    Fault("minor-kill", "kill -9 of a minority of nodes", _on("kill", _minor)),
    Fault("major-kill", "kill -9 of a majority of nodes", _on("kill", _major)),
    Fault("random-kill", "kill -9 of one random node", _on("kill", _one)),
    Fault("fixed-kill", "kill -9 of the slave", _on("kill", _fixed)),
    Fault("leader-kill", "kill -9 of the master", _on("kill", _leader)),
    Fault("random-partition", "a random minority is cut off", _isolated(_minor)),
    Fault("fixed-partition", "the slave is cut off", _isolated(_fixed)),
    Fault("majorities-ring", "each node sees another majority", _majorities_ring),
    Fault("bridge", "two halves, one node sees both", _bridge),
    Fault("random-loss", "some nodes lose a fifth of their packets", _loss),
    Fault("minor-suspend", "SIGSTOP of a minority of nodes", _on("suspend", _minor)),
    Fault("major-suspend", "SIGSTOP of a majority of nodes", _on("suspend", _major)),
    Fault("random-suspend", "SIGSTOP of one random node", _on("suspend", _one)),
    Fault("fixed-suspend", "SIGSTOP of the slave", _on("suspend", _fixed)),
    Fault("leader-suspend", "SIGSTOP of the master", _on("suspend", _leader)),
)
DISK: Final = (
    Fault("disk-full", "the master's disk is full", _on("disk-full", _leader)),
    Fault("disk-read-only", "the master's disk turns read-only", _on("disk-read-only", _leader)),
    Fault("disk-slow", "the master's disk is slow", _on("disk-slow", _leader)),
)
FAULTS: Final = {fault.name: fault for fault in (*OPENCHAOS, *DISK)}
