"""Images and features that run at the provider, through the whole gateway."""

from typing import Any

import pytest

from tests.gateway.stand import Stand, facts

FETCH: dict[str, Any] = {"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 2}
CLOSED = "$: {limits: {usd: {day: 50}}}"
OPEN = "$: {limits: {usd: {day: 50}}, allow: {web_fetch: 2, web_search: 2}}"


def test_a_feature_that_no_budget_allows_is_refused_before_anything_is_sent(stand: Stand) -> None:
    key = stand.open(CLOSED)

    refused = stand.message(key, tools=[FETCH])

    assert refused.status_code == 402
    assert (facts(refused)["code"], facts(refused)["field"]) == ("cost_bound_unknown", "tools[0]")
    assert "allow: {web_fetch: 5}" in facts(refused)["next_action"]
    assert stand.hits == 0
    assert stand.reservations() == ()


def test_a_feature_that_is_allowed_holds_every_turn_and_settles_what_was_used(stand: Stand) -> None:
    key = stand.open(OPEN)
    stand.behave(usage_fields={"server_tool_use": {"web_fetch_requests": 2}})

    answer = stand.message(key, tools=[FETCH], max_tokens=40)

    assert answer.status_code == 200
    ended = stand.ended()
    assert ended.asked.usd == 11 * 128_000 * 2_500_000 + 40 * 10_000_000
    assert ended.state == "settled"
    assert ended.usage is not None
    assert ended.usage.fees == ()
    stand.audited()


def test_a_feature_whose_fee_nobody_has_priced_is_refused(stand: Stand) -> None:
    """B49: an allowance is no price."""
    key = stand.open(OPEN)

    refused = stand.chat(key, web_search_options={})

    assert refused.status_code == 402
    assert "fees: {web_search" in facts(refused)["next_action"]
    assert stand.hits == 0


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_an_image_at_a_model_that_nobody_knows_is_refused_with_what_an_operator_can_do(
    stand: Stand, dialect: str
) -> None:
    key = stand.open(CLOSED)
    image = (
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
        if dialect == "openai"
        else {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    )

    refused = stand.call(dialect, key, messages=[{"role": "user", "content": [image]}])

    assert refused.status_code == 402
    assert facts(refused)["field"] == "messages[0].content[0]"
    assert "image_tokens_max" in facts(refused)["next_action"]
    assert stand.hits == 0


def test_a_document_is_held_at_the_whole_context_and_settled_at_what_it_was(stand: Stand) -> None:
    key = stand.open(CLOSED)
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}}

    answer = stand.message(key, messages=[{"role": "user", "content": [pdf]}], max_tokens=40)

    assert answer.status_code == 200
    ended = stand.ended()
    assert ended.asked.usd == 128_000 * 2_500_000 + 40 * 10_000_000
    assert ended.state == "settled"
    assert ended.actual is not None
    assert ended.actual.usd < ended.asked.usd
    stand.audited()
