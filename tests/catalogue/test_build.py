"""The build of the catalogue: the same every time, and the dearer of two prices wherever its sources differ."""

import ast
from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalogue.shipped import ROOT
from tools.catalogue.__main__ import build
from tools.catalogue.facts import Facts, dearest
from tools.catalogue.genai import Listing
from tools.catalogue.merge import grouped, merged
from tools.catalogue.offer import BUCKETS, STANDARD, Offer, Report, Windows
from tools.catalogue.rows import rows


def test_the_build_makes_exactly_the_files_that_are_shipped() -> None:
    files, report = build()

    changed = [str(path) for path, text in files.items() if (ROOT / path).read_text(encoding="utf-8") != text]
    assert changed == [], "run `make catalogue`"
    assert report.lines["Prices that differ"]


def test_no_float_is_in_the_build() -> None:
    sources = sorted((ROOT / "tools" / "catalogue").glob("*.py"))
    floats = [
        f"{source.name}:{node.lineno}"
        for source in sources
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Constant) and isinstance(node.value, float))
        or (isinstance(node, ast.Name) and node.id == "float")
    ]

    assert sources
    assert floats == []


def an_offer(*, context: int | None = None, cap: int | None = None, **rates: str) -> Offer:
    offer = Offer(context=context, output_max=cap)
    for bucket, usd_per_million in rates.items():
        offer.put(STANDARD, 0, bucket, Fraction(usd_per_million) * 10**6)
    return offer


def built(
    windows: Windows, facts: Offer | None = None, *, provider: str = "acme"
) -> tuple[list[dict[str, object]], Report]:
    """Build one model, ``m``, from what two sources say of it."""
    report = Report()
    listings = [Listing(names=("m",), patterns=(), windows=windows)] if windows else []
    known = Facts(offers={} if facts is None else {"m": facts}, embeddings=frozenset(), others={}, retired=frozenset())
    priced = merged(provider, listings, known, report)
    return rows(provider, grouped(listings, priced), report), report


def test_of_two_prices_the_dearer_is_taken_and_told() -> None:
    found, report = built([(None, an_offer(input="1", output="5"))], an_offer(input="2", output="4", cap=100))

    assert (found[0]["input"], found[0]["output"]) == ("2", "5")
    assert report.lines["Prices that differ"] == ["acme: m: input: 1 and 2", "acme: m: output: 5 and 4"]


def test_of_two_contexts_the_larger_is_taken_and_of_two_caps_the_smaller() -> None:
    one, other = an_offer(input="1", output="1", context=8, cap=4), an_offer(input="1", output="1", context=9, cap=3)

    both = dearest(one, other)

    assert (both.context, both.output_max) == (9, 3)
    found, _ = built([(None, an_offer(input="1", output="1", context=8))], an_offer(input="1", output="1", context=9))
    assert found[0]["context_tokens"] == 9


def test_a_price_that_has_no_whole_picodollars_is_rounded_up_and_told() -> None:
    third = Offer()
    third.put(STANDARD, 0, "input", Fraction(1, 3))
    third.put(STANDARD, 0, "output", Fraction(1))

    found, report = built([(None, third)])

    assert found[0]["input"] == "0.000001"
    assert len(report.lines["Rates rounded up to a whole picodollar a token"]) == 1


def test_a_write_of_nothing_is_no_price() -> None:
    found, _ = built([(None, an_offer(input="1", output="2", cache_write="0", cache_write_long="0"))])

    assert not {"cache_write", "cache_write_long"} & found[0].keys()


def test_what_a_later_price_does_not_say_rises_with_it() -> None:
    today = an_offer(input="2", output="10")
    later = an_offer(input="4", output="20")
    facts = an_offer(input="2", output="10", cache_write_long="5")
    facts.put("priority", 0, "input", Fraction(36, 10) * 10**6)

    found, _ = built([(None, today), (date(2027, 1, 1), later)], facts)

    assert [row["from"] for row in found] == ["1970-01-01", "2027-01-01"]
    assert [row["cache_write_long"] for row in found] == ["5", "10"]
    assert [row["service"] for row in found] == [
        {"priority": {"input": "3.6", "cache_write_long": "9", "output": "18"}},
        {"priority": {"input": "7.2", "cache_write_long": "18", "output": "36"}},
    ]


def test_a_price_that_does_not_change_is_one_row() -> None:
    found, _ = built([(None, an_offer(input="2", output="10")), (date(2026, 1, 1), an_offer(input="2", output="10"))])

    assert len(found) == 1


def test_a_reseller_that_lists_no_long_writes_is_priced_by_their_maker() -> None:
    report = Report()
    known = Facts(
        offers={"openai/gpt-6-x": an_offer(input="2", output="10")},
        embeddings=frozenset(),
        others={},
        retired=frozenset(),
    )

    (row,) = rows("acme", grouped([], merged("acme", [], known, report)), report)

    assert (row["cache_write"], row["cache_write_long"]) == ("2.5", "5")
    assert report.lines["Writes to the cache as their maker bills them"] == [
        "acme: openai/gpt-6-x: cache_write 2.5",
        "acme: openai/gpt-6-x: cache_write_long 5",
    ]


@pytest.mark.parametrize(
    "offer",
    [an_offer(output="2"), an_offer(input="0", output="2"), an_offer(input="2"), an_offer(input="2", output="0")],
)
def test_a_model_without_a_token_price_is_left_out_and_told(offer: Offer) -> None:
    found, report = built([(None, offer)])

    assert found == []
    assert [heading for heading in report.lines if heading.startswith("Left out")]


_RATE = st.integers(1, 10**6).map(str)
_OFFERS = st.fixed_dictionaries(
    {"input": _RATE, "output": _RATE},
    optional={bucket: _RATE for bucket in BUCKETS if bucket not in ("input", "output")},
)


@given(
    one=_OFFERS,
    other=_OFFERS,
    long=st.dictionaries(st.sampled_from(["input", "output", "cache_read"]), st.integers(1, 10**7)),
)
def test_no_row_is_cheaper_than_either_source(one: dict[str, str], other: dict[str, str], long: dict[str, int]) -> None:
    listed = an_offer(**one)  # type: ignore[arg-type]
    for bucket, rate in long.items():
        listed.put(STANDARD, 1001, bucket, max(Fraction(rate), listed.base(bucket) or Fraction(0)))

    (row, *_), _ = built([(None, listed)], an_offer(**other))  # type: ignore[arg-type]

    for source in (one, other):
        assert all(Decimal(str(row[bucket])) >= Decimal(rate) for bucket, rate in source.items())
    for tier in row.get("tiers", []):  # type: ignore[attr-defined]
        for bucket in row.keys() & set(BUCKETS):
            assert Decimal(tier[bucket]) >= Decimal(str(row[bucket]))
            at = listed.at(STANDARD, 1001, bucket)
            assert at is None or Decimal(tier[bucket]) >= Decimal(at.numerator) / Decimal(at.denominator * 10**6)
