"""Features that run at the provider: allowed by a budget of the path, and bounded turn by turn."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.bound import Offer, bound, largest_cap_that_fits, settled_cost
from spendgate.core.feature import allowance, granted, uses_stamped, uses_to_stamp
from spendgate.core.media import Media
from spendgate.core.money import usd
from spendgate.core.request import Demand, RequestFacts
from spendgate.core.route import Candidate, Framing
from spendgate.core.usage import Usage, UsageReport
from spendgate.errors import CostBoundUnknown
from tests.builders import NOW, a_card, a_policy, a_price_row, a_provider, facts, rates

SEARCH = Demand(
    feature="web_search", field="tools[0]", uses=3, states_uses=True, turns=11, fee="web_search", uses_field="max_uses"
)
FETCH = Demand(feature="web_fetch", field="tools[1]", uses=2, states_uses=True, turns=11, uses_field="max_uses")
CALLS = Demand(
    feature="web_search", field="tools[0]", fee="web_search", uses_field="max_tool_calls", stamps_uses=True, hint="how"
)
OPEN = Demand(feature="web_search", field="web_search_options", fee="web_search", tokens_each=8_000)
UNFRAMED = a_provider(framing=Framing(request=0, tooling=0, tool=0, part=0, output_overshoot=0))


def served_by(model: str = "demo-model", **row: object) -> Offer:
    said = {"context_tokens": 1_000, "fees": (("web_search", usd("0.01")),)} | row
    rows = (a_price_row(model=model, **said),)
    return Offer(candidate=Candidate(provider="demo", model=model), provider=UNFRAMED, rows=rows)


def asking(*demands: Demand, **changes: object) -> RequestFacts:
    return facts(text_bytes=10, parts=0, output_cap=40, demands=demands, **changes)


def test_the_nearest_budget_of_the_path_says_what_is_allowed() -> None:
    root = a_policy(allow=(("web_fetch", 1), ("web_search", 5)))
    leaf = a_policy(path="acme/search", allow=(("web_search", 2),))

    assert allowance([root, leaf]) == {"web_fetch": 1, "web_search": 2}
    assert allowance([a_policy()]) == {}


def test_a_request_without_server_features_needs_no_allowance() -> None:
    assert granted(facts(), {}) == facts()


@pytest.mark.parametrize("allowed", [{}, {"web_fetch": 9}, {"web_search": 0}])
def test_a_feature_that_no_budget_allows_is_refused_by_name_with_how_to_allow_it(allowed: dict[str, int]) -> None:
    with pytest.raises(
        CostBoundUnknown, match="web_search, which neither a budget of the path nor the route allows"
    ) as caught:
        granted(asking(SEARCH), allowed)

    assert caught.value.facts.field == "tools[0]"
    assert "allow: {web_search: 5}" in (caught.value.facts.next_action or "")


@pytest.mark.parametrize("uses", [None, 6])
def test_more_uses_than_are_allowed_or_uses_without_an_end_are_refused_with_the_number_that_passes(
    uses: int | None,
) -> None:
    with pytest.raises(CostBoundUnknown) as caught:
        granted(asking(replace(SEARCH, uses=uses)), {"web_search": 5})

    assert "max_uses to 5" in (caught.value.facts.next_action or "")


def test_as_many_uses_as_are_allowed_pass_and_an_open_number_becomes_the_allowed_one() -> None:
    assert granted(asking(SEARCH), {"web_search": 3}).demands == (SEARCH,)
    assert granted(asking(OPEN), {"web_search": 2}).demands == (replace(OPEN, uses=2),)


def test_what_is_allowed_is_stamped_where_the_request_says_nothing_and_the_smallest_number_holds_for_all() -> None:
    files = replace(CALLS, feature="file_search", fee="file_search")

    both = granted(asking(CALLS, files), {"web_search": 5, "file_search": 2})
    said = granted(asking(replace(CALLS, uses=2)), {"web_search": 5})

    assert [(one.uses, one.stamped) for one in both.demands] == [(5, True), (2, True)]
    assert (uses_to_stamp(both), uses_stamped(both)) == (2, 2)
    assert (uses_to_stamp(said), uses_stamped(said)) == (2, None)
    assert (uses_to_stamp(asking(CALLS)), uses_stamped(asking(OPEN))) == (None, None)


@pytest.mark.parametrize(
    "uses,allowed,words",
    [(None, 0, "send the call without it (how), or an operator"), (9, 5, "set max_tool_calls to 5 or less")],
)
def test_a_refusal_names_the_request_s_own_field_and_the_setting_that_leaves_it_out(
    uses: int | None, allowed: int, words: str
) -> None:
    with pytest.raises(CostBoundUnknown) as caught:
        granted(asking(replace(CALLS, uses=uses)), {"web_search": allowed})

    assert words in (caught.value.facts.next_action or "")


def test_a_number_of_uses_is_a_bound_only_at_a_provider_that_is_known_to_keep_to_it() -> None:
    asked = granted(asking(replace(CALLS, fees_each=2)), {"web_search": 2})
    offer = served_by()
    at_openai = replace(offer, provider=replace(UNFRAMED, dialect="openai", kind="openai"))

    with pytest.raises(CostBoundUnknown, match="max_tool_calls") as caught:
        bound(asked, [offer], output_tokens_default=None)
    assert caught.value.facts.field == "tools[0]"
    most = bound(asked, [at_openai], output_tokens_default=None)
    assert most.amount == 3 * 1_000 * 2_500_000 + 40 * 10_000_000 + 2 * 2 * usd("0.01")


def test_a_demand_that_nobody_has_granted_has_no_bound() -> None:
    with pytest.raises(ValueError, match="web_search"):
        bound(asking(OPEN), [served_by()], output_tokens_default=None)


def test_each_turn_of_a_loop_is_bounded_by_the_whole_context_and_each_use_by_its_fee() -> None:
    most = bound(asking(SEARCH, FETCH), [served_by()], output_tokens_default=None)

    assert most.input_tokens_max == 11 * 1_000
    assert most.amount == 11_000 * 2_500_000 + 40 * 10_000_000 + 3 * usd("0.01")


def test_a_loop_without_a_limit_of_its_own_has_one_turn_more_than_uses_and_what_is_billed_beside_the_context() -> None:
    most = bound(granted(asking(OPEN), {"web_search": 2}), [served_by()], output_tokens_default=None)

    assert most.input_tokens_max == 3 * 1_000 + 2 * 8_000


def test_images_that_are_billed_beside_the_context_are_billed_in_every_turn() -> None:
    image = Media(kind="image", field="f")
    most = bound(asking(SEARCH, media=(image,)), [served_by(image_tokens_max=7)], output_tokens_default=None)

    assert most.input_tokens_max == 11 * 1_007


def test_what_the_provider_finds_may_be_images_and_costs_what_they_cost() -> None:
    """Gemini reads images and PDF under an address; a summary of the conversation brings in nothing."""
    card = a_card(rates=rates(input=1, cache_read=0, output=0, image_input=5))
    summary = Demand(feature="compaction", field="f", uses=2, turns=11)

    def amount(demand: Demand) -> int:
        return bound(asking(demand), [served_by(card=card, fees=())], output_tokens_default=None).amount

    assert amount(FETCH) == 11 * 1_000 * 5
    assert amount(summary) == 11 * 1_000


def test_without_a_context_nothing_bounds_a_loop() -> None:
    with pytest.raises(CostBoundUnknown, match="context") as caught:
        bound(asking(SEARCH), [served_by(context_tokens=None)], output_tokens_default=None)

    assert caught.value.facts.field == "tools[0]"


def test_b49_a_feature_without_a_fee_in_the_price_row_is_refused() -> None:
    """B49: a fee that nobody has priced is not free."""
    with pytest.raises(CostBoundUnknown, match="fee for each web_search") as caught:
        bound(asking(SEARCH), [served_by(fees=())], output_tokens_default=None)

    assert caught.value.facts.field == "tools[0]"
    assert bound(asking(FETCH), [served_by(fees=())], output_tokens_default=None).amount > 0


def test_a_model_that_searches_in_every_call_is_refused_unless_the_request_says_so() -> None:
    offer = served_by("gpt-4o-search-preview")

    with pytest.raises(CostBoundUnknown, match="in every call") as caught:
        bound(asking(), [offer], output_tokens_default=None)
    assert caught.value.facts.field == "web_search_options"
    assert bound(granted(asking(OPEN), {"web_search": 1}), [offer], output_tokens_default=None).amount > 0


HIDDEN = Media(kind="reasoning", field="messages[1].content[0]", count=2)


def test_thinking_that_is_not_shown_is_bounded_by_all_that_the_model_can_put_out() -> None:
    sized = served_by(context_tokens=1_000_000, output_tokens_max=64_000)

    assert bound(asking(media=(HIDDEN,)), [sized], output_tokens_default=None).input_tokens_max == 128_010
    assert bound(asking(media=(HIDDEN,)), [served_by()], output_tokens_default=None).input_tokens_max == 1_000


def test_thinking_that_is_not_shown_has_no_bound_where_no_size_of_the_model_is_known() -> None:
    with pytest.raises(CostBoundUnknown, match="thinking that is not shown") as caught:
        bound(asking(media=(HIDDEN,)), [served_by(context_tokens=None)], output_tokens_default=None)

    assert caught.value.facts.field == HIDDEN.field


@given(
    st.integers(1, 5),
    st.integers(0, 3),
    st.lists(st.integers(0, 1_000), min_size=11, max_size=11),
    st.lists(st.sampled_from(["input_uncached", "cache_read", "cache_write"]), min_size=11, max_size=11),
    st.integers(0, 40),
    st.integers(0, 10**8),
)
def test_no_loop_costs_more_than_its_bound(
    uses: int, images: int, turns: list[int], buckets: list[str], output: int, write: int
) -> None:
    """A provider that runs all its turns, each with any part of the context, read or written, and bills every use."""
    offer = served_by(card=a_card(rates=rates(cache_write=write)), image_tokens_max=500)
    media = (Media(kind="image", field="f", count=images),) if images else ()
    of = granted(
        asking(replace(SEARCH, uses=uses), FETCH, media=media, cache_write="short"),
        allowance([a_policy(allow=(("web_fetch", 2), ("web_search", 5)))]),
    )
    most = bound(of, [offer], output_tokens_default=None)
    counts = dict.fromkeys(buckets, 0)
    for bucket, tokens in zip(buckets, turns, strict=True):
        counts[bucket] += tokens + 500 * images
    usage = Usage(**counts, output=output, fees=(("web_search", uses),))

    assert settled_cost(UsageReport(), usage, most.quotes[0], start=NOW, end=NOW) <= most.amount


def test_the_cap_that_fits_counts_turns_and_fees_too() -> None:
    room = bound(replace(asking(SEARCH), output_cap=1_234), [served_by()], output_tokens_default=None)

    fits = largest_cap_that_fits(
        replace(asking(SEARCH), output_cap=5_000), [served_by()], below=5_000, usd=room.amount, tokens=None
    )

    assert fits == 1_234
