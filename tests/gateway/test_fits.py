"""The output cap that a refusal says fits does fit, whichever limits of whichever budgets are in the way."""

from typing import Any

import pytest

from tests.gateway.stand import Stand

BUDGETS = {
    "a smaller window behind the limit that refuses": '$: {limits: {usd: {request: "0.05", hour: "0.02"}}}',
    "a tighter budget below": '$: {limits: {usd: {request: "0.05"}}}\n$/below: {limits: {usd: {hour: "0.02"}}}',
    "tokens beside money": '$: {limits: {usd: {request: "0.05"}, tokens: {day: 900}}}',
}


def fits_of(answer: Any) -> int:
    assert answer.status_code == 402
    return int(answer.json()["error"]["fits"]["max_output_tokens"])


@pytest.mark.parametrize("budgets", BUDGETS.values(), ids=BUDGETS)
def test_what_is_said_to_fit_passes_and_one_token_more_does_not(stand: Stand, budgets: str) -> None:
    key = stand.open(budgets)
    stand.chat(key, max_completion_tokens=10)
    hits = stand.hits

    fits = fits_of(stand.chat(key, max_completion_tokens=100_000))

    assert fits_of(stand.chat(key, max_completion_tokens=fits + 1)) == fits
    assert stand.hits == hits
    assert stand.chat(key, max_completion_tokens=fits).status_code == 200


def test_a_rate_that_is_used_up_too_leaves_no_cap_that_fits(stand: Stand) -> None:
    key = stand.open('$: {limits: {usd: {day: "0.02"}, requests: {day: 1}}}')
    stand.chat(key, max_completion_tokens=10)

    answer = stand.chat(key, max_completion_tokens=1900)

    assert answer.status_code == 402
    assert answer.json()["error"]["fits"] is None
