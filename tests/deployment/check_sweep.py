"""What the stack does by itself, minute by minute."""

from __future__ import annotations

from typing import Final

from tests.deployment.check_settlement import in_flight, overdue
from tests.deployment.proof import Proof, until

# The emulator's schedules of a minute fire up to 66 seconds apart.
MINUTE_SECONDS_MAX: Final = 150


def test_the_sweeper_comes_each_minute_though_nobody_calls_it(proof: Proof) -> None:
    one = in_flight(proof, "waiting")
    overdue(proof, one.id)
    held = proof.budget("waiting")["reserved"]

    until(lambda: bool(proof.admin("GET", f"/reservations/{one.id}")["state"] == "unknown"), seconds=MINUTE_SECONDS_MAX)

    assert proof.budget("waiting")["unknown"] == proof.budget("waiting")["reserved"] == held != "0"
