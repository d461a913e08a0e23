"""A fixed number of seeds; ``make simulate`` runs as many as one likes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.simulation.__main__ import result_of
from tests.simulation.world import History, World

SEEDS: Final = range(24)
STEPS: Final = 700
ROOT: Final = Path(__file__).parents[2]


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


def test_a_seed_tells_the_same_history_in_every_process_however_python_hashes() -> None:
    events = ",".join(map(str, range(100)))
    command = [sys.executable, "-m", "tests.simulation", "--seed", "9", "--steps", "300", "--only", events]
    begun = [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "layers" / "core"))),
            },
        )
        for seed in ("1", "2")
    ]
    tales = [one.communicate()[0] for one in begun]

    assert [one.returncode for one in begun] == [0, 0]
    assert tales[0] == tales[1]
    assert tales[0].count(b"\n") > 200
