"""Faults seen in other gateways, on the core alone: each is named after what is right."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from spendgate.core.bound import bound, largest_cap_that_fits, settled_cost
from spendgate.core.budget import Amounts, BudgetState, Limit, prefixes
from spendgate.core.counters import hold_of, on_reserve, on_resolve
from spendgate.core.money import rate_per_million, usd, usd_text
from spendgate.core.policy import Admitted, Denied, refusal_before, verdict
from spendgate.core.price import RateCard, Rates, Terms, cost
from spendgate.core.route import Framing
from spendgate.core.usage import Usage, UsageReport, usable_count
from spendgate.core.window import counter
from spendgate.errors import BudgetBusy, OverBudget, RequestTooExpensive
from tests.builders import NOW, a_limit, a_policy, a_price_row, a_provider, a_quote, a_state, an_offer, facts


def a_card_of(*, input_usd: str, output_usd: str, **others: str) -> RateCard:
    full = rate_per_million(input_usd)
    rates = Rates(
        input=full, cache_read=full, cache_write=full, cache_write_long=full, output=rate_per_million(output_usd)
    )
    return RateCard(rates=replace(rates, **{name: rate_per_million(value) for name, value in others.items()}))


def after(state: BudgetState, changes: dict[str, int]) -> BudgetState:
    counters = {name: state.counters.get(name, 0) + changes.get(name, 0) for name in {**state.counters, **changes}}
    reserved = state.reserved + counters.pop("reserved", 0)
    return replace(state, reserved=reserved, counters=counters)


def admitted(state: BudgetState, asked: Amounts, now: datetime = NOW) -> bool:
    return isinstance(verdict(state, asked, now), Admitted)


def test_b01_a_cache_write_is_counted_once() -> None:
    """B01: 3 fresh, 12304 written, 550 out at 3 / 3.75 / 15 cost 0.0543990."""
    row = a_price_row(card=a_card_of(input_usd="3", output_usd="15", cache_write="3.75"))

    assert usd_text(cost(Usage(input_uncached=3, cache_write=12304, output=550), row, Terms())) == "0.054399"


def test_b05_disjoint_buckets_cannot_go_below_zero() -> None:
    """B05: 56322 fresh, 72960 cached, 87 out at 1 / 0.1 / 5 cost 0.064053."""
    row = a_price_row(card=a_card_of(input_usd="1", output_usd="5", cache_read="0.1"))

    assert usd_text(cost(Usage(input_uncached=56322, cache_read=72960, output=87), row, Terms())) == "0.064053"
    with pytest.raises(ValueError, match="negative"):
        Usage(input_uncached=-16638)


def test_b08_a_prompt_that_may_be_written_to_a_cache_is_bounded_at_the_dearer_rate() -> None:
    """B08: max(input, write), though the caller asked for nothing."""
    row = a_price_row(card=a_card_of(input_usd="4", output_usd="20", cache_write="5", cache_write_long="10"))
    offer = an_offer(row, provider=a_provider(framing=Framing(request=0, part=0, output_overshoot=0)))

    def amount(lifetime: str) -> int:
        return bound(facts(cache_write=lifetime, output_cap=0), [offer], output_tokens_default=None).amount

    assert [amount(lifetime) for lifetime in ("none", "short", "long")] == [400_000_000, 500_000_000, 1_000_000_000]


def test_b12_a_dearer_model_is_not_priced_by_the_row_of_a_shorter_name() -> None:
    """B12: 6 in and 8 out at 5 / 30 are 0.00027; the row of another name never gives another figure."""
    row = a_price_row(model="gpt-5.6", card=a_card_of(input_usd="5", output_usd="30"))

    assert usd_text(cost(Usage(input_uncached=6, output=8), row, Terms())) == "0.00027"


def test_b13_a_price_that_was_removed_still_settles_the_calls_that_it_was_pinned_in() -> None:
    """B13: settlement takes no catalogue, only the quote."""
    quote = a_quote()

    assert settled_cost(UsageReport(), Usage(output=1), quote, start=NOW, end=NOW + timedelta(days=400)) == 10_000_000


def test_b15_a_missing_cached_rate_is_the_full_one() -> None:
    """B15: no crash, no discount that nobody published."""
    row = a_price_row(card=a_card_of(input_usd="3", output_usd="15"))

    assert cost(Usage(cache_read=10), row, Terms()) == cost(Usage(input_uncached=10), row, Terms())


@pytest.mark.parametrize(("asked", "fitting"), [("0.30", 0), ("0.10", 1), ("0.05", 2), ("0.02", 5)])
def test_b17_of_parallel_calls_of_a_run_as_many_pass_as_fit(asked: str, fitting: int) -> None:
    """B17: run limit 1.00, 0.90 spent, 5 calls at once; the reservation is inside the condition."""
    state = a_state(a_limit("1.00", window="life"), counters={"usd.life": usd("0.90")})
    amounts = Amounts(usd=usd(asked), requests=1)

    passed = 0
    for _ in range(5):
        if admitted(state, amounts):
            passed += 1
            state = after(state, dict(on_reserve(hold_of(state.policy, NOW), amounts)))

    assert passed == fitting
    assert state.counters["usd.life"] <= usd("1.00")


@pytest.mark.parametrize(
    ("spent", "asked", "passes"),
    [
        ("9.99", "0.01", True),
        ("9.99", "0.010000000001", False),
        ("10.00", "0.000000000001", False),
        ("10.00", "0", True),
        ("0", "10", True),
        ("0", "10.000000000001", False),
    ],
)
def test_b20_a_call_passes_up_to_the_limit_and_equality_passes(spent: str, asked: str, passes: bool) -> None:
    """B20: one rule: allow if and only if spent + held + asked <= limit."""
    state = a_state(a_limit("10.00"), counters={"usd.day.2026-11-29": usd(spent)})

    assert admitted(state, Amounts(usd=usd(asked))) == passes


def test_b21_a_call_that_ended_leaves_nothing_behind() -> None:
    """B21: reserve and release come to zero in each counter."""
    state = a_state(a_limit("25"), a_limit("5", window="hour"))
    hold = hold_of(state.policy, NOW)
    asked = Amounts(usd=usd("2"), requests=1, tokens=100)

    ended = after(
        after(state, dict(on_reserve(hold, asked))), dict(on_resolve(hold, asked, Amounts(), was_unknown=False))
    )

    assert ended.reserved == 0
    assert set(ended.counters.values()) == {0}


def test_b22_a_denial_shows_spent_held_limit_and_asked_apart() -> None:
    """B22: answered in one look."""
    state = a_state(a_limit("100"), reserved=usd("55.55"), counters={"usd.day.2026-11-29": usd("111.29")})

    found = verdict(state, Amounts(usd=usd("0.5")), NOW)

    assert isinstance(found, Denied)
    told = found.refusal.facts
    assert (told.settled, told.reserved, told.maximum, told.asked) == ("55.74", "55.55", "100", "0.5")


def test_b24_a_hold_in_the_way_is_told_from_a_call_that_can_never_fit_and_what_would_fit_is_named() -> None:
    """B24: 25 USD "full" with spend 0; and no 25.000000000000004."""
    state = a_state(a_limit("25"), reserved=usd("25"), counters={"usd.day.2026-11-29": usd("25")})
    busy = verdict(state, Amounts(usd=usd("1")), NOW)
    never = verdict(state, Amounts(usd=usd("25.5")), NOW)

    assert isinstance(busy, Denied)
    assert isinstance(busy.refusal, BudgetBusy)
    assert busy.refusal.facts.settled == "0"
    assert isinstance(never, Denied)
    assert isinstance(never.refusal, RequestTooExpensive)
    offers = [an_offer()]
    fits = largest_cap_that_fits(facts(), offers, below=10**9, usd=never.room, tokens=None)
    assert fits is not None
    assert bound(facts(output_cap=fits), offers, output_tokens_default=None).amount <= usd("25")
    assert bound(facts(output_cap=fits + 1), offers, output_tokens_default=None).amount > usd("25")


def test_b27_a_day_s_limit_covers_24_hours_and_not_32() -> None:
    """B27: the key of a window is UTC's date, and the instant that frees it is told with Z."""
    limit = a_limit("100")
    spent = {counter("usd", "day", NOW): usd("100")}
    asked = Amounts(usd=usd("1"))
    midnight = datetime(2026, 11, 30, tzinfo=UTC)

    found = verdict(a_state(limit, counters=spent), asked, midnight - timedelta(microseconds=1))

    assert isinstance(found, Denied)
    assert found.refusal.facts.resets_at == "2026-11-30T00:00:00Z"
    assert admitted(a_state(limit, counters=spent), asked, midnight)


def test_b28_march_begins_on_the_first_whatever_happened_before() -> None:
    """B28: a month is no 2592000 seconds and begins at nobody's first use."""
    spent = {"usd.month.2027-02": usd("5000")}
    state = a_state(a_limit("5000", window="month"), counters=spent)

    assert not admitted(state, Amounts(usd=1), datetime(2027, 2, 28, 23, 59, 59, 999999, tzinfo=UTC))
    assert admitted(state, Amounts(usd=usd("5000")), datetime(2027, 3, 1, tzinfo=UTC))


def test_b30_zero_denies_every_paid_call_and_no_limit_denies_none() -> None:
    """B30: 0 is a limit; its absence is none."""
    zero = refusal_before(a_policy(a_limit(0)), Amounts(usd=1), NOW)

    assert zero is not None
    assert isinstance(zero.refusal, RequestTooExpensive)
    assert admitted(a_state(a_limit(0)), Amounts(usd=0))
    assert admitted(a_state(), Amounts(usd=usd("1000000")))


def test_b31_every_level_of_a_path_counts_and_the_tightest_is_named() -> None:
    """B31: org, team and agent all apply."""
    asked = Amounts(usd=usd("1.50"))
    limits: dict[str, Limit] = {"acme": a_limit("2"), "acme/team": a_limit("1"), "acme/team/agent": a_limit("5")}

    found = {
        path: verdict(BudgetState(policy=a_policy(limits[path], path=path)), asked, NOW)
        for path in prefixes("acme/team/agent")
    }

    assert [path for path, one in found.items() if isinstance(one, Denied)] == ["acme/team"]
    denied = found["acme/team"]
    assert isinstance(denied, Denied)
    assert denied.refusal.facts.budget == "acme/team"


@pytest.mark.parametrize(
    "value", [None, "10", -5, float("nan"), Decimal("NaN"), float("inf"), Decimal("1e400"), True, 0.5, 2**53, []]
)
def test_b46_an_odd_value_is_no_count_and_raises_nothing(value: object) -> None:
    """B46: no exception may skip the settlement."""
    assert usable_count(value) is None


@pytest.mark.parametrize("value", [512, 512.0, Decimal("512.0"), Decimal("5.12e2")])
def test_b46_an_integral_number_is_a_count(value: object) -> None:
    """B46: 512.0 is accepted."""
    assert usable_count(value) == 512


def test_b55_2500_calls_of_0_004_fit_into_10_and_the_next_does_not() -> None:
    """B55: no float, no cents; call 2501 is denied."""
    state = a_state(a_limit("10", window="life"))
    asked = Amounts(usd=usd("0.004"), requests=1)
    hold = hold_of(state.policy, NOW)

    for _ in range(2500):
        assert admitted(state, asked)
        state = after(state, dict(on_reserve(hold, asked)))
        state = after(state, dict(on_resolve(hold, asked, asked, was_unknown=False)))

    assert state.counters["usd.life"] == usd("10")
    found = verdict(state, asked, NOW)
    assert isinstance(found, Denied)
    assert isinstance(found.refusal, OverBudget)


def test_b55_a_token_at_0_02_a_million_is_20_nanodollars() -> None:
    """B55: the unit is so small that no rate is rounded."""
    row = a_price_row(card=a_card_of(input_usd="0.02", output_usd="0"))

    assert usd_text(cost(Usage(input_uncached=1), row, Terms())) == "0.00000002"
