"""What the faults do to whom: minorities, majorities, halves, and the same for the same seed."""

import random
from itertools import combinations

import pytest

from chaos.faults import DISK, FAULTS, OPENCHAOS, Harm, Scene, majority, minority
from chaos.links import Links, passes

THREE = Scene(("namesrv", "master", "slave"), "master", ("slave",), ("clients",))
FIVE = Scene(("a", "b", "c", "d", "e"), "c", ("a", "e"), ("clients",))
SEEDS = range(50)


def harm(fault: str, scene: Scene, seed: int = 0) -> Harm:
    return FAULTS[fault].harm(scene, random.Random(seed))


def sees(links: Links, a: str, b: str) -> bool:
    """Whether anything passes from one to the other."""
    return passes(links, (a, b), 0.999)


def test_there_are_fifteen_and_three() -> None:
    """OpenChaos's faults, and those of disks."""
    assert (15, 3, 18) == (len(OPENCHAOS), len(DISK), len(FAULTS))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_seed_repeats_the_choice(fault: str) -> None:
    """The same seed hits the same nodes, and somebody is hit."""
    for scene in (THREE, FIVE):
        for seed in SEEDS:
            found = harm(fault, scene, seed)
            assert found == harm(fault, scene, seed)
            assert found.nodes or found.links
            assert found.text


@pytest.mark.parametrize("action", ["kill", "suspend"])
@pytest.mark.parametrize("scene", [THREE, FIVE])
def test_so_many_are_hit(action: str, scene: Scene) -> None:
    """A minority leaves a majority, a majority does not."""
    count = len(scene.nodes)
    for seed in SEEDS:
        assert count - len(harm(f"minor-{action}", scene, seed).nodes) >= majority(count)
        assert count - len(harm(f"major-{action}", scene, seed).nodes) <= minority(count)
        assert 1 == len(harm(f"random-{action}", scene, seed).nodes)
    assert scene.fixed == harm(f"fixed-{action}", scene).nodes
    assert (scene.leader,) == harm(f"leader-{action}", scene).nodes


def test_chance_reaches_every_node() -> None:
    """Over some seeds each node is hit once."""
    hit = {harm("random-kill", FIVE, seed).nodes[0] for seed in SEEDS}

    assert set(FIVE.nodes) == hit


@pytest.mark.parametrize("fault", ["random-partition", "fixed-partition"])
def test_a_partition_has_two_sides(fault: str) -> None:
    """Within a side all see each other, across nobody, and clients see all."""
    for seed in SEEDS:
        links = harm(fault, FIVE, seed).links
        cut_off = {a for a in FIVE.nodes if sum(sees(links, a, b) for b in FIVE.nodes) <= 2}
        assert 2 == len(cut_off)
        for a, b in combinations(FIVE.nodes, 2):
            assert ((a in cut_off) == (b in cut_off)) == sees(links, a, b) == sees(links, b, a)
        assert all(sees(links, "clients", node) for node in FIVE.nodes)


def test_each_node_of_a_ring_sees_another_majority() -> None:
    """No two nodes see the same majority."""
    for seed in SEEDS:
        links = harm("majorities-ring", FIVE, seed).links
        seen = [frozenset(b for b in FIVE.nodes if sees(links, a, b)) for a in FIVE.nodes]
        assert all(majority(5) == len(nodes) for nodes in seen)
        assert 5 == len(set(seen))


def test_the_bridge_sees_both_halves() -> None:
    """One node sees all, the others only their half and the bridge."""
    for scene in (THREE, FIVE):
        for seed in SEEDS:
            links = harm("bridge", scene, seed).links
            counts = sorted(sum(sees(links, a, b) for b in scene.nodes) for a in scene.nodes)
            half = (len(scene.nodes) - 1) // 2
            assert [half + 1] * 2 * half + [len(scene.nodes)] == counts


def test_loss_hits_clients_as_well() -> None:
    """A lossy node loses some packets of everybody, and passes others."""
    links = harm("random-loss", THREE).links

    assert any("clients" in link for link in links)
    assert all(passes(links, link, 0.9) and not passes(links, link, 0.1) for link in links)


@pytest.mark.parametrize("fault", DISK)
def test_the_leader_has_the_bad_disk(fault: object) -> None:
    """It is the one whose disk matters for sends."""
    for kind in DISK:
        assert ("master",) == kind.harm(THREE, random.Random(0)).nodes
