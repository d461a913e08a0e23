"""The bound: no call within it costs more, and the cap that fits is the largest that does."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spendgate.core.bound import Offer, bound, largest_cap_that_fits, settled_cost
from spendgate.core.intake import input_tokens_max
from spendgate.core.money import MONEY_MAX
from spendgate.core.price import FACTOR_ONE, Terms, Tier, rows_touching
from spendgate.core.request import RequestFacts
from spendgate.core.route import Framing
from spendgate.core.usage import Usage, UsageReport
from spendgate.errors import CostBoundUnknown
from tests.builders import NOW, a_card, a_price_row, a_provider, a_quote, an_offer, facts, rates
from tests.strategies import START, calls, reports_within, usages_within

NO_FRAMING = Framing(request=0, tooling=0, tool=0, part=0, output_overshoot=0)


Call = tuple[RequestFacts, tuple[Offer, ...]]


@given(st.data(), calls(), st.integers(0, 150))
def test_no_answer_within_a_call_s_bound_costs_more_than_it(data: st.DataObject, call: Call, minutes: int) -> None:
    """Whatever tiers, factors, rows and cache hits it meets, and whatever it says or leaves out of them."""
    of, candidates = call
    most = bound(of, candidates, output_tokens_default=100)
    served = data.draw(st.integers(0, len(candidates) - 1))
    # What a candidate can count is bounded by its own framing and context.
    own = bound(replace(of, output_cap=most.output_cap), [candidates[served]], output_tokens_default=None)
    usage = data.draw(usages_within(of, own))
    report = data.draw(reports_within(of, candidates[served].provider))

    actual = settled_cost(report, usage, most.quotes[served], start=START, end=START + timedelta(minutes=minutes))

    assert actual <= own.amount <= most.amount


@settings(max_examples=40)
@given(calls(), st.tuples(st.integers(0, 400), st.integers(0, 400)))
def test_a_bound_grows_with_the_output_cap(call: Call, caps: tuple[int, int]) -> None:
    of, candidates = call

    low, high = (bound(replace(of, output_cap=cap), candidates, output_tokens_default=None) for cap in sorted(caps))

    assert low.amount <= high.amount
    assert low.tokens <= high.tokens


@settings(max_examples=40)
@given(calls(), st.integers(0, 20), st.none() | st.integers(0, 10**13), st.none() | st.integers(0, 30_000))
def test_the_cap_that_is_told_to_fit_is_the_largest_that_does(
    call: Call, below: int, usd: int | None, tokens: int | None
) -> None:
    of, candidates = call

    def fits(cap: int) -> bool:
        most = bound(replace(of, output_cap=cap), candidates, output_tokens_default=None)
        return (usd is None or most.amount <= usd) and (tokens is None or most.tokens <= tokens)

    naive = max((cap for cap in range(1, below) if fits(cap)), default=None)

    assert largest_cap_that_fits(of, candidates, below=below, usd=usd, tokens=tokens) == naive


def test_a_factor_that_only_one_of_a_call_s_rows_has_is_bounded_for_all_of_them() -> None:
    """The terms are pinned once: a price that changes in mid-call must not be settled beyond what was reserved."""
    plain = a_price_row(card=a_card(rates=rates(input=100)))
    uplifted = a_price_row(card=a_card(rates=rates(input=90)), factors=(("geo", "us", 1_200_000),), valid_from=NOW)
    offer = an_offer(plain, uplifted, provider=a_provider(framing=NO_FRAMING))

    most = bound(facts(text_bytes=100, output_cap=0), [offer], output_tokens_default=None)

    usage = Usage(input_uncached=100)
    assert settled_cost(UsageReport(), usage, most.quotes[0], start=NOW - timedelta(hours=1), end=NOW) <= most.amount


def test_a_bound_is_input_and_output_at_their_rates() -> None:
    offer = an_offer(provider=a_provider(framing=NO_FRAMING))

    most = bound(facts(text_bytes=100, output_cap=40), [offer], output_tokens_default=None)

    assert most.amount == 100 * 2_500_000 + 40 * 10_000_000
    assert (most.input_tokens_max, most.output_tokens_max, most.output_cap, most.stamped) == (100, 40, 40, False)
    assert most.tokens == 140
    assert most.quotes == (a_quote(rows=offer.rows),)


def test_json_framing_tools_and_parts_are_counted_and_the_context_is_the_most() -> None:
    framing = Framing(request=1000, tooling=500, tool=50, part=5)
    plain = facts(text_bytes=100, json_bytes=30, parts=3)

    assert input_tokens_max(plain, framing, None) == 100 + 60 + 1000 + 15
    assert input_tokens_max(facts(text_bytes=0, parts=0, tools=2), framing, None) == 1000 + 500 + 100
    assert input_tokens_max(facts(text_bytes=0, parts=0, structured=True), framing, None) == 1000 + 500
    assert input_tokens_max(plain, framing, 128) == 128


def test_a_row_without_a_context_leaves_the_input_as_it_was_measured() -> None:
    rows = (a_price_row(context_tokens=10), a_price_row(context_tokens=None, valid_from=NOW))

    assert bound(facts(text_bytes=5000), [an_offer(*rows)], output_tokens_default=None).input_tokens_max > 5000


def test_of_several_contexts_the_largest_is_believed() -> None:
    rows = (a_price_row(context_tokens=10), a_price_row(context_tokens=50, valid_from=NOW))

    assert bound(facts(text_bytes=5000), [an_offer(*rows)], output_tokens_default=None).input_tokens_max == 50


@pytest.mark.parametrize(
    ("default", "row_max", "stamped"), [(8192, 4096, 4096), (512, 4096, 512), (512, None, 512), (None, 64, 64)]
)
def test_an_absent_cap_is_stamped_with_the_smallest_that_is_known(
    default: int | None, row_max: int | None, stamped: int
) -> None:
    """B24: the whole head-room is never held for want of a cap."""
    most = bound(
        facts(output_cap=None), [an_offer(a_price_row(output_tokens_max=row_max))], output_tokens_default=default
    )

    assert (most.output_cap, most.stamped) == (stamped, True)


def test_without_any_cap_there_is_no_bound() -> None:
    with pytest.raises(CostBoundUnknown, match="no output cap") as caught:
        bound(facts(output_cap=None), [an_offer()], output_tokens_default=None)
    assert caught.value.facts.field == "max_tokens"


def test_choices_multiply_the_output_with_its_overshoot() -> None:
    offer = an_offer(provider=a_provider(framing=Framing(output_overshoot=16)))

    assert bound(facts(output_cap=40, choices=3), [offer], output_tokens_default=None).output_tokens_max == 3 * 56


def test_a_bound_is_that_of_the_dearest_candidate_and_row() -> None:
    dear = a_price_row(card=a_card(rates=rates(output=20_000_000)), valid_from=NOW)
    of = facts()

    most = bound(of, [an_offer(), an_offer(a_price_row(), dear)], output_tokens_default=None)

    assert most.amount == bound(of, [an_offer(dear)], output_tokens_default=None).amount
    assert len(most.quotes) == 2


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"geo": "mars"}, "inference_geo"), ({"speed": "warp"}, "speed"), ({"service_tier": "priority"}, "service_tier")],
)
def test_what_is_asked_for_and_has_no_price_has_no_bound(changes: dict[str, str], field: str) -> None:
    with pytest.raises(CostBoundUnknown) as caught:
        bound(facts(**changes), [an_offer()], output_tokens_default=None)
    assert caught.value.facts.field == field


def test_an_undeclared_tier_and_place_are_bounded_at_the_dearest_and_a_declared_one_at_its_own() -> None:
    row = a_price_row(
        service=(("priority", a_card(rates=rates(input=5_000_000, output=20_000_000))),),
        factors=(("geo", "us", 1_100_000),),
    )

    def amount(**declared: str) -> int:
        offer = an_offer(row, provider=a_provider(framing=NO_FRAMING, **declared))
        return bound(facts(text_bytes=100), [offer], output_tokens_default=None).amount

    standard = 100 * 2_500_000 + 40 * 10_000_000
    assert amount() == 2 * standard * 11 // 10
    assert amount(service_tier="default") == standard * 11 // 10
    assert amount(service_tier="default", geo="global") == standard


def test_a_fast_answer_that_nobody_asked_for_is_not_assumed() -> None:
    row = a_price_row(factors=(("speed", "fast", 2_000_000),))

    assert bound(facts(), [an_offer(row)], output_tokens_default=None).amount * 2 == (
        bound(facts(speed="fast"), [an_offer(row)], output_tokens_default=None).amount
    )


def test_a_cliff_below_the_bound_is_reserved_for() -> None:
    row = a_price_row(card=a_card(tiers=(Tier(above=50, rates=rates(input=25_000_000)),)))
    offer = an_offer(row, provider=a_provider(framing=NO_FRAMING))

    assert bound(facts(text_bytes=50), [offer], output_tokens_default=None).amount == 50 * 2_500_000 + 40 * 10_000_000
    assert bound(facts(text_bytes=51), [offer], output_tokens_default=None).amount == 51 * 25_000_000 + 40 * 10_000_000


def test_a_bound_beyond_all_money_saturates() -> None:
    offer = an_offer(a_price_row(card=a_card(rates=rates(output=10**30))))

    assert bound(facts(output_cap=2**40), [offer], output_tokens_default=None).amount == MONEY_MAX


TIERED = a_price_row(
    service=(("priority", a_card(rates=rates(input=5_000_000))), ("flex", a_card(rates=rates(input=1_000_000)))),
    factors=(("geo", "us", 1_100_000), ("speed", "fast", 2_000_000)),
)


@pytest.mark.parametrize(
    ("reserved", "report", "rate"),
    [
        # What is said decides, down and up.
        (Terms(service_tier="priority"), UsageReport(service_tier="default"), 2_500_000),
        (Terms(service_tier="priority"), UsageReport(service_tier="flex"), 1_000_000),
        (Terms(), UsageReport(service_tier="priority"), 5_000_000),
        # What is not said, or has no rate, stays as it was reserved.
        (Terms(service_tier="priority"), UsageReport(), 5_000_000),
        (Terms(service_tier="priority"), UsageReport(service_tier="scale"), 5_000_000),
        (Terms(factors=(("geo", 1_100_000),)), UsageReport(), 2_750_000),
        (Terms(factors=(("geo", 1_100_000),)), UsageReport(geo="mars"), 2_750_000),
        (Terms(factors=(("geo", 1_100_000),)), UsageReport(geo="global"), 2_500_000),
        (Terms(factors=(("geo", 1_100_000),)), UsageReport(geo="us"), 2_750_000),
        (Terms(factors=(("speed", 2_000_000),)), UsageReport(speed="standard"), 2_500_000),
        (Terms(factors=(("speed", 2_000_000), ("residency", 1_100_000))), UsageReport(speed="standard"), 2_750_000),
        # A declaration that was wrong does not make the bill smaller.
        (Terms(), UsageReport(geo="us"), 2_750_000),
        (Terms(), UsageReport(speed="fast"), 5_000_000),
        (Terms(), UsageReport(geo="us", speed="fast"), 5_500_000),
    ],
)
def test_an_answer_is_settled_at_the_tier_and_place_it_names(reserved: Terms, report: UsageReport, rate: int) -> None:
    quote = a_quote(rows=(TIERED,), terms=reserved)

    assert settled_cost(report, Usage(input_uncached=1000), quote, start=NOW, end=NOW) == 1000 * rate


def test_a_reserved_tier_that_another_row_does_not_know_is_its_standard_one() -> None:
    quote = a_quote(rows=(a_price_row(),), terms=Terms(service_tier="priority"))

    assert settled_cost(UsageReport(), Usage(input_uncached=1), quote, start=NOW, end=NOW) == 2_500_000


def test_of_the_rows_in_force_while_an_answer_was_made_the_dearest_settles_it() -> None:
    change = NOW + timedelta(minutes=1)
    dear = a_price_row(valid_from=change, card=a_card(rates=rates(input=9_000_000)))
    quote = a_quote(rows=(a_price_row(), dear))
    usage = Usage(input_uncached=1)

    assert settled_cost(UsageReport(), usage, quote, start=NOW, end=NOW) == 2_500_000
    assert settled_cost(UsageReport(), usage, quote, start=NOW, end=change) == 9_000_000


def test_b13_an_answer_is_settled_with_its_pinned_rows_whatever_the_clock_says() -> None:
    """B13: where no pinned row is in force at the time that is given, all of them are taken, never none."""
    quote = a_quote(rows=(a_price_row(valid_from=NOW),))
    early = NOW - timedelta(days=1)

    assert rows_touching(quote.rows, early, early) == ()
    assert settled_cost(UsageReport(), Usage(input_uncached=1), quote, start=early, end=early) == 2_500_000


def test_a_tier_that_only_a_request_can_ask_for_is_not_assumed() -> None:
    dear, dearer = a_card(rates=rates(input=5_000_000)), a_card(rates=rates(input=15_000_000))
    row = a_price_row(service=(("priority", dear), ("ultrafast", dearer)))

    def tier(asked: str | None) -> str:
        return (
            bound(facts(service_tier=asked), [an_offer(row)], output_tokens_default=None).quotes[0].terms.service_tier
        )

    assert [tier(None), tier("ultrafast")] == ["priority", "ultrafast"]


def test_a_residency_is_assumed_unless_the_provider_says_that_there_is_none() -> None:
    """OpenAI's data residency costs 1.1 times, and neither a request nor an answer shows it."""
    row = a_price_row(factors=(("residency", "eu", 1_100_000), ("residency", "us", 1_050_000)))

    def terms(residency: str | None) -> Terms:
        offer = replace(an_offer(row), provider=replace(a_provider(), residency=residency))
        return bound(facts(), [offer], output_tokens_default=None).quotes[0].terms

    assert terms(None) == terms("eu") == Terms(factors=(("residency", 1_100_000),))
    assert terms("us") == Terms(factors=(("residency", 1_050_000),))
    assert terms("none") == Terms()
    with pytest.raises(CostBoundUnknown, match="residency 'mars' has no price"):
        terms("mars")


def test_a_factor_of_one_is_no_term() -> None:
    row = a_price_row(factors=(("geo", "us", FACTOR_ONE),))

    assert bound(facts(geo="us"), [an_offer(row)], output_tokens_default=None).quotes[0].terms == Terms()


def test_an_answer_that_does_not_say_its_tier_is_settled_at_the_dearest_for_what_it_used() -> None:
    # Of these two tiers one is dearer for what is read, the other for what is written.
    row = a_price_row(
        card=a_card(rates=rates(input=1_000_000, output=10_000_000)),
        service=(("priority", a_card(rates=rates(input=5_000_000, output=8_000_000))),),
    )
    most = bound(facts(output_cap=100_000), [an_offer(row)], output_tokens_default=None)
    (quote,) = most.quotes
    assert quote.tiers == ("standard", "priority")

    def actual(usage: Usage, tier: str | None = None) -> int:
        return settled_cost(UsageReport(service_tier=tier), usage, quote, start=NOW, end=NOW)

    assert actual(Usage(input_uncached=100)) == 100 * 5_000_000
    assert actual(Usage(output=100)) == 100 * 10_000_000
    assert actual(Usage(input_uncached=100), "default") == 100 * 1_000_000
