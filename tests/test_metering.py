"""From what an answer says it used to the end of its reservation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spendgate.core.block import Shape
from spendgate.core.price import RateCard
from spendgate.core.usage import Usage, UsageReport
from spendgate.metering import answered
from tests.builders import NOW, a_candidate, a_price_row, a_quote, a_reservation, rates

TEXT_RATE = rates().input


@pytest.mark.parametrize(
    ("kind", "dearer", "usage", "state"),
    [
        ("audio", {"audio_input": TEXT_RATE + 1}, Usage(input_uncached=100, output=10), "charged"),
        ("audio", {"audio_input": TEXT_RATE + 1}, Usage(input_uncached=60, audio_input=40, output=10), "settled"),
        ("audio", {"audio_input": TEXT_RATE}, Usage(input_uncached=100, output=10), "settled"),
        ("audio", {}, Usage(input_uncached=100, output=10), "settled"),
        ("image", {"audio_input": TEXT_RATE + 1}, Usage(input_uncached=100, output=10), "settled"),
        ("image", {"image_input": TEXT_RATE + 1}, Usage(input_uncached=100, output=10), "charged"),
        ("image", {"image_input": TEXT_RATE + 1}, Usage(input_uncached=60, image_input=40, output=10), "settled"),
        ("text", {"image_input": TEXT_RATE + 1}, Usage(input_uncached=100, output=10), "settled"),
    ],
)
def test_dearer_media_that_no_count_tells_are_charged_in_full_and_never_at_the_rate_of_text(
    kind: str, dearer: dict[str, int], usage: Usage, state: str
) -> None:
    row = a_price_row(card=RateCard(rates=rates(**dearer)))
    shape = Shape(features=tuple(dict.fromkeys((kind, "text"))))
    reservation = replace(a_reservation(quotes=(a_quote(rows=(row,)),)), shape=shape)

    resolution = answered(reservation, a_candidate(), UsageReport(usage=usage, finished=True), NOW)

    assert resolution.state == state
    assert resolution.usage == usage
    if state == "charged":
        assert resolution.reason == f"the usage does not say what was {kind}"


def test_a_charge_of_the_provider_s_own_needs_no_count_of_media() -> None:
    row = a_price_row(card=RateCard(rates=rates(audio_input=TEXT_RATE + 1)))
    reservation = replace(a_reservation(quotes=(a_quote(rows=(row,)),)), shape=Shape(features=("audio", "text")))
    report = UsageReport(usage=Usage(input_uncached=100, output=10), finished=True, charge=7)

    resolution = answered(reservation, a_candidate(), report, NOW)

    assert (resolution.state, resolution.actual and resolution.actual.usd) == ("settled", 7)
