"""A provider that fails after its work, or never answers: spending stops at the limit, and time frees nothing."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from spendgate.core.money import usd
from tests.scenarios.caller import Outcome, Plan
from tests.scenarios.configurations import configuration, key_of
from tests.scenarios.conftest import Tell
from tests.scenarios.processes import Callers, Gateway, Money, Provider, callers, gateway, provider, until

LIFETIME = {"SPENDGATE_CALL_SECONDS_MAX": "3", "SPENDGATE_DEADLINE_GRACE_SECONDS": "1"}
BOUNDS = 10
CALLS = 100
# Well past every deadline, and several rounds of the sweeper.
WATCHED_SECONDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A gateway whose calls last three seconds at most; ``bound`` is what each reserves, in picodollars."""

    gateway: Gateway
    provider: Provider
    callers: Callers
    bound: int


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    state = tmp_path_factory.mktemp("unknown") / "state"
    with ExitStack() as stack:
        demo, group = stack.enter_context(provider()), stack.enter_context(callers(1))
        running = stack.enter_context(gateway(state, configuration(demo.url, {"probe": usd("1")}), **LIFETIME))
        probe = group.call(Plan(url=running.url, key=key_of("probe"), calls=1))
        bound = usd(str(probe[0].reserved_usd))
        limits = dict.fromkeys(("errors", "hangs"), BOUNDS * bound)
        running.apply(configuration(demo.url, {"probe": usd("1"), **limits}))
        yield Place(gateway=running, provider=demo, callers=group, bound=bound)


def test_100_calls_that_fail_after_the_work_stop_at_the_limit(place: Place, tell: Tell) -> None:
    place.provider.reset()
    place.provider.behave("error_after_work")
    # The official client repeats a 500; one that may have been billed reaches its caller once.
    plan = Plan(
        url=place.gateway.url, key=key_of("errors"), calls=CALLS, at_once=1, client="anthropic", model="demo-claude"
    )
    outcomes = place.callers.call(plan)

    unknown = [one for one in outcomes if (one.status, one.code) == (502, "outcome_unknown")]
    assert len(unknown) == BOUNDS == place.provider.hits()
    _check_refused(place, [one for one in outcomes if one not in unknown], count=CALLS - BOUNDS)
    _check_held(place, "errors", tell, "100 calls answered 500 after the work", refused=CALLS - BOUNDS)


def test_100_calls_that_hang_until_their_callers_give_up_stop_at_the_limit(place: Place, tell: Tell) -> None:
    place.provider.reset()
    place.provider.behave("hang")
    plan = Plan(url=place.gateway.url, key=key_of("hangs"), calls=CALLS, at_once=25, timeout_seconds=1.5)
    outcomes = place.callers.call(plan)

    # Nobody was answered; who was refused may also have given up before, on a busy machine.
    assert {one.code for one in outcomes if one.status is not None} <= {"budget_busy", "over_budget"}
    assert {one.problem for one in outcomes if one.status is None} == {"ReadTimeout"}
    most = BOUNDS * place.bound
    until(lambda: place.gateway.money("hangs").unknown == most, "every call is given up by the gateway")
    assert place.provider.hits() == BOUNDS

    later = place.callers.call(Plan(url=place.gateway.url, key=key_of("hangs"), calls=5))
    _check_refused(place, later, count=5)
    refused = sum(one.status is not None for one in outcomes) + len(later)
    _check_held(place, "hangs", tell, "100 calls that hang", refused=refused)
    assert place.provider.hits() == BOUNDS


def _check_refused(place: Place, refused: list[Outcome], *, count: int) -> None:
    """Check that these were refused for good, and told that what is in the way is of unknown outcome."""
    assert [(one.status, one.code) for one in refused] == [(402, "over_budget")] * count
    assert {usd(one.facts["unknown"]) for one in refused} == {BOUNDS * place.bound}


def _check_held(place: Place, path: str, tell: Tell, scenario: str, *, refused: int) -> None:
    """Check that the limit holds, and that the money stays held while its deadlines pass."""
    most = BOUNDS * place.bound
    billed = place.provider.billed()
    assert 0 < billed <= most
    end = time.monotonic() + WATCHED_SECONDS
    while time.monotonic() < end:
        assert place.gateway.money(path) == Money(ledger=most, held=most, unknown=most)
        time.sleep(0.5)
    place.gateway.audit()
    tell(scenario, admitted=BOUNDS, refused=refused, billed=billed, limit=most, ledger=most, held=most)
