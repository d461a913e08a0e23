"""What is left of a history that fails."""

from __future__ import annotations

import pytest

from tests.simulation.__main__ import main
from tests.simulation.shrink import Ran, shrunk
from tests.simulation.world import History

EVENTS = tuple(range(40))


def run(history: History) -> Ran:
    """Fail where the events 3 and 17 meet, and something goes wrong for 17; otherwise, another way, for any 20."""
    kept = frozenset(EVENTS) if history.kept is None else history.kept
    troubled = kept if history.troubled is None else history.troubled
    if {3, 17} <= kept and 17 in troubled:
        return Ran("G1", tuple(sorted(kept)))
    return Ran("G8" if 20 in kept else None, tuple(sorted(kept)))


def test_only_what_a_failure_needs_is_left() -> None:
    found = shrunk(History(seed=1, steps=100), run=run)

    assert found.kept == frozenset({3, 17})
    assert found.troubled == frozenset({17})


def test_a_history_that_holds_stays_as_it_is() -> None:
    history = History(seed=1, steps=100, kept=frozenset({5}))

    assert shrunk(history, run=run) == history


def test_the_command_tells_how_many_steps_held(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "5", "--seeds", "2", "--steps", "60"]) == 0

    told = capsys.readouterr().out
    assert "seeds 5 to 6: " in told
    assert "0 seeds with a finding" in told


def test_the_command_tells_one_history_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "5", "--steps", "60", "--only", "0,1,2", "--faults", "-"]) == 0

    assert "call 0: asks" in capsys.readouterr().out
