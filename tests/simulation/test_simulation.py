"""A fixed number of seeds; ``make simulate`` runs as many as one likes."""

from __future__ import annotations

import pytest

from tests.simulation.__main__ import result_of
from tests.simulation.world import History, World

SEEDS = range(24)
STEPS = 700


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_keeps_every_guarantee(seed: int) -> None:
    assert result_of((seed, STEPS)).findings == ()


def test_a_seed_tells_the_same_history_each_time() -> None:
    tales = []
    for _ in range(2):
        world = World(History(seed=3, steps=400), tells=True)
        world.run()
        tales.append(world.tale)

    assert tales[0] == tales[1]
    assert len(tales[0] or ()) > 300
