"""Anthropic Messages: what is read, refused and sent."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.media import Media
from spendgate.core.request import Demand
from spendgate.dialects import anthropic_betas
from spendgate.dialects.anthropic_messages import DIALECT, count_tokens_body, read_count_tokens
from spendgate.dialects.json_strict import compact
from spendgate.dialects.measure import json_bytes
from spendgate.errors import CostBoundUnknown, Refused, RequestInvalid
from tests.dialects.builders import USER, messages, odd_values, parsed, read_messages

TOOL: dict[str, Any] = {"name": "find", "description": "d", "input_schema": {"type": "object"}}
USE = {"type": "tool_use", "id": "t1", "name": "find", "input": {"a": [1, 2]}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "found"}]}
ANSWERED = [USER, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [RESULT, RESULT]}]
SHORT = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}


def said(*blocks: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": list(blocks)}]}


def test_the_facts_of_a_plain_request() -> None:
    facts = read_messages().facts

    assert (facts.dialect, facts.model, facts.stream, facts.output_cap) == ("anthropic", "house-model", False, 40)
    assert (facts.text_bytes, facts.json_bytes, facts.parts, facts.tools) == (len("hello"), 0, 1, 0)
    assert (facts.cache_write, facts.choices, facts.structured, facts.tool_results) == ("none", 1, False, 0)
    assert (facts.service_tier, facts.geo, facts.speed) == (None, None, None)


def test_text_is_measured_wherever_it_stands() -> None:
    facts = read_messages(
        system=[{"type": "text", "text": "1234"}],
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "é", "citations": None}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hmm", "signature": "abcdef"}]},
            {"role": "user", "content": [RESULT, {"type": "tool_result", "tool_use_id": "t2", "content": "yes"}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t3"}]},
            {"role": "system", "content": "now"},
        ],
        stop_sequences=["END"],
    ).facts

    assert facts.text_bytes == 4 + 2 + 3 + 6 + (2 + 5) + (2 + 3) + 2 + 3 + 3
    assert facts.parts == 5 + 7
    assert facts.tool_results == 3


def test_tools_and_their_inputs_are_measured_as_json() -> None:
    choice = {"type": "tool", "name": "find", "disable_parallel_tool_use": True}
    facts = read_messages(messages=ANSWERED, tools=[TOOL, TOOL | {"type": "custom"}], tool_choice=choice).facts

    assert facts.tools == 2
    assert facts.tool_results == 2
    assert facts.json_bytes >= len(compact([TOOL, TOOL, USE["input"], choice]))


def test_only_the_results_after_the_last_answer_are_brought_back() -> None:
    later = {"role": "assistant", "content": "done"}

    assert read_messages(messages=[*ANSWERED, later, USER]).facts.tool_results == 0
    assert read_messages(messages=[ANSWERED[2]]).facts.tool_results == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"cache_control": SHORT},
        {"cache_control": SHORT | {"ttl": "5m"}},
        {"cache_control": SHORT | {"ttl": None}},
        {"system": [{"type": "text", "text": "a", "cache_control": SHORT}]},
        {"tools": [TOOL | {"cache_control": SHORT}]},
        said({"type": "text", "text": "a", "cache_control": SHORT}),
        said(RESULT | {"cache_control": SHORT}),
        said(RESULT | {"content": [{"type": "text", "text": "a", "cache_control": SHORT}]}),
    ],
)
def test_a_cache_control_anywhere_asks_for_a_write(changes: dict[str, Any]) -> None:
    assert read_messages(**changes).facts.cache_write == "short"


@pytest.mark.parametrize(
    "changes",
    [
        {"cache_control": LONG},
        {"cache_control": LONG, "tools": [TOOL | {"cache_control": SHORT}]},
        {"cache_control": SHORT, "tools": [TOOL | {"cache_control": LONG}]},
        said(USE | {"cache_control": LONG}, role="assistant"),
    ],
)
def test_the_longest_lifetime_asked_for_counts(changes: dict[str, Any]) -> None:
    assert read_messages(**changes).facts.cache_write == "long"


def test_the_parameters_of_thinking_effort_and_format_pass() -> None:
    options = {
        "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "summarized"},
        "output_config": {
            "effort": "max",
            "format": {"type": "json_schema", "schema": {"type": "object"}},
            "task_budget": {"type": "tokens", "total": 20000, "remaining": None},
        },
        "temperature": 1,
        "top_p": 0.5,
        "top_k": 40,
        "metadata": {"user_id": "u"},
        "stream": True,
        "tool_choice": {"type": "none"},
    }

    request = read_messages(**options)

    assert request.facts.structured
    assert request.facts.stream
    assert json.loads(DIALECT.outgoing(request, "m", 40)).items() >= options.items()


def test_a_format_under_its_older_name_is_structured_too() -> None:
    facts = read_messages(output_format={"type": "json_schema", "schema": {"type": "object"}}).facts

    assert facts.structured
    assert facts.json_bytes > 0


@pytest.mark.parametrize("thinking", [{"type": "adaptive"}, {"type": "disabled"}, {"type": "between_tools"}, None])
def test_every_kind_of_thinking_passes(thinking: Any) -> None:
    assert read_messages(thinking=thinking).facts.output_cap == 40


@pytest.mark.parametrize(
    "changes,fact,value",
    [
        ({"service_tier": "auto"}, "service_tier", None),
        ({"service_tier": "standard_only"}, "service_tier", "standard"),
        ({"inference_geo": "us"}, "geo", "us"),
        ({"speed": "fast"}, "speed", "fast"),
        ({"speed": "standard"}, "speed", None),
        ({"max_tokens": 0}, "output_cap", 0),
    ],
)
def test_what_decides_the_rate_is_a_fact(changes: dict[str, Any], fact: str, value: Any) -> None:
    assert getattr(read_messages(**changes).facts, fact) == value


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 9000}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "A" * 9000}}


def test_media_are_counted_after_walking_all_nesting_and_their_bytes_are_no_text() -> None:
    drawn = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    kept = {"type": "image", "source": {"type": "file", "file_id": "file_1"}}
    bundle = {"type": "document", "source": {"type": "content", "content": [kept, {"type": "text", "text": "abc"}]}}

    facts = read_messages(**said(IMAGE, RESULT | {"content": [drawn, PDF, bundle]})).facts

    assert facts.media == (
        Media(kind="image", field="messages[0].content[0]", count=3),
        Media(kind="document", field="messages[0].content[1].content[1]"),
    )
    assert facts.text_bytes == len(RESULT["tool_use_id"]) + len("abc")


def test_a_document_of_plain_text_is_text() -> None:
    plain = {"type": "text", "media_type": "text/plain", "data": "hello"}

    facts = read_messages(**said({"type": "document", "source": plain, "title": "ab", "context": "c"})).facts

    assert (facts.text_bytes, facts.media) == (8, ())


def test_a_document_that_is_to_be_quoted_is_bounded_as_one_whose_size_nobody_knows() -> None:
    plain = {"type": "text", "media_type": "text/plain", "data": "hello"}
    quoted = {"type": "document", "source": plain, "citations": {"enabled": True}}

    assert read_messages(**said(quoted)).facts.media == (Media(kind="document", field="messages[0].content[0]"),)
    assert read_messages(**said(quoted | {"citations": {"enabled": False}})).facts.media == ()


def test_thinking_that_is_not_shown_is_counted_block_by_block_with_what_is_seen_of_it() -> None:
    blocks = [
        {"type": "thinking", "thinking": "", "signature": "abc"},
        {"type": "thinking", "thinking": "shown", "signature": "abc"},
        {"type": "redacted_thinking", "data": "abcd"},
    ]

    facts = read_messages(**said(*blocks, role="assistant")).facts

    assert facts.media == (Media(kind="reasoning", field="messages[0].content[0]", count=2),)
    assert facts.text_bytes == 3 + 8 + 4


SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "allowed_domains": ["example.com"]}
FETCH = {"type": "web_fetch_20250910", "name": "web_fetch", "max_content_tokens": 5000}


def test_a_server_tool_is_a_demand_for_as_many_uses_as_it_says_and_as_many_turns_as_the_loop_has() -> None:
    facts = read_messages(tools=[TOOL, SEARCH, FETCH]).facts

    assert facts.demands == (
        Demand(
            feature="web_search",
            field="tools[1]",
            uses=3,
            states_uses=True,
            turns=11,
            fee="web_search",
            uses_field="max_uses",
        ),
        Demand(feature="web_fetch", field="tools[2]", states_uses=True, turns=11, uses_field="max_uses"),
    )


@pytest.mark.parametrize("uses", [0, -1, 2**60])
def test_a_number_of_uses_that_is_none_is_refused(uses: int) -> None:
    with pytest.raises(RequestInvalid) as refused:
        read_messages(tools=[SEARCH | {"max_uses": uses}])

    assert refused.value.facts.field == "tools[0].max_uses"


def test_one_server_tool_twice_is_refused() -> None:
    with pytest.raises(RequestInvalid) as refused:
        read_messages(tools=[SEARCH, SEARCH])

    assert refused.value.facts.field == "tools[1]"


def test_what_a_server_tool_found_comes_back_as_a_document_of_unknown_size() -> None:
    found = [{"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "x" * 900}]
    cited = {"type": "web_search_result_location", "cited_text": "c", "encrypted_index": "i", "title": "t", "url": "u"}
    blocks: list[dict[str, Any]] = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": found},
        {"type": "text", "text": "so", "citations": [cited]},
    ]

    facts = read_messages(**said(*blocks, role="assistant")).facts

    assert facts.media == (Media(kind="document", field="messages[0].content[1]"),)
    assert facts.text_bytes == len("web_search" + "s1" + "so")
    assert facts.json_bytes == json_bytes({"query": "q"}) + json_bytes([cited])


def test_a_cache_lifetime_on_an_image_is_found() -> None:
    cached = IMAGE | {"cache_control": {"type": "ephemeral", "ttl": "1h"}}

    assert read_messages(**said(RESULT | {"content": [cached]})).facts.cache_write == "long"


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"mcp_servers": []}, "mcp_servers"),
        ({"container": "c"}, "container"),
        ({"context_management": {"edits": [{"type": "compact_20270101"}]}}, "context_management.edits[0]"),
        ({"compaction": {}}, "compaction"),
        ({"fallbacks": "default"}, "fallbacks"),
        ({"fallback_credit_token": "x"}, "fallback_credit_token"),
        ({"thread": {"type": "create"}}, "thread"),
        ({"billing_policy": {}}, "billing_policy"),
        ({"speed": "ludicrous"}, "speed"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"cache_control": {"type": "ephemeral", "ttl": "24h"}}, "cache_control.ttl"),
        ({"cache_control": {"type": "ephemeral", "scope": "global"}}, "cache_control.scope"),
        ({"tools": [SEARCH | {"type": "web_search_20270101"}]}, "tools[0].type"),
        ({"tools": [SEARCH | {"url_sources": {}}]}, "tools[0].url_sources"),
        ({"tools": [SEARCH | {"allowed_callers": ["code_execution_20250825"]}]}, "tools[0].allowed_callers"),
        ({"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}, "tools[0].type"),
        ({"tools": [{"name": "bash", "type": "bash_20270101"}]}, "tools[0].type"),
        ({"tools": [{"name": "memory", "type": "memory_20250818"}]}, "tools[0].type"),
        ({"tools": [{"name": "advisor", "type": "advisor_20260301", "model": "claude-y"}]}, "tools[0].type"),
        ({"tools": [TOOL | {"defer_loading": True}]}, "tools[0].defer_loading"),
        ({"tools": [TOOL | {"defer_loading": 0}]}, "tools[0].defer_loading"),
        ({"tools": [TOOL | {"allowed_callers": ["code_execution_20250825"]}]}, "tools[0].allowed_callers"),
        ({"tools": [TOOL | {"input_schema": {"$ref": "#"}}]}, "tools[0].input_schema"),
        ({"output_format": {"type": "json_schema", "schema": {"$ref": "#"}}}, "output_format.schema"),
        ({"tool_choice": {"type": "all"}}, "tool_choice"),
        ({"thinking": {"type": "boundless"}}, "thinking"),
        (said(IMAGE | {"source": {"type": "thin_air"}}), "messages[0].content[0].source"),
        (said(IMAGE | {"transformations": {}}), "messages[0].content[0].transformations"),
        (said({"type": "document", "source": {"type": "thin_air"}}), "messages[0].content[0].source"),
        (said({"type": "search_result"}), "messages[0].content[0]"),
        (
            said({"type": "server_tool_use", "id": "s", "name": "advisor", "input": {}}, role="assistant"),
            "messages[0].content[0].name",
        ),
        (said({"type": "container_upload"}), "messages[0].content[0]"),
        (said({"type": "text", "text": "a", "citations": [{"type": "rumour"}]}), "messages[0].content[0].citations[0]"),
        (said(RESULT | {"content": [{"type": "video"}]}), "messages[0].content[0].content[0]"),
        (
            said({"type": "document", "source": {"type": "content", "content": [PDF]}}),
            "messages[0].content[0].source.content[0]",
        ),
        (said(RESULT | {"content": [RESULT]}), "messages[0].content[0].content[0]"),
        (said(USE | {"caller": {"type": "code_execution_20250825"}}), "messages[0].content[0].caller"),
        ({"messages": [USER | {"output_config": {}}]}, "messages[0].output_config"),
        ({"system": [{"type": "image"}]}, "system[0]"),
    ],
)
def test_what_is_not_bounded_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(CostBoundUnknown, match="not bounded") as refused:
        read_messages(**changes)

    assert refused.value.facts.field == field


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": "40"}, "max_tokens"),
        ({"max_tokens": 40.0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": 2**60}, "max_tokens"),
        ({"model": None}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"system": 5}, "system"),
        (said({"type": "text"}), "messages[0].content[0].text"),
        (said({"type": "tool_use", "id": "a", "name": "b", "input": "c"}), "messages[0].content[0].input"),
        (said({"type": "tool_result", "content": "c"}), "messages[0].content[0].tool_use_id"),
        (said(RESULT | {"content": 5}), "messages[0].content[0].content"),
        ({"tools": [{"name": "a"}]}, "tools[0].input_schema"),
        ({"tools": [{"name": "", "input_schema": {}}]}, "tools[0].name"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
        ({"thinking": True}, "thinking"),
        ({"stop_sequences": "END"}, "stop_sequences"),
        ({"top_k": 1.5}, "top_k"),
        ({"inference_geo": ""}, "inference_geo"),
    ],
)
def test_a_wrong_type_is_refused_with_the_field_and_what_is_allowed(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestInvalid, match="must be") as refused:
        read_messages(**changes)

    assert refused.value.facts.field == field


@pytest.mark.parametrize("missing", ["model", "messages", "max_tokens"])
def test_a_missing_field_is_named(missing: str) -> None:
    body = {key: value for key, value in messages().items() if key != missing}

    with pytest.raises(RequestInvalid, match=f"{missing} must be given"):
        DIALECT.read(body, {}, "")


def test_the_protocols_headers_go_along_and_no_other() -> None:
    headers = {
        "Anthropic-Version": " 2023-06-01",
        "anthropic-beta": "claude-code-20250219, interleaved-thinking-2025-05-14,",
        "x-api-key": "secret",
        "cookie": "c",
    }

    request = DIALECT.read(messages(), headers, "beta=true")

    assert request.headers == (
        ("anthropic-version", "2023-06-01"),
        ("anthropic-beta", "claude-code-20250219,interleaved-thinking-2025-05-14"),
    )
    assert request.query == "beta=true"


def test_a_version_is_sent_where_the_caller_gave_none() -> None:
    assert read_messages().headers == (("anthropic-version", "2023-06-01"),)


@pytest.mark.parametrize("beta", sorted(anthropic_betas.FREE_BETAS))
def test_a_beta_that_changes_no_cost_is_forwarded(beta: str) -> None:
    assert DIALECT.read(messages(), {"anthropic-beta": beta}, "").headers[1] == ("anthropic-beta", beta)


@pytest.mark.parametrize("beta", ["advisor-tool-2026-03-01", "server-side-fallback-2026-07-01", "new-2027-01-01"])
def test_a_beta_that_may_change_the_cost_is_refused_by_name(beta: str) -> None:
    with pytest.raises(CostBoundUnknown, match=beta) as refused:
        DIALECT.read(messages(), {"anthropic-beta": f"claude-code-20250219,{beta}"}, "")

    assert refused.value.facts.field == "anthropic-beta"


@pytest.mark.parametrize(
    "headers,query",
    [
        ({"anthropic-version": "2030-01-01"}, ""),
        ({"anthropic-version": ""}, ""),
        ({"anthropic-beta": "a b"}, ""),
        ({"anthropic-beta": "a\r\nx-api-key: b"}, ""),
        ({}, "beta=true&key=1"),
        ({}, "beta=false"),
    ],
)
def test_headers_and_queries_that_are_not_the_protocols_are_refused(headers: dict[str, str], query: str) -> None:
    for read in (DIALECT.read, read_count_tokens):
        with pytest.raises(RequestInvalid, match="must be"):
            read(messages(), headers, query)


def test_the_model_is_replaced_and_nothing_else() -> None:
    body = messages(system="s", temperature=0.5)

    document = json.loads(DIALECT.outgoing(DIALECT.read(body, {}, ""), "served", 40))

    assert document == body | {"model": "served"}


def test_no_cap_is_sent_above_what_was_bounded() -> None:
    assert json.loads(DIALECT.outgoing(read_messages(max_tokens=50), "m", 40))["max_tokens"] == 40


def test_a_call_that_nothing_bounds_is_sent_as_it_came() -> None:
    assert json.loads(DIALECT.outgoing(read_messages(max_tokens=50), "m", None))["max_tokens"] == 50


def test_a_token_count_passes_whatever_it_holds() -> None:
    body = {"model": "a", "messages": [{"role": "user", "content": [{"type": "image"}]}], "tools": [{"type": "bash_1"}]}

    request = read_count_tokens(body, {"anthropic-beta": "compact-2026-01-12"}, "beta=true")

    assert json.loads(count_tokens_body(request, "served")) == body | {"model": "served"}
    assert request.headers[1] == ("anthropic-beta", "compact-2026-01-12")
    assert request.query == "beta=true"


@pytest.mark.parametrize("body", [{}, {"model": 1}, {"model": ""}])
def test_a_token_count_needs_a_model(body: dict[str, Any]) -> None:
    with pytest.raises(RequestInvalid, match="model must be"):
        read_count_tokens(body, {}, "")


FIELDS = st.sampled_from(
    [
        "model",
        "messages",
        "system",
        "max_tokens",
        "tools",
        "tool_choice",
        "thinking",
        "cache_control",
        "output_config",
        "metadata",
        "type",
        "text",
        "content",
        "input",
        "role",
        "name",
        "ttl",
        "tool_use_id",
        "input_schema",
        "other",
    ]
)
bodies = st.dictionaries(
    FIELDS,
    st.recursive(
        odd_values,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
        max_leaves=8,
    ),
)


@given(body=bodies)
def test_an_odd_body_raises_nothing_but_a_refusal(body: dict[str, Any]) -> None:
    for odd in (
        body,
        messages() | body,
        messages(messages=[USER | body]),
        messages(tools=[TOOL | body]),
        messages(**said(RESULT | body)),
    ):
        try:
            request = DIALECT.read(odd, {}, "")
        except Refused:
            continue
        DIALECT.outgoing(request, "m", 1)


texts = st.text(max_size=20)
blocks = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": texts}),
    st.fixed_dictionaries({"type": st.just("thinking"), "thinking": texts.filter(bool), "signature": texts}),
    st.fixed_dictionaries(
        {"type": st.just("tool_use"), "id": texts, "name": texts, "input": st.dictionaries(texts, texts, max_size=3)}
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("tool_result"),
            "tool_use_id": texts,
            "content": texts | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": texts}), max_size=3),
        }
    ),
)


@given(content=st.lists(blocks, max_size=5), system=texts)
def test_every_text_that_a_model_may_see_is_measured_and_sent_unchanged(content: Any, system: str) -> None:
    body = parsed(messages(**said(*content), system=system))

    request = DIALECT.read(body, {}, "")

    assert request.facts.text_bytes + request.facts.json_bytes >= sum(
        len(text.encode()) for text in strings([content, system])
    )
    assert json.loads(DIALECT.outgoing(request, "house-model", 40)) == body


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [text for key, item in value.items() if key != "type" for text in (*strings(item),)]
