"""A gateway that is killed with calls in flight: their money stays held, and ends only by evidence."""

import signal
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from spendgate.core.money import usd, usd_text
from tests.scenarios.caller import Plan
from tests.scenarios.configurations import configuration, key_of
from tests.scenarios.conftest import Tell
from tests.scenarios.processes import Gateway, Money, callers, gateway, provider, until

CALLS = 10
# Long enough for the gateway to be back before the first deadline, on a busy machine too.
LIFETIME = {"SPENDGATE_CALL_SECONDS_MAX": "25", "SPENDGATE_DEADLINE_GRACE_SECONDS": "10"}


def test_calls_in_flight_at_a_kill_stay_held_and_become_unknown_at_their_deadline_and_not_before(
    tmp_path: Path, tell: Tell
) -> None:
    state = tmp_path / "state"
    with provider() as demo, callers(1) as group, ExitStack() as stack:
        demo.behave("hang", calls=CALLS)
        text = configuration(demo.url, {"acme": usd("0.01")})
        first = stack.enter_context(gateway(state, text, **LIFETIME))
        group.begin(Plan(url=first.url, key=key_of("acme"), calls=CALLS))
        until(lambda: demo.hits() == CALLS, "all calls are at the provider")
        before = first.money("acme")
        billed = demo.billed()
        assert 0 < billed < before.held == before.ledger
        first.audit()

        assert first.end(signal.SIGKILL) == -signal.SIGKILL
        assert {one.status for one in group.finish()} == {None}

        second = stack.enter_context(gateway(state, text, **LIFETIME))
        assert second.money("acme") == before
        second.audit()
        _watch_until_unknown(second)
        held = before.held
        assert second.money("acme") == Money(ledger=held, held=held, unknown=held)
        assert billed == demo.billed()
        second.audit()
        tell("killed with 10 in flight", admitted=CALLS, billed=billed, limit=usd("0.01"), ledger=held, held=held)

        _reconcile(second, cost=billed // CALLS)
        assert second.money("acme") == Money(ledger=billed, held=0)
        second.audit()
        tell("  and reconciled", admitted=CALLS, billed=billed, limit=usd("0.01"), ledger=billed)


def _watch_until_unknown(running: Gateway) -> None:
    """Look at every reservation again and again: AssertionError where one is unknown before its deadline."""
    seen_in_flight: set[str] = set()
    deadlines = {one["id"]: datetime.fromisoformat(one["deadline"]) for one in running.reservations()}
    assert len(deadlines) == CALLS
    until_last = max(deadlines.values()).timestamp() - time.time() + 30
    waiting = set(deadlines)

    def all_unknown() -> bool:
        found = running.reservations()
        after = datetime.now(UTC)
        for one in found:
            if one["state"] == "in_flight":
                seen_in_flight.add(one["id"])
            else:
                assert one["state"] == "unknown"
                assert after >= deadlines[one["id"]], one
                waiting.discard(one["id"])
        return not waiting

    until(all_unknown, "all have become unknown", seconds=until_last)
    assert seen_in_flight == set(deadlines)


def _reconcile(running: Gateway, *, cost: int) -> None:
    """Settle each at what the provider billed, the first by the command line."""
    bound = running.money("acme").held // CALLS
    first, *others = (one["id"] for one in running.reservations(state="unknown"))
    words = ("--cost", usd_text(cost), "--evidence", "the provider's usage page")
    done = running.command("reconcile", "settle", first, *words)
    assert done.returncode == 0, done.stderr
    ledger = CALLS * bound - (bound - cost)
    held = (CALLS - 1) * bound
    assert running.money("acme") == Money(ledger=ledger, held=held, unknown=held)
    running.audit()
    for one in others:
        body = {"action": "settle", "cost": usd_text(cost), "evidence": "the provider's usage page"}
        running.admin.post(f"/reservations/{one}/reconcile", json=body).raise_for_status()
    assert {one["state"] for one in running.reservations()} == {"settled"}


def test_a_stream_that_its_gateway_did_not_survive_is_settled_exactly_by_the_provider_s_own_word(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    with provider() as demo, callers(1) as group, ExitStack() as stack:
        demo.behave("hang_mid_stream", calls=1, after_frames=2)
        text = configuration(demo.url, {"acme": usd("0.01")}).replace(
            "    dialect: openai\n", "    dialect: openai\n    kind: openrouter\n"
        )
        short = {"SPENDGATE_CALL_SECONDS_MAX": "4", "SPENDGATE_DEADLINE_GRACE_SECONDS": "2"}
        first = stack.enter_context(gateway(state, text, **short))
        group.begin(Plan(url=first.url, key=key_of("acme"), calls=1, stream=True))
        until(lambda: any(one.get("response_id") for one in first.reservations()), "the id is kept")
        assert [one["state"] for one in first.reservations()] == ["in_flight"]
        assert first.end(signal.SIGKILL) == -signal.SIGKILL
        group.finish()

        second = stack.enter_context(gateway(state, text, **short))
        until(lambda: bool(second.reservations(state="settled")), "the sweeper has asked")
        (one,) = second.reservations()
        assert (one["reason"], one["by"]) == ("recovered from the provider", "sweeper")
        assert second.money("acme") == Money(ledger=demo.billed(), held=0)
        second.audit()
