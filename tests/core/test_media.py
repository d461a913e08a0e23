"""What images, documents and sound cost at most: by table, by the operator's word, or by the whole context."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.bound import Offer, bound, largest_cap_that_fits, settled_cost
from spendgate.core.media import IMAGES, Media, media_tokens
from spendgate.core.price import PriceRow
from spendgate.core.request import RequestFacts
from spendgate.core.route import Candidate, Framing
from spendgate.core.usage import Usage, UsageReport
from spendgate.errors import CostBoundUnknown
from tests.builders import NOW, a_card, a_price_row, a_provider, facts, rates

IMAGE = Media(kind="image", field="messages[0].content[1]")
DOCUMENT = Media(kind="document", field="messages[0].content[2]")
SOUND = Media(kind="audio", field="messages[0].content[3]")
UNFRAMED = a_provider(framing=Framing(request=0, tooling=0, tool=0, part=0, output_overshoot=0))


def served_by(model: str, **row: object) -> Offer:
    rows = (a_price_row(model=model, **({"context_tokens": 1_000_000} | row)),)
    return Offer(candidate=Candidate(provider="demo", model=model), provider=UNFRAMED, rows=rows)


def asking(*media: Media) -> RequestFacts:
    return facts(text_bytes=10, parts=0, output_cap=1, media=media)


def tokens(offer: Offer, *media: Media) -> int:
    return bound(asking(*media), [offer], output_tokens_default=None).input_tokens_max - 10


# Worst cases that were computed or measured elsewhere: providers' pages, July to November 2026.
@pytest.mark.parametrize(
    ("model", "detail", "most"),
    [
        ("gpt-4o-mini", "high", 2_833 + 8 * 5_667),
        ("gpt-4o-mini", "low", 2_833),
        ("gpt-4o-2024-08-06", None, 85 + 8 * 170),
        ("gpt-4.1", "low", 85),
        ("gpt-5", "auto", 70 + 8 * 140),
        ("o3", "high", 75 + 8 * 150),
        ("gpt-5.4", "auto", 3_000),
        ("gpt-5.4", "original", 12_000),
        ("gpt-5.5", None, 12_000),
        ("gpt-6-astra", "low", 36_000),
        ("gpt-6.1-sol", None, 36_000),
        ("gpt-5-nano", "low", 15_115),
        ("claude-opus-5-5", None, 5_000),
        ("claude-haiku-4-5-20251001", None, 1_700),
        ("gemini-3.8-flash", None, 2_304),
    ],
)
def test_an_image_is_bounded_by_its_model_and_its_detail(model: str, detail: str | None, most: int) -> None:
    image = Media(kind="image", field="f", detail=detail, count=3)

    assert tokens(served_by(model), image) == 3 * most


def test_a_measured_image_is_within_the_table() -> None:
    """gpt-6: 4032 x 3024 pixels as 14,364 tokens; Claude Haiku 4.5 at its cap 1,661 with the prompt; Gemini 3 1,101."""
    assert tokens(served_by("gpt-6-astra"), IMAGE) >= 14_364
    assert tokens(served_by("claude-haiku-4-5"), IMAGE) >= 1_661
    assert tokens(served_by("gemini-3.8-flash"), IMAGE) >= 1_101


def test_every_name_of_the_table_is_there_once_with_its_source_and_its_date() -> None:
    names = [name for family in IMAGES for name in family.models]

    assert len(names) == len(set(names))
    assert all(family.source and family.checked and family.most > 0 for family in IMAGES)
    assert all(most <= family.most for family in IMAGES for _, most in family.details)


def test_an_alias_is_looked_up_by_the_model_that_its_price_row_names() -> None:
    offer = Offer(
        candidate=Candidate(provider="demo", model="our-eyes"),
        provider=UNFRAMED,
        rows=(a_price_row(model="gpt-4o", aliases=("our-eyes",)),),
    )

    assert tokens(offer, IMAGE) == 1_445


def test_an_image_at_a_model_that_nobody_knows_is_refused_with_what_to_do() -> None:
    with pytest.raises(CostBoundUnknown, match="house-model at provider demo") as caught:
        tokens(served_by("house-model"), IMAGE)

    assert caught.value.facts.field == "messages[0].content[1]"
    assert "image_tokens_max" in (caught.value.facts.next_action or "")


def test_a_name_that_only_looks_like_a_known_one_has_no_table() -> None:
    with pytest.raises(CostBoundUnknown):
        tokens(served_by("gpt-4o-mini-transcribe"), IMAGE)


def test_what_an_operator_says_of_an_image_counts_before_the_table() -> None:
    assert tokens(served_by("house-model", image_tokens_max=2_000), IMAGE, IMAGE) == 4_000
    assert tokens(served_by("gpt-4o", image_tokens_max=2_000), IMAGE) == 2_000


def test_of_several_rows_the_largest_statement_counts() -> None:
    rows = tuple(a_price_row(image_tokens_max=most, valid_from=at) for most, at in ((None, NOW), (7, NOW), (9, NOW)))
    offer = Offer(candidate=Candidate(provider="demo", model="demo-model"), provider=UNFRAMED, rows=rows)

    assert tokens(offer, IMAGE) == 9


def test_images_are_within_the_context_where_the_provider_counts_them_so() -> None:
    assert tokens(served_by("claude-opus-5", context_tokens=6_000), Media(kind="image", field="f", count=9)) == 5_990


def test_images_that_are_billed_beyond_the_context_are_bounded_beyond_it() -> None:
    """gpt-4o-mini bills an image at 33 times what it takes of the context."""
    many = Media(kind="image", field="f", count=10)

    assert tokens(served_by("gpt-4o-mini", context_tokens=128_000), many) == 481_690
    assert tokens(served_by("house-model", context_tokens=1_000, image_tokens_max=900), many) == 9_000


@pytest.mark.parametrize("item", [DOCUMENT, SOUND])
def test_a_document_and_sound_are_bounded_by_the_whole_context(item: Media) -> None:
    offer = served_by("house-model", context_tokens=5_000, card=a_card(rates=rates(audio_input=1)))

    assert tokens(offer, item) == 4_990


@pytest.mark.parametrize("item", [DOCUMENT, SOUND])
def test_without_a_context_nothing_bounds_a_document_or_sound(item: Media) -> None:
    offer = served_by("house-model", context_tokens=None, card=a_card(rates=rates(audio_input=1)))

    with pytest.raises(CostBoundUnknown, match="context") as caught:
        tokens(offer, item)

    assert caught.value.facts.field == item.field
    assert "context_tokens" in (caught.value.facts.next_action or "")


def test_pages_of_a_model_whose_images_are_billed_beyond_its_context_have_no_bound() -> None:
    with pytest.raises(CostBoundUnknown, match="more tokens than its context") as caught:
        tokens(served_by("gpt-4o-mini"), DOCUMENT)

    assert caught.value.facts.field == DOCUMENT.field


def test_sound_without_a_rate_of_its_own_is_refused() -> None:
    with pytest.raises(CostBoundUnknown, match="no rate for it") as caught:
        tokens(served_by("house-model"), SOUND)

    assert caught.value.facts.field == SOUND.field
    assert "audio_input" in (caught.value.facts.next_action or "")


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-4-argon"])
def test_an_image_that_is_billed_by_its_size_is_bounded_by_the_context_or_by_the_operator(model: str) -> None:
    """A header proves no size, and a narrow image has any number of tiles."""
    images = Media(kind="image", field="f", count=3)

    assert tokens(served_by(model, context_tokens=5_000), images) == 5_000 - 10
    assert tokens(served_by(model, image_tokens_max=258), images) == 3 * 258
    with pytest.raises(CostBoundUnknown, match="an image of any size") as caught:
        tokens(served_by(model, context_tokens=None), images)
    assert caught.value.facts.field == "f"


def test_a_file_may_be_anything_and_costs_the_dearest_of_all_rates() -> None:
    file = Media(kind="file", field="f")
    card = a_card(rates=rates(input=1, cache_read=0, output=0, audio_input=7, image_input=5))

    whole = bound(asking(file), [served_by("m", card=card, context_tokens=100)], output_tokens_default=None)

    assert (whole.input_tokens_max, whole.amount) == (100, 700)
    with pytest.raises(CostBoundUnknown, match="a file of any kind"):
        tokens(served_by("m"), file)


def test_the_pages_of_a_document_cost_what_images_cost() -> None:
    card = a_card(rates=rates(input=1, cache_read=0, output=0, image_input=5))

    whole = bound(asking(DOCUMENT), [served_by("m", card=card, context_tokens=100)], output_tokens_default=None)

    assert whole.amount == 500


@pytest.mark.parametrize("modality", ["audio", "image"])
def test_the_dearer_of_the_rates_of_text_and_of_a_modality_counts(modality: str) -> None:
    item = SOUND if modality == "audio" else IMAGE
    row: dict[str, object] = {"context_tokens": 1_000, "image_tokens_max": 990}

    def amount(rate: int) -> int:
        offer = served_by("house-model", card=a_card(rates=rates(**{f"{modality}_input": rate}, output=0)), **row)
        return bound(asking(item), [offer], output_tokens_default=None).amount

    assert amount(40_000_000) == 1_000 * 40_000_000
    assert amount(1) == 1_000 * 2_500_000


def test_a_request_without_images_is_not_bounded_at_the_rate_of_images() -> None:
    offer = served_by("house-model", card=a_card(rates=rates(image_input=10**9, audio_input=10**9)))

    assert bound(asking(), [offer], output_tokens_default=None).amount == 10 * 2_500_000 + 10_000_000


_ROWS = st.builds(
    lambda own, seen, context, heard: a_price_row(
        model=own,
        context_tokens=context,
        card=a_card(rates=rates(image_input=seen, audio_input=heard)),
    ),
    st.sampled_from(["gpt-4o", "gpt-5.4", "claude-opus-5"]),
    st.none() | st.integers(0, 10**8),
    st.integers(20_000, 60_000),
    st.integers(0, 10**8),
)
_ITEMS = st.builds(
    Media,
    kind=st.sampled_from(["image", "image", "document", "audio"]),
    field=st.just("f"),
    detail=st.sampled_from([None, "low", "high", "original"]),
    count=st.integers(1, 12),
)


@given(_ROWS, st.lists(_ITEMS, max_size=4), st.data())
def test_no_mix_of_media_costs_more_than_its_bound(row: PriceRow, media: list[Media], data: st.DataObject) -> None:
    """A provider that bills every item at the most of its page, every page with the whole context, at any rate."""
    offer = Offer(candidate=Candidate(provider="demo", model=row.model), provider=UNFRAMED, rows=(row,))
    of = asking(*media)
    most = bound(of, [offer], output_tokens_default=None)
    seen = sum(
        item.count * {"gpt-4o": 1_445, "gpt-5.4": 12_000, "claude-opus-5": 5_000}[row.model]
        for item in media
        if item.kind == "image" and item.detail not in ("low", "high", None)
    )
    pages = any(item.kind != "image" for item in media)
    heard = any(item.kind == "audio" for item in media)
    assert row.context_tokens is not None
    total = row.context_tokens if pages else min(10 + seen, row.context_tokens)
    images = data.draw(st.integers(0, total)) if any(item.kind == "image" for item in media) else 0
    audio = data.draw(st.integers(0, total - images)) if heard else 0
    usage = Usage(input_uncached=total - images - audio, image_input=images, audio_input=audio, output=1)

    assert settled_cost(UsageReport(), usage, most.quotes[0], start=NOW, end=NOW) <= most.amount


def test_the_cap_that_fits_counts_the_media_too() -> None:
    offer, of = served_by("gpt-4o"), facts(text_bytes=0, parts=0, output_cap=5_000, media=(IMAGE,))
    room = bound(facts(text_bytes=0, parts=0, output_cap=1_234, media=(IMAGE,)), [offer], output_tokens_default=None)

    assert largest_cap_that_fits(of, [offer], below=5_000, usd=room.amount, tokens=None) == 1_234


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("anthropic.claude-opus-5-5", 5_000),
        ("us.anthropic.claude-sonnet-5", 5_000),
        ("global.anthropic.claude-haiku-4-5-20251001-v1:0", 1_700),
        ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", 1_700),
        ("anthropic.claude-opus-4-6-v1", 1_700),
    ],
)
def test_a_claude_at_bedrock_sees_as_it_does_at_home(name: str, most: int) -> None:
    image = Media(kind="image", field="messages[0]")

    assert media_tokens([image], names=(name,), stated=None, provider="bedrock").within == most


@pytest.mark.parametrize(
    "name", ["us.anthropic.claude-unheard-of-v1:0", "mars.anthropic.claude-opus-5", "xanthropic.claude-opus-5"]
)
def test_a_name_at_bedrock_that_is_only_alike_is_none_that_is_known(name: str) -> None:
    image = Media(kind="image", field="messages[0]")

    with pytest.raises(CostBoundUnknown, match="image"):
        media_tokens([image], names=(name,), stated=None, provider="bedrock")
