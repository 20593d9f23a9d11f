"""Every setting that is in force at once has an effect at once, on a running broker."""

import effects_keeping
import effects_limits
import effects_reading
import effects_sending
import effects_telling
import pytest
from effects import EFFECTS, Trial
from peer import Peer

from gantrymq.broker.settings.live_settings import LIVE
from gantrymq.testing.cluster import Cluster
from gantrymq.testing.loop import simulate

ENTERED = (effects_keeping, effects_limits, effects_reading, effects_sending, effects_telling)
"""Importing them has entered their trials."""


@pytest.mark.parametrize("key", sorted(EFFECTS))
def test_a_change_has_its_effect_at_once(key: str) -> None:
    """
    The broker behaves otherwise as soon as the call is answered, without a restart; what it does
    is told by the trial of that key in effects_*.py.
    """

    async def main() -> None:
        chosen = EFFECTS[key]
        options = {
            name: value() if isinstance(value, type) else value
            for name, value in chosen.options.items()
        }
        async with Cluster(memory=True, **options) as cluster:
            trial = Trial(cluster, await Peer.to(cluster), options)
            await chosen.story(trial)
            assert key in trial.changed

    simulate(main)


def test_every_key_in_force_at_once_has_such_a_test() -> None:
    """
    Whoever adds a key to LIVE adds its trial, and a key without one says "from the next start".
    """
    assert LIVE == EFFECTS.keys()
