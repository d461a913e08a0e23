"""The store is away: before a call leaves that refuses it, after it has left that costs nobody the answer."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from spendgate.core.money import usd
from tests.scenarios.caller import Plan
from tests.scenarios.configurations import configuration, key_of
from tests.scenarios.conftest import Tell
from tests.scenarios.processes import (
    FRESH_CONNECTIONS,
    Callers,
    Gateway,
    Money,
    Provider,
    callers,
    gateway,
    provider,
    stopped,
    until,
)

LIMIT = usd("0.01")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    gateway: Gateway
    provider: Provider
    callers: Callers

    def plan(self, path: str, *, stream: bool = False) -> Plan:
        return Plan(url=self.gateway.url, key=key_of(path), calls=1, stream=stream)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    state = tmp_path_factory.mktemp("away") / "state"
    budgets = dict.fromkeys(("reserve", "settle-whole", "settle-streamed"), LIMIT)
    with (
        provider() as demo,
        callers(1) as group,
        gateway(state, configuration(demo.url, budgets), **FRESH_CONNECTIONS) as running,
    ):
        yield Place(gateway=running, provider=demo, callers=group)


def test_a_store_that_is_away_at_the_reserve_refuses_the_call_unsent_and_holds_nothing_when_it_is_back(
    place: Place, tell: Tell
) -> None:
    # The key, the route and the prices are known from here on: what meets the store is the reservation.
    assert place.callers.call(place.plan("reserve"))[0].status == 200
    billed = place.provider.billed()
    assert place.gateway.money("reserve") == Money(ledger=billed, held=0)

    with stopped(place.gateway.store_pid()):
        (refused,) = place.callers.call(place.plan("reserve"))
    assert (refused.status, refused.code) == (503, "ledger_unavailable")
    assert refused.retry_after is not None
    assert int(refused.retry_after) >= 1
    assert place.provider.billed() == billed
    # What was written after all when the store woke up is released: nothing was sent.
    until(lambda: place.gateway.money("reserve") == Money(ledger=billed, held=0), "nothing is held", seconds=30)
    place.gateway.audit()

    (again,) = place.callers.call(place.plan("reserve"))
    assert again.status == 200
    billed = place.provider.billed()
    assert place.gateway.money("reserve") == Money(ledger=billed, held=0)
    tell("store away at the reserve", admitted=2, refused=1, billed=billed, limit=LIMIT, ledger=billed)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_store_that_is_away_at_the_settlement_delays_nothing_but_the_settlement(
    place: Place, tell: Tell, stream: bool
) -> None:
    path = "settle-streamed" if stream else "settle-whole"
    place.provider.reset()
    store = place.gateway.store_pid()
    with place.provider.frozen():
        place.callers.begin(place.plan(path, stream=stream))
        until(lambda: place.gateway.money(path).held > 0, "the call is in flight")
        held = place.gateway.money(path).held
        os.kill(store, signal.SIGSTOP)
    try:
        (answer,) = place.callers.finish()
        deferred = _deferred(place.gateway.state, path)
    finally:
        os.kill(store, signal.SIGCONT)

    assert answer.ended
    billed = place.provider.billed()
    assert 0 < billed < held
    # The money was held while the store was away, and is settled by itself, once, at what the provider billed.
    assert deferred == 1
    until(lambda: place.gateway.money(path) == Money(ledger=billed, held=0), "it is settled", seconds=30)
    (settled,) = place.gateway.reservations(budget=path)
    assert settled["state"] == "settled"
    assert usd(settled["actual"]["usd"]) == billed
    place.gateway.audit()
    tell(
        f"store away at the settlement, {'streamed' if stream else 'whole'}",
        admitted=1,
        billed=billed,
        limit=LIMIT,
        ledger=billed,
    )


def test_a_store_that_has_died_refuses_calls_unsent_and_lets_the_gateway_end(tmp_path: Path) -> None:
    with provider() as demo, callers(1) as group:
        with gateway(tmp_path / "state", configuration(demo.url, {"acme": LIMIT})) as running:
            plan = Plan(url=running.url, key=key_of("acme"), calls=1)
            assert group.call(plan)[0].status == 200
            store = running.store_pid()
            os.kill(store, signal.SIGKILL)

            (refused,) = group.call(plan)
            assert (refused.status, refused.code) == (503, "ledger_unavailable")
            assert demo.hits() == 1
            assert running.end() == 0
        assert not Path(f"/proc/{store}").exists()


def _deferred(state: Path, path: str) -> int:
    """Count the settlements of a budget that the log says were put off."""
    lines = (state / "gateway.log").read_text(encoding="utf-8").splitlines()
    return sum("settlement deferred" in line and f'"{path}"' in line for line in lines)
