"""The report of usage: it is what the counters have counted, run by run and day by day, in as many parts as it takes."""

import secrets
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from spendgate.admin import Admin
from spendgate.core.budget import Amounts, BudgetPolicy, RunPolicy, new_run, prefixes
from spendgate.core.money import usd, usd_text
from spendgate.core.report import BY, sums_of, sums_view
from spendgate.core.reservation import Resolution
from spendgate.core.usage import BUCKETS, Usage
from spendgate.core.window import counter
from spendgate.errors import BudgetMissing, RequestInvalid
from spendgate.store import usage as usage_store
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.tables import create_tables
from spendgate.store.usage import claim_usage
from tests.conftest import a_timing
from tests.operators import FILE, LEAF, Clock, admit, lose, settle
from tests.store.builders import a_reservation, opened, path_of

RUN = f"{LEAF}/run:4471"
MODELS = (("openai", "house-model"), ("anthropic", "other"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def admin(ledger: Ledger, config: Config, clock: Clock) -> Admin:
    return an_admin(ledger, config, clock)


@pytest.fixture
def applied(admin: Admin) -> Admin:
    admin.apply(FILE, by="ana")
    return admin


def an_admin(ledger: Ledger, config: Config, clock: Clock) -> Admin:
    return Admin(ledger, config, clock=clock, randomness=secrets.token_bytes, loopback_http=True)


def whole(admin: Admin, **asked: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a report, part by part."""
    cursor: str | None = None
    while True:
        part = admin.report.part(**asked, cursor=cursor)
        assert part["total"] == sums_view(sum((sums_of(row) for row in part["rows"]), Counter()))
        yield from part["rows"]
        cursor = part["next"]
        if cursor is None:
            return


def cost(admin: Admin, **asked: str) -> str:
    return usd_text(sum(usd(row["cost"]) for row in whole(admin, **asked)))


def a_run_call(ledger: Ledger, clock: Clock, *, price: str) -> None:
    """Settle one call of a run that begins with it."""
    now = clock()
    path = path_of(ledger, LEAF)
    run = new_run(path[-1], RUN, now)
    reservation = a_reservation((*path, run), now=now, asked=Amounts(usd=usd("0.1"), requests=1, tokens=50))
    ledger.reserve(reservation, (*path, run), now)
    settle(ledger, reservation, clock(), cost=price)


# --- it is what the counters have counted


CALLS = st.lists(
    st.tuples(
        st.sampled_from(("acme", "acme/a", "acme/a/run:1", "acme/a/run:2", "acme/a/run:2/run:3")),
        st.integers(0, 1),
        st.sampled_from(("settled", "charged", "released", "unknown", "in_flight")),
        st.integers(0, 40),
        st.sampled_from(MODELS),
    ),
    min_size=4,
    max_size=9,
)


@given(CALLS)
@settings(
    max_examples=6,
    derandomize=True,
    deadline=None,
    # Each example writes to a store: what fails is told as it was found.
    phases=(Phase.generate,),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_days_cost_is_what_the_daily_counter_holds_less_what_has_not_ended(
    ledger: Ledger, calls: list[tuple[str, int, Any, int, tuple[str, str]]]
) -> None:
    here = a_ledger_beside(ledger)
    clock = Clock()
    start = clock.now
    opened(
        here,
        *(
            BudgetPolicy(path=path, rev=0, runs=RunPolicy(expire_after=timedelta(hours=1)))
            for path in ("acme", "acme/a")
        ),
        now=start,
    )
    open_by_day = Counter[tuple[str, str]]()
    for leaf, day, outcome, price, (provider, model) in calls:
        at = start + timedelta(days=day)
        path = path_of(here, leaf)
        known = {policy.path for policy in path}
        missing = [one for one in prefixes(leaf) if one not in known]
        path = (*path, *(BudgetPolicy(path=one, rev=0) for one in missing))
        reservation = a_reservation(path, now=at, usd=40)
        here.reserve(reservation, path, at)
        if outcome == "in_flight":
            resolution = None
        elif outcome == "settled":
            resolution = Resolution(
                state="settled", reason="usage", actual=Amounts(usd=price, requests=1), provider=provider, model=model,
                usage=Usage(input_uncached=price, cache_read=1, output=2, fees=(("web_search", 1),)),
            )  # fmt: skip
        else:
            resolution = Resolution(state=outcome, reason="so it went")
        if resolution is not None:
            # Whenever it ends, it is of the day on which it was reserved; and by then each run has expired.
            here.resolve(reservation.id, resolution, at + timedelta(days=2))
        if outcome in ("in_flight", "unknown"):
            open_by_day.update({(one, f"{at:%Y-%m-%d}"): 40 for one in prefixes(leaf)})
    admin = an_admin(here, Config(f"{here.table}-config", here.table, here.client, here.timing), clock)
    clock.turn(days=60)

    for budget in ("acme", "acme/a"):
        state = here.budget(budget)
        assert state is not None
        for day in range(2):
            at = start + timedelta(days=day)
            text = f"{at:%Y-%m-%d}"
            resolved = state.counters.get(counter("usd", "day", at), 0) - open_by_day[budget, text]
            by = ("budget,model", ",".join(BY))[day]
            assert cost(admin, first=text, last=text, by=by, budget=budget) == usd_text(resolved)
    rows = list(whole(admin, first=f"{start:%Y-%m-%d}", by="day"))
    assert sum(row["calls"] for row in rows) == sum(one[2] not in ("in_flight", "unknown") for one in calls)


def a_ledger_beside(ledger: Ledger) -> Ledger:
    name = f"ledger-{secrets.token_hex(6)}"
    create_tables(ledger.client, ledger=name, config=f"{name}-config")
    return Ledger(name, ledger.client, a_timing())


def test_a_run_that_is_over_counts_on_the_budget_that_it_belonged_to(
    applied: Admin, ledger: Ledger, clock: Clock
) -> None:
    settle(ledger, admit(ledger, clock(), held="0.10"), clock(), cost="0.04")
    a_run_call(ledger, clock, price="0.03")
    clock.turn(days=40)

    (row,) = whole(applied, first="2026-11-01", budget="acme")

    assert (row["budget"], row["calls"], row["cost"]) == (LEAF, 2, "0.07")
    assert cost(applied, first="2026-11-01", budget=RUN) == "0.03"
    assert cost(applied) == "0"


def test_a_row_is_of_what_is_asked_for_with_tokens_by_bucket_and_money_that_is_exact(
    applied: Admin, ledger: Ledger, clock: Clock
) -> None:
    reservation = admit(ledger, clock(), held="0.10")
    actual = Amounts(usd=usd("0.000000000001"), requests=1, tokens=33)
    usage = Usage(input_uncached=20, cache_read=3, output=10, fees=(("web_search", 2),))
    served = {"provider": "openai", "model": "house-model"}
    ledger.resolve(
        reservation.id, Resolution(state="settled", reason="answered", actual=actual, usage=usage, **served), clock()
    )
    never_sent = admit(ledger, clock(), held="0.10", number=1)
    ledger.resolve(never_sent.id, Resolution(state="released", reason="never connected"), clock())

    part = applied.report.part(by="day,provider,model")

    assert (part["from"], part["to"], part["budget"], part["next"]) == ("2026-11-01", "2026-11-30", None, None)
    counts = {"calls": 1, "calls_settled": 0, "calls_released": 1, "calls_charged": 0, "tokens": 0}
    assert part["rows"] == [
        {"day": "2026-11-30", "provider": None, "model": None, **counts, "usage": {}, "cost": "0"},
        {
            "day": "2026-11-30",
            **served,
            **counts,
            "calls_settled": 1,
            "calls_released": 0,
            "tokens": 33,
            "usage": {"input_uncached": 20, "cache_read": 3, "output": 10, "fees": {"web_search": 2}},
            "cost": "0.000000000001",
        },
    ]


@given(
    st.dictionaries(
        st.sampled_from(("calls", "calls_settled", "tokens", "cost", "fee:web_search", *BUCKETS)), st.integers(1, 2**60)
    )
)
@settings(derandomize=True, deadline=None)
def test_sums_are_on_the_wire_what_they_were(sums: dict[str, int]) -> None:
    assert +sums_of(sums_view(sums)) == Counter(sums)


# --- parts


def test_parts_add_up_to_the_whole_and_only_the_first_says_what_is_held(
    applied: Admin, ledger: Ledger, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(ledger, admit(ledger, clock(), held="0.10"), clock(), cost="0.04")
    a_run_call(ledger, clock, price="0.03")
    lose(ledger, admit(ledger, clock(), held="0.5", number=2), clock())
    admit(ledger, clock(), held="0.25", number=3)
    monkeypatch.setattr(usage_store, "STEPS_MAX", 1)

    first = applied.report.part()
    second = applied.report.part(cursor=first["next"])

    assert first["held"] == {"reserved": "0.75", "unknown": "0.5"}
    assert second["held"] is None
    assert cost(applied) == "0.07"


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"first": "yesterday"}, "from"),
        ({"first": "20261101"}, "from"),
        ({"last": "2026-02-30"}, "to"),
        ({"first": "2026-12-01"}, "from"),
        ({"first": "2020-01-01"}, "from"),
        ({"by": "team"}, "by"),
        ({"by": "day,day"}, "by"),
        ({"cursor": "x"}, "cursor"),
        ({"cursor": "bm9uZQ=="}, "cursor"),
        ({"cursor": "YWNtZQphbGwK"}, "cursor"),
        ({"cursor": "YWNtZQpvd24KMjAyNi0xMC0zMSM="}, "cursor"),
        ({"cursor": "YWNtZQpvd24K" + "A" * 2000}, "cursor"),
    ],
)
def test_what_cannot_be_asked_is_told_at_its_field(applied: Admin, asked: dict[str, str], field: str) -> None:
    with pytest.raises(RequestInvalid) as refused:
        applied.report.part(**asked)

    assert refused.value.facts.field == field


def test_a_budget_that_is_not_there_has_no_report(applied: Admin) -> None:
    with pytest.raises(BudgetMissing):
        applied.report.part(budget="nobody")


# --- what it misses


def test_a_report_that_begins_before_all_runs_are_found_says_so(applied: Admin, config: Config, clock: Clock) -> None:
    claim_usage(config, clock())

    told = {first: applied.report.part(first=first)["runs_complete_from"] for first in ("2026-11-01", "2026-11-30")}

    assert told == {"2026-11-01": "2026-12-01", "2026-11-30": "2026-12-01"}
    assert applied.report.part(first="2026-12-01", last="2026-12-02")["runs_complete_from"] is None
    assert cost(applied, first="2026-11-01") == "0"
