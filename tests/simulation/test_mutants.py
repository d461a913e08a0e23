"""That the simulation can fail: the mutants that are caught soonest, and that every other one is still a text of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.mutant import Mutant
from tests.simulation.mutants import catch
from tests.simulation.mutations import MUTANTS

LAYER = Path(__file__).parents[2] / "layers" / "core"
QUICK = ("ancestors", "settles-leaf-only", "released-on-doubt")


@pytest.mark.parametrize("name", QUICK)
def test_a_fault_in_the_code_is_found(name: str) -> None:
    caught = catch(next(one for one in MUTANTS if one.name == name), seeds_max=3)

    assert caught.seeds is not None
    assert caught.finding.startswith("G")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_text_of_a_fault_stands_in_its_module_once(mutant: Mutant) -> None:
    source = LAYER / (mutant.module.replace(".", "/") + ".py")

    assert source.read_text().count(mutant.old) == 1
