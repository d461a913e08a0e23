"""No limit is ever exceeded, however many processes call at once; and what settling gives back can be used."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from spendgate.core.money import usd
from tests.scenarios.caller import Outcome, Plan
from tests.scenarios.configurations import configuration, key_of
from tests.scenarios.conftest import Tell
from tests.scenarios.processes import FRESH_CONNECTIONS, Callers, Gateway, Money, Provider, callers, gateway, provider

# Costs about two thirds of its bound, so that settling gives room back.
PROMPT = "[[output:30]] a short question"
# On a busy machine the emulated store may need longer than a real one, and a 503 proves nothing here.
PATIENT = {"SPENDGATE_LEDGER_DEADLINE_SECONDS": "30"}
PROCESSES = 4
RUNS = 5
BOUNDS = 20
LEVELS = ("", "/team", "/team/agent", "/team/agent/task")
BOUNDS_TIGHT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A gateway, its provider and its callers; ``bound`` is what each of the calls reserves, in picodollars."""

    gateway: Gateway
    provider: Provider
    callers: Callers
    bound: int

    def plan(self, path: str, calls: int, **more: object) -> Plan:
        document = {"url": self.gateway.url, "key": key_of(path), "calls": calls, "prompt": PROMPT, **more}
        return Plan(**document)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    state = tmp_path_factory.mktemp("ceiling") / "state"
    with provider() as demo, callers(PROCESSES) as group:
        probing = configuration(demo.url, {"probe": usd("10")})
        with gateway(state, probing, **PATIENT, **FRESH_CONNECTIONS) as running:
            probe = Plan(url=running.url, key=key_of("probe"), calls=1, prompt=PROMPT)
            bound = usd(str(group.call(probe)[0].reserved_usd))
            running.apply(configuration(demo.url, {"probe": usd("10"), **_limits(bound)}))
            yield Place(gateway=running, provider=demo, callers=group, bound=bound)


def _limits(bound: int) -> dict[str, int]:
    runs = {_run(number, stream=stream): BOUNDS * bound for number in range(RUNS) for stream in (False, True)}
    paths = {
        f"tight-{tight}{level}": (BOUNDS_TIGHT if number == tight else 10 * BOUNDS_TIGHT) * bound
        for tight in range(len(LEVELS))
        for number, level in enumerate(LEVELS)
    }
    return runs | paths


def _run(number: int, *, stream: bool) -> str:
    return f"run-{number}-{'streamed' if stream else 'whole'}"


def _sum_up(outcomes: list[Outcome]) -> tuple[list[Outcome], list[Outcome]]:
    """Return the answers and the refusals for want of room; there must be nothing else."""
    answered = [one for one in outcomes if one.status == 200]
    refused = [one for one in outcomes if (one.status, one.code) in {(402, "over_budget"), (429, "budget_busy")}]
    assert len(answered) + len(refused) == len(outcomes), [one for one in outcomes if one not in answered + refused]
    return answered, refused


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("number", range(RUNS))
def test_of_200_simultaneous_calls_exactly_those_that_fit_are_sent(
    place: Place, tell: Tell, number: int, stream: bool
) -> None:
    path, limit, demo = _run(number, stream=stream), BOUNDS * place.bound, place.provider
    demo.reset()
    with demo.frozen():
        # Nothing settles before all have asked: the provider answers nobody yet.
        place.callers.begin(place.plan(path, 50, stream=stream))
        place.callers.wait_for(200 - BOUNDS)
        assert len(_sum_up(place.callers.outcomes)[1]) == 200 - BOUNDS
        assert place.gateway.money(path) == Money(ledger=limit, held=limit)
    answered, refused = _sum_up(place.callers.finish())

    assert (len(answered), len(refused)) == (BOUNDS, 200 - BOUNDS)
    assert all(one.ended and one.reserved_usd and usd(one.reserved_usd) == place.bound for one in answered)
    assert demo.hits() == BOUNDS
    billed = demo.billed()
    assert place.gateway.money(path) == Money(ledger=billed, held=0)
    assert billed < limit
    tell(
        f"200 at once, {'streamed' if stream else 'whole'}, run {number + 1}",
        admitted=len(answered),
        refused=len(refused),
        billed=billed,
        limit=limit,
        ledger=billed,
    )

    # What settling gave back is used to the last bound, by the official client, which repeats no refusal.
    later, denied = _sum_up(place.callers.call(place.plan(path, 16, client="openai", at_once=1)))
    assert later
    assert denied
    assert all(one.code == "over_budget" for one in denied[-1:])
    assert demo.hits() == BOUNDS + len(later)
    billed = demo.billed()
    assert place.gateway.money(path) == Money(ledger=billed, held=0)
    assert billed <= limit < billed + place.bound
    tell(
        "  and then one after the other",
        admitted=len(later),
        refused=len(denied),
        billed=billed,
        limit=limit,
        ledger=billed,
    )


@pytest.mark.parametrize("tight", range(len(LEVELS)))
def test_on_a_path_of_four_budgets_the_tightest_decides(place: Place, tell: Tell, tight: int) -> None:
    root, demo = f"tight-{tight}", place.provider
    leaf, tightest = root + LEVELS[-1], root + LEVELS[tight]
    demo.reset()
    with demo.frozen():
        place.callers.begin(place.plan(leaf, 5))
        place.callers.wait_for(20 - BOUNDS_TIGHT)
        most = BOUNDS_TIGHT * place.bound
        assert place.gateway.moneys(root) == [Money(ledger=most, held=most)] * len(LEVELS)
    answered, refused = _sum_up(place.callers.finish())

    assert (len(answered), len(refused), demo.hits()) == (BOUNDS_TIGHT, 20 - BOUNDS_TIGHT, BOUNDS_TIGHT)
    assert {one.facts["budget"] for one in refused} == {tightest}
    billed = demo.billed()
    assert place.gateway.moneys(root) == [Money(ledger=billed, held=0)] * len(LEVELS)
    assert billed < most
    tell(
        f"20 at once on four levels, level {tight + 1} tight",
        admitted=len(answered),
        refused=len(refused),
        billed=billed,
        limit=most,
        ledger=billed,
    )


def test_afterwards_every_counter_is_the_sum_of_its_reservations(place: Place) -> None:
    place.gateway.audit()
