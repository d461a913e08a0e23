"""OpenAI's Responses: what is read, refused and sent."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.feature import granted
from spendgate.core.request import Demand
from spendgate.dialects.dialect import Request
from spendgate.dialects.json_strict import compact
from spendgate.dialects.measure import json_bytes
from spendgate.dialects.openai_responses import DIALECT
from spendgate.errors import CostBoundUnknown, OverBudget, RefusalFacts, Refused, RequestInvalid
from tests.dialects.builders import odd_values, parsed

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL: dict[str, Any] = {"type": "function", "name": "find", "description": "d", "parameters": SCHEMA, "strict": True}
GRAMMAR: dict[str, Any] = {
    "type": "custom",
    "name": "patch",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: WORD"},
}
USER: dict[str, Any] = {"role": "user", "content": "hello"}
CALL: dict[str, Any] = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "find",
    "arguments": '{"a":1}',
    "status": "completed",
}
RESULT: dict[str, Any] = {"type": "function_call_output", "call_id": "call_1", "output": "found"}
CUSTOM_CALL: dict[str, Any] = {"type": "custom_tool_call", "call_id": "call_2", "name": "patch", "input": "***"}
CUSTOM_RESULT: dict[str, Any] = {
    "type": "custom_tool_call_output",
    "call_id": "call_2",
    "output": [{"type": "input_text", "text": "done"}],
}
ANSWER: dict[str, Any] = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "phase": "final_answer",
    "content": [{"type": "output_text", "text": "hi", "annotations": [], "logprobs": []}],
}
REASONING: dict[str, Any] = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "thought"}],
    "encrypted_content": "gAAAAAbcdef",
}


def responses(**changes: Any) -> dict[str, Any]:
    return {"model": "house-model", "input": "hello"} | changes


def read(**changes: Any) -> Request:
    return DIALECT.read(parsed(responses(**changes)), {}, "")


def sent(output_cap: int | None = 99, **changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(DIALECT.outgoing(read(**changes), "served-model", output_cap))
    return document


def test_the_facts_of_a_plain_request() -> None:
    facts = read().facts

    assert (facts.dialect, facts.model, facts.stream) == ("openai-responses", "house-model", False)
    assert (facts.text_bytes, facts.json_bytes, facts.parts, facts.tools) == (len("hello"), 0, 1, 0)
    assert (facts.output_cap, facts.choices, facts.structured, facts.tool_results) == (None, 1, False, 0)
    assert (facts.cache_write, facts.service_tier, facts.inputs, facts.has_output) == ("short", None, 1, True)
    assert DIALECT.upstream_path(read(), "m") == "/responses"


def test_text_is_measured_wherever_it_stands() -> None:
    facts = read(
        instructions="12345",
        input=[
            {"role": "user", "content": "éé"},
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "abc"}]},
            ANSWER,
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            REASONING,
            {"type": "reasoning", "id": "rs_2", "summary": [], "content": [{"type": "reasoning_text", "text": "ab"}]},
            CUSTOM_CALL,
            CUSTOM_RESULT,
        ],
    ).facts

    texts = 5 + 4 + 3 + 2 + 2 + len("thought") + len("gAAAAAbcdef") + 2 + len("done") + len("call_2")
    assert facts.text_bytes == texts
    assert facts.parts == 1 + 8 + 6


def test_reasoning_that_is_not_shown_counts_for_as_much_as_the_model_can_do() -> None:
    hidden = REASONING | {"summary": []}

    (media,) = read(input=[USER, hidden, CALL, RESULT, hidden]).facts.media

    assert (media.kind, media.field, media.count) == ("reasoning", "input[1]", 2)
    assert read(input=[USER, REASONING]).facts.media == ()


def test_calls_tools_and_schemas_are_measured_as_json() -> None:
    facts = read(
        input=[USER, CALL, RESULT],
        tools=[TOOL, GRAMMAR],
        tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "find"}]},
        text={"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}, "verbosity": "low"},
    ).facts

    assert facts.tools == 2
    assert facts.structured
    assert facts.json_bytes >= len(compact([TOOL, GRAMMAR, CALL, SCHEMA]))
    assert facts.text_bytes == len("hello") + len("found") + len("call_1")


def test_tools_in_namespaces_and_in_items_are_measured_as_those_of_the_request() -> None:
    namespace = {
        "type": "namespace",
        "name": "n",
        "description": "d",
        "tools": [TOOL | {"defer_loading": True}, GRAMMAR],
    }
    search = {"type": "tool_search", "execution": "client", "description": "d", "parameters": SCHEMA}
    inside = {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [namespace]}
    found = {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": [TOOL]}
    asked = {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"query": "x"}}

    facts = read(input=[inside, USER, asked, found], tools=[search, namespace]).facts

    assert facts.tools == 8
    assert facts.tool_results == 1
    assert facts.json_bytes == sum(json_bytes(one) for one in (search, namespace, namespace, asked, TOOL))


SEARCHES: dict[str, dict[str, Any]] = {
    "as Codex offers it": {
        "type": "web_search",
        "external_web_access": False,
        "search_content_types": ["text", "image"],
    },
    "with all its options": {
        "type": "web_search_2025_08_26",
        "filters": {"allowed_domains": ["example.com"]},
        "return_token_budget": "default",
        "search_context_size": "high",
        "user_location": {"type": "approximate", "city": "Berlin", "country": "DE", "region": None, "timezone": None},
    },
    "preview": {"type": "web_search_preview"},
    "dated preview": {"type": "web_search_preview_2025_03_11", "search_context_size": "low"},
}
FILES: dict[str, Any] = {"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 3}


@pytest.mark.parametrize("tool", SEARCHES.values(), ids=SEARCHES)
def test_a_search_at_the_server_is_a_demand_of_as_many_calls_as_are_allowed(tool: dict[str, Any]) -> None:
    request = read(tools=[TOOL, tool, tool], tool_choice={"type": tool["type"]})

    (demand,) = request.facts.demands
    assert (demand.feature, demand.field, demand.fee, demand.tokens_each) == (
        "web_search",
        "tools[1]",
        "web_search",
        8_000,
    )
    assert (demand.uses, demand.turns, demand.states_uses) == (None, None, False)
    assert demand.fees_each == (2 if "search_content_types" in tool else 1)
    assert [media.kind for media in request.facts.media] == (["document"] if demand.fees_each == 2 else [])
    assert 'web_search = "disabled"' in demand.hint
    assert request.facts.json_bytes == sum(json_bytes(one) for one in (TOOL, tool, tool, {"type": tool["type"]}))
    with pytest.raises(CostBoundUnknown) as caught:
        granted(request.facts, {})
    assert 'web_search = "disabled"' in str(caught.value.facts.next_action)


def test_the_number_of_calls_that_the_request_says_holds_for_each_of_its_searches() -> None:
    demands = read(tools=[FILES, SEARCHES["preview"]], max_tool_calls=3).facts.demands

    assert [(one.feature, one.field, one.uses, one.tokens_each) for one in demands] == [
        ("file_search", "tools[0]", 3, 0),
        ("web_search", "tools[1]", 3, 8_000),
    ]


@pytest.mark.parametrize(
    "said,allowed,goes_out",
    [
        ({}, {"web_search": 5, "file_search": 2}, 2),
        ({"max_tool_calls": 2}, {"web_search": 5, "file_search": 4}, 2),
        ({"max_tool_calls": None}, {"web_search": 4, "file_search": 9}, 4),
    ],
)
def test_the_number_of_calls_that_was_bounded_is_what_goes_out(
    said: dict[str, Any], allowed: dict[str, int], goes_out: int
) -> None:
    request = read(tools=[FILES, SEARCHES["preview"]], **said)
    request = replace(request, facts=granted(request.facts, allowed))

    assert json.loads(DIALECT.outgoing(request, "gpt-x", 9))["max_tool_calls"] == goes_out


@pytest.mark.parametrize("calls", [0, -1, 2**60, True, 1.5])
def test_a_number_of_calls_that_is_none_is_refused_where_it_would_bound(calls: Any) -> None:
    with pytest.raises(RequestInvalid, match="max_tool_calls"):
        read(tools=[FILES], max_tool_calls=calls)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "file_search_call", "id": "fs_1", "queries": ["q"], "results": [{"text": "t", "score": 0.5}]},
    ],
    ids=lambda item: item["type"],
)
def test_what_a_search_found_in_an_earlier_turn_may_fill_the_context(item: dict[str, Any]) -> None:
    """The item names what the server keeps."""
    facts = read(input=[RESULT, item, USER]).facts

    assert [(media.kind, media.field) for media in facts.media] == [("document", "input[1]")]
    assert facts.json_bytes == json_bytes(item)
    assert (facts.demands, facts.tool_results) == ((), 0)


def test_what_a_schema_grows_by_is_counted() -> None:
    definitions = {"$defs": {"a": {"type": "string", "description": "d" * 40}}}
    once = {"properties": {"x": {"$ref": "#/$defs/a"}}} | definitions
    twice = {"properties": {"x": {"$ref": "#/$defs/a"}, "y": {"$ref": "#/$defs/a"}}} | definitions

    small, large = (read(tools=[TOOL | {"parameters": schema}]).facts.json_bytes for schema in (once, twice))

    assert large - small > 40


def test_a_schema_that_leads_to_itself_is_refused_by_its_place() -> None:
    endless = {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}

    with pytest.raises(CostBoundUnknown, match=r"text\.format\.schema"):
        read(text={"format": {"type": "json_schema", "name": "a", "schema": endless}})


@pytest.mark.parametrize(
    "items,results",
    [
        ([USER, CALL, RESULT], 1),
        ([USER, CALL, CUSTOM_CALL, RESULT, CUSTOM_RESULT], 2),
        ([USER, CALL, RESULT, CALL, RESULT], 1),
        ([USER, CALL, RESULT, USER], 1),
        ([USER, CALL, RESULT, ANSWER], 0),
        ([USER, RESULT, REASONING], 0),
        ("hello", 0),
    ],
)
def test_only_the_results_after_the_model_s_last_item_are_brought_back(items: Any, results: int) -> None:
    assert read(input=items).facts.tool_results == results


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt_cache_options": {"ttl": "12h"}},
        {
            "input": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "input_text",
                            "text": "x",
                            "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"},
                        }
                    ],
                }
            ]
        },
    ],
)
def test_a_lifetime_of_twelve_hours_is_a_long_write(changes: dict[str, Any]) -> None:
    assert read(**changes).facts.cache_write == "long"


@pytest.mark.parametrize(
    "tier,fact", [(None, None), ("auto", None), ("fast", "priority"), ("flex", "flex"), ("ultrafast", "ultrafast")]
)
def test_the_service_tier_is_a_fact_by_the_name_it_is_billed_under(tier: str | None, fact: str | None) -> None:
    assert read(service_tier=tier).facts.service_tier == fact


def test_harmless_options_pass() -> None:
    options: dict[str, Any] = {
        "background": False,
        "conversation": None,
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
        "max_tool_calls": 3,
        "metadata": {"a": "b"},
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt": None,
        "prompt_cache_key": "k",
        "prompt_cache_options": {"mode": "implicit", "ttl": "30m"},
        "prompt_cache_retention": "24h",
        "reasoning": {"effort": "high", "summary": "auto", "context": "all_turns", "mode": "standard"},
        "safety_identifier": "s",
        "store": True,
        "stream": True,
        "stream_options": {"include_obfuscation": False},
        "temperature": 0.5,
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 2,
        "top_p": 1,
        "truncation": "auto",
        "user": "u",
    }

    document = sent(**options)

    assert {name: document[name] for name in options} == options
    assert not read(**options).facts.structured


IMAGE: dict[str, Any] = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 9_000, "detail": "low"}


def test_media_are_counted_wherever_they_stand_and_their_bytes_are_not() -> None:
    """A hundred bytes may hold an image of any size."""
    parts = [IMAGE, {"type": "input_file", "file_data": "A" * 9_000, "filename": "a.pdf"}]
    screen = {"type": "computer_screenshot", "image_url": "data:" + "A" * 9_000}
    items = [
        {
            "role": "user",
            "content": [*parts, {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}],
        },
        {"role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
        RESULT | {"output": [*parts, {"type": "input_image", "file_id": "file_1"}]},
        CUSTOM_RESULT | {"output": [IMAGE]},
        {"type": "computer_call_output", "call_id": "call_3", "output": screen},
    ]

    facts = read(input=items).facts

    assert [(item.kind, item.detail, item.count) for item in facts.media] == [
        ("image", "low", 3),
        ("document", None, 2),
        ("audio", None, 1),
        ("image", None, 1),
        ("image", "original", 1),
    ]
    assert facts.media[0].field == "input[0].content[0]"
    assert facts.text_bytes + facts.json_bytes < 400
    assert facts.tool_results == 3


@pytest.mark.parametrize(
    "changes,field,uses",
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id", 1),
        ({"conversation": "conv_1"}, "conversation", 1),
        ({"conversation": {"id": "conv_1"}}, "conversation", 1),
        ({"input": [{"id": "msg_1"}]}, "input[0]", 1),
        ({"input": [USER, {"type": "item_reference", "id": "msg_1"}, {"id": "msg_2"}]}, "input[1]", 2),
        ({"input": [{"id": "msg_1"}], "previous_response_id": "resp_1"}, "input[0]", 2),
    ],
)
def test_what_the_server_holds_is_a_demand_that_says_how_many_references_there_are(
    changes: dict[str, Any], field: str, uses: int
) -> None:
    request = read(**changes)

    assert request.facts.demands == (Demand(feature="server_state", field=field, uses=uses, turns=1),)
    # Its pages and images are billed beside the context of some models, which then bound none of it.
    assert [(item.kind, item.field) for item in request.facts.media] == [("document", field)]


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"background": True}, "background"),
        ({"background_options": {}}, "background_options"),
        ({"context_management": [{"type": "compaction"}]}, "context_management"),
        ({"multi_agent": {}}, "multi_agent"),
        ({"moderation": {"model": "m"}}, "moderation"),
        ({"access_programs": {}}, "access_programs"),
        ({"reasoning": {"mode": "pro"}}, "reasoning.mode"),
        ({"service_tier": "new"}, "service_tier"),
        ({"prompt_cache_options": {"prewarm": True}}, "prompt_cache_options.prewarm"),
        *(
            ({"tools": [{"type": kind}]}, "tools[0]")
            for kind in (
                "code_interpreter", "image_generation", "mcp", "web_search_2027_01_01", "computer_use",
                "computer_use_preview", "local_shell", "shell", "apply_patch", "new",
            )
        ),
        ({"tools": [TOOL | {"allowed_callers": ["programmatic"]}]}, "tools[0].allowed_callers[0]"),
        ({"tools": [{"type": "tool_search", "execution": "server"}]}, "tools[0].execution"),
        ({"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "mcp"}]}]}, "tools[0].tools[0]"),
        (
            {"input": [{"type": "additional_tools", "role": "developer", "tools": [{"type": "mcp"}]}]},
            "input[0].tools[0]",
        ),
        ({"input": [{"type": "tool_search_call", "execution": "server", "arguments": {}}]}, "input[0].execution"),
        ({"tools": [TOOL | {"async": True}]}, "tools[0].async"),
        ({"tool_choice": {"type": "web_search"}}, "tool_choice"),
        ({"input": [{"type": "compaction", "encrypted_content": "x"}]}, "input[0]"),
        ({"input": [{"type": "code_interpreter_call", "id": "ci_1", "status": "completed"}]}, "input[0]"),
        ({"tools": [{"type": "web_search", "return_token_budget": "unlimited"}]}, "tools[0].return_token_budget"),
        ({"tools": [{"type": "web_search", "search_context_size": "all"}]}, "tools[0].search_context_size"),
        ({"tools": [{"type": "web_search", "search_content_types": ["film"]}]}, "tools[0].search_content_types[0]"),
        ({"tools": [{"type": "web_search_preview", "filters": {}}]}, "tools[0].filters"),
        ({"tools": [FILES | {"budget": 1}]}, "tools[0].budget"),
        ({"input": [CALL | {"caller": {"type": "program", "caller_id": "p"}}]}, "input[0].caller"),
        ({"input": [RESULT | {"output": [{"type": "input_audio", "input_audio": {}}]}]}, "input[0].output[0]"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "detail": "huge"}]}]}, "input[0].content[0].detail"),
        ({"input": [{"type": "reasoning", "id": "rs_1", "summary": []}]}, "input[0]"),
        ({"input": [{"type": "reasoning", "id": "rs_1", "content": None, "encrypted_content": ""}]}, "input[0]"),
        ({"input": [REASONING | {"encrypted_content": None}]}, "input[0]"),
    ],
)  # fmt: skip
def test_what_is_not_bounded_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(CostBoundUnknown) as caught:
        read(**changes)

    assert caught.value.facts.field == field
    assert field in str(caught.value)


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": ["hello"]}, "input[0]"),
        ({"input": [{"role": "user", "content": 5}]}, "input[0].content"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [CALL | {"arguments": {}}]}, "input[0].arguments"),
        ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
        ({"instructions": ["x"]}, "instructions"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_output_tokens": True}, "max_output_tokens"),
        ({"max_output_tokens": "5"}, "max_output_tokens"),
        ({"model": ""}, "model"),
        ({"tools": {}}, "tools"),
    ],
)
def test_a_wrong_type_is_refused_with_the_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestInvalid) as caught:
        read(**changes)

    assert caught.value.facts.field == field


@pytest.mark.parametrize("missing", ["model", "input"])
def test_a_missing_field_is_named(missing: str) -> None:
    body = {name: value for name, value in responses().items() if name != missing}

    with pytest.raises(RequestInvalid, match=f"{missing} must be given"):
        DIALECT.read(body, {}, "")


def test_a_query_is_refused() -> None:
    with pytest.raises(RequestInvalid, match="query"):
        DIALECT.read(responses(), {}, "a=b")


def test_an_absent_cap_is_stamped_by_its_own_name() -> None:
    assert sent(output_cap=99) == responses(model="served-model", max_output_tokens=99)
    assert sent(output_cap=99, max_output_tokens=None)["max_output_tokens"] == 99


def test_a_cap_of_the_caller_s_is_sent_and_never_more_than_was_bounded() -> None:
    assert read(max_output_tokens=50).facts.output_cap == 50
    assert sent(output_cap=50, max_output_tokens=50)["max_output_tokens"] == 50
    assert sent(output_cap=40, max_output_tokens=50)["max_output_tokens"] == 40


def test_nothing_is_stamped_where_nothing_was_bounded() -> None:
    assert sent(output_cap=None) == responses(model="served-model")
    assert sent(output_cap=None, max_output_tokens=7)["max_output_tokens"] == 7


def test_a_stream_is_sent_as_it_was_asked_for() -> None:
    assert sent(stream=True) == responses(model="served-model", stream=True, max_output_tokens=99)


def test_an_error_in_a_stream_is_the_protocol_s_own_event_with_the_facts_of_the_refusal() -> None:
    refused = OverBudget("Too much.", facts=RefusalFacts(budget="acme", field="model"))

    event = DIALECT.stream_error(refused, "req_1")

    assert event.startswith(b"\n\nevent: error\ndata: ")
    document = json.loads(event.split(b"data: ")[1])
    assert (document["type"], document["code"], document["message"]) == ("error", "over_budget", "Too much.")
    assert (document["param"], document["sequence_number"]) == ("model", 0)
    assert (document["error"]["budget"], document["error"]["request_id"]) == ("acme", "req_1")


FULL: dict[str, Any] = responses(
    instructions="be brief",
    input=[USER, REASONING, CALL, RESULT, CUSTOM_CALL, CUSTOM_RESULT, ANSWER],
    tools=[TOOL, GRAMMAR],
    tool_choice="auto",
    text={"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}},
    reasoning={"effort": "low"},
    max_output_tokens=9,
    prompt_cache_options={"ttl": "12h"},
)


def mutated(node: Any, path: int, value: Any) -> Any:
    """Return a copy with the value in place of the node that a walk meets at number ``path``."""
    count = -1

    def walk(one: Any) -> Any:
        nonlocal count
        count += 1
        if count == path:
            return value
        if isinstance(one, dict):
            return {key: walk(inner) for key, inner in one.items()}
        return [walk(inner) for inner in one] if isinstance(one, list) else one

    return walk(node)


@given(path=st.integers(1, 90), value=odd_values)
def test_any_value_anywhere_is_read_or_refused_and_nothing_else_is_raised(path: int, value: Any) -> None:
    body = mutated(FULL, path, value)
    try:
        request = DIALECT.read(body, {}, "")
    except Refused:
        return
    DIALECT.outgoing(request, "m", request.facts.output_cap or 5)


@given(name=st.text(max_size=20), value=odd_values)
def test_a_field_that_is_not_listed_is_never_sent(name: str, value: Any) -> None:
    try:
        request = DIALECT.read(responses(**{name: value}), {}, "")
    except Refused:
        return
    assert name in DIALECT_FIELDS
    assert set(request.body) <= DIALECT_FIELDS


DIALECT_FIELDS = set(FULL) | {
    "background", "background_options", "context_management", "conversation", "include", "max_tool_calls", "metadata",
    "moderation", "multi_agent", "parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key",
    "prompt_cache_retention", "safety_identifier", "service_tier", "store", "stream", "stream_options", "temperature",
    "top_logprobs", "top_p", "truncation", "user",
}  # fmt: skip
