"""Images and features that run at the provider, through the whole gateway."""

import json
from typing import Any

import openai
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


def test_a_route_allows_what_no_budget_speaks_of_and_a_budget_is_never_widened_by_it(stand: Stand) -> None:
    """The budget pays: its own word, a 0 too, stands whatever name the caller asks for."""
    silent = stand.open("$: {limits: {usd: {day: 50}}}")
    answer = stand.chat(silent, model="searching", web_search_options={})
    assert answer.status_code == 200
    assert (
        stand.reservation().asked.usd == 3 * 128_000 * 2_500_000 + 2 * 8_000 * 2_500_000 + 20 * 10_000_000 + 2 * 10**10
    )

    never = stand.open("$: {limits: {usd: {day: 50}}, allow: {web_search: 0}}")
    stand.clock.turn(minutes=2)
    refused = stand.chat(never, model="searching", web_search_options={})
    assert (refused.status_code, facts(refused)["field"]) == (402, "web_search_options")
    assert stand.hits == 1


LISTED: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"model": "listing", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}),
    ("/v1/responses", {"model": "listing", "input": "Hi", "max_output_tokens": 9}),
    ("/v1/messages", {"model": "listing-claude", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}),
    (
        "/v1beta/models/listing-gemini:generateContent",
        {"contents": [{"parts": [{"text": "Hi"}]}], "generationConfig": {"maxOutputTokens": 9}},
    ),
]


@pytest.mark.parametrize(("path", "body"), LISTED, ids=[path for path, _ in LISTED])
def test_a_field_that_the_provider_s_entry_lists_as_free_travels_and_is_held_as_json(
    stand: Stand, path: str, body: dict[str, Any]
) -> None:
    key = stand.open(CLOSED)
    assert stand.post(path, body, key).status_code == 200
    answer = stand.post(path, body | {"shiny": {"deep": [1, 2]}}, key)
    assert answer.status_code == 200
    assert json.loads(stand.provider.bodies[-1])["shiny"] == {"deep": [1, 2]}
    plain, listed = (one.asked.usd for one in stand.reservations())
    assert listed - plain == 2 * len('{"shiny":{"deep":[1,2]}}') * 2_500_000

    refused = stand.post(path, body | {"shinier": 1}, key)
    assert (refused.status_code, facts(refused)["field"]) == (402, "shinier")
    assert "free_fields: [shinier]" in facts(refused)["next_action"]
    assert "2026-11-" in json.dumps(refused.json())
    assert stand.hits == 2


def test_a_field_is_free_only_where_every_candidate_lists_it_and_only_if_no_list_knows_it(stand: Stand) -> None:
    key = stand.open(CLOSED)

    for fields in ({"model": "half-listing", "shiny": 1}, {"model": "listing", "plugins": [1]}, {"shiny": 1}):
        refused = stand.chat(key, **fields)
        assert (refused.status_code, facts(refused)["code"]) == (402, "cost_bound_unknown")

    assert stand.hits == 0
    assert stand.reservations() == ()


def test_a_beta_that_the_provider_s_entry_lists_as_free_goes_along(stand: Stand) -> None:
    key = stand.open(CLOSED)
    betas = "shiny-2027-01-01,context-management-2025-06-27"

    answer = stand.message(key, model="listing-claude", headers={"anthropic-beta": betas})
    refused = stand.message(key, headers={"anthropic-beta": betas})

    assert answer.status_code == 200
    sent = stand.provider.arrivals[-1].headers["anthropic-beta"].split(",")
    assert sorted(sent) == sorted(betas.split(","))
    assert "free_betas: [shiny-2027-01-01]" in facts(refused)["next_action"]
    assert stand.hits == 1


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


STATES: list[dict[str, Any]] = [
    {"previous_response_id": "resp_1"},
    {"conversation": {"id": "conv_1"}},
    {"input": [{"type": "item_reference", "id": "msg_1"}]},
]


@pytest.mark.parametrize("changes", STATES, ids=lambda changes: next(iter(changes)))
def test_what_the_provider_holds_is_held_at_the_whole_context_where_it_is_allowed(
    stand: Stand, changes: dict[str, Any]
) -> None:
    """What is only named in a request is billed all the same."""
    body = {"model": "searching", "input": "Hello", "max_output_tokens": 20} | changes

    answer = stand.post("/v1/responses", body, stand.open(CLOSED))
    assert answer.status_code == 200
    assert stand.ended().asked.usd == 128_000 * 2_500_000 + 20 * 10_000_000
    assert stand.reservation().state == "settled"
    stand.audited()

    for budgets, model in (
        ("$: {limits: {usd: {day: 50}}, allow: {server_state: 0}}", "searching"),
        (CLOSED, "gpt"),
    ):
        key = stand.open(budgets)
        stand.clock.turn(minutes=2)
        refused = stand.post("/v1/responses", body | {"model": model}, key)
        assert (refused.status_code, facts(refused)["code"]) == (402, "cost_bound_unknown")
        assert "allow: {server_state" in facts(refused)["next_action"]
    assert stand.hits == 1


def test_the_client_sends_an_image_and_a_file_to_responses_within_what_a_table_and_the_context_bound(
    stand: Stand,
) -> None:
    routes = "  gpt-5.4: {candidates: [{provider: listing-host, model: demo}]}\n"
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}
    file = {"type": "input_file", "file_data": "AAAA", "filename": "a.pdf"}
    key = stand.open(CLOSED, routes=routes)

    with stand.openai(key) as client:
        sent: Any = [{"role": "user", "content": [{"type": "input_text", "text": "What is it?"}, file]}]
        client.responses.create(model="gpt-5.4", input=sent, max_output_tokens=20)
        assert stand.ended().asked.usd == 128_000 * 2_500_000 + 20 * 10_000_000
        sent[0]["content"][1] = image
        with pytest.raises(openai.APIStatusError) as caught:
            client.responses.create(model="gpt-5.4", input=sent, max_output_tokens=20)

    error: Any = caught.value.body
    assert (caught.value.status_code, error["param"]) == (402, "input[0].content[1]")
    assert "image_tokens_max" in error["next_action"]
    assert stand.hits == 1
    stand.audited()


WEB: Any = {"type": "web_search", "external_web_access": False}
SEARCHING = "$: {limits: {usd: {day: 50}}, allow: {web_search: 2, file_search: 1}}"
# Three turns of the whole context, and what is billed beside it of two searches.
LOOPED = 3 * 128_000 * 2_500_000 + 2 * 8_000 * 2_500_000 + 20 * 10_000_000


@pytest.mark.parametrize("stream", [False, True])
def test_the_client_s_search_is_held_turn_by_turn_sent_with_the_number_that_was_bounded_and_settled_with_its_fees(
    stand: Stand, *, stream: bool
) -> None:
    """B49: what the server's tool costs stands beside the tokens."""
    with stand.openai(stand.open(SEARCHING)) as client:
        told = client.responses.with_raw_response.create(
            model="web", input="Hello", max_output_tokens=20, tools=[WEB], stream=stream
        )
        parsed: Any = told.parse()
        kinds = [event.type for event in parsed] if stream else [item.type for item in parsed.output]

    assert kinds[-1] == ("response.completed" if stream else "message")
    assert stand.hits == 1
    assert json.loads(stand.provider.bodies[-1])["max_tool_calls"] == 2
    assert told.headers["x-spendgate-tool-call-cap"] == "2"
    ended = stand.ended()
    assert ended.asked.usd == LOOPED + 2 * 14 * 10**9
    assert ended.state == "settled"
    assert ended.usage is not None
    assert ended.usage.fees == (("web_search", 2),)
    assert ended.actual is not None
    assert ended.actual.usd == stand.book.billed_picodollars
    stand.audited()


def test_a_number_of_calls_that_the_request_says_is_kept_and_one_above_the_allowance_is_refused(stand: Stand) -> None:
    key = stand.open(SEARCHING)
    body = {"model": "web", "input": "Hello", "max_output_tokens": 20, "tools": [WEB]}

    answer = stand.post("/v1/responses", body | {"max_tool_calls": 1}, key)
    refused = stand.post("/v1/responses", body | {"max_tool_calls": 3}, key)

    assert answer.status_code == 200
    assert "x-spendgate-tool-call-cap" not in answer.headers
    ended = stand.ended()
    assert ended.usage is not None
    assert ended.usage.fees == (("web_search", 1),)
    assert (refused.status_code, facts(refused)["field"]) == (402, "tools[0]")
    assert "max_tool_calls to 2" in facts(refused)["next_action"]
    assert stand.hits == 1


def test_a_search_is_refused_at_a_host_that_nobody_knows_to_keep_to_the_number_of_calls(stand: Stand) -> None:
    key = stand.open(SEARCHING)

    refused = stand.post("/v1/responses", {"model": "listing", "input": "Hello", "tools": [WEB]}, key)

    assert (refused.status_code, facts(refused)["code"]) == (402, "cost_bound_unknown")
    assert "kind: openai" in facts(refused)["next_action"]
    assert stand.hits == 0


def test_what_a_loop_bills_beyond_its_bound_is_booked_as_it_is_and_stops_the_budget(stand: Stand) -> None:
    """G8: what was billed is booked, whatever was reserved."""
    key = stand.open("$: {limits: {usd: {day: 50}}, allow: {file_search: 1}}")
    stores: dict[str, Any] = {"type": "file_search", "vector_store_ids": ["vs_1"]}
    body = {"model": "web", "input": "Hello", "max_output_tokens": 20, "tools": [stores]}
    stand.behave("usage", usage_text='{"input_tokens": 900000, "output_tokens": 3, "total_tokens": 900003}')

    assert stand.post("/v1/responses", body, key).status_code == 200

    ended = stand.ended()
    assert ended.actual is not None
    assert (ended.asked.usd, ended.actual.usd) == (
        2 * 128_000 * 2_500_000 + 20 * 10_000_000 + 25 * 10**8,
        900_000 * 2_500_000 + 3 * 10_000_000,
    )
    assert facts(stand.chat(key))["code"] == "budget_stopped"


def test_the_client_sends_an_image_within_what_the_price_row_says_of_one(stand: Stand) -> None:
    """The size of an image is nobody's word."""
    image: Any = {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "high"}
    with stand.openai(stand.open(CLOSED)) as client:
        said: Any = [{"role": "user", "content": [{"type": "input_text", "text": "What is it?"}, image]}]
        client.responses.create(model="web", input=said, max_output_tokens=20)

    ended = stand.ended()
    assert ended.asked.usd == (len("What is it?") + 3 * 8 + 300) * 2_500_000 + 20 * 10_000_000
    assert (stand.hits, ended.state) == (1, "settled")
    stand.audited()
