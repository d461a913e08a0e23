"""OpenAI chat completions: what is read, refused and sent."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.media import Media
from spendgate.core.request import Demand
from spendgate.dialects.json_strict import compact
from spendgate.dialects.measure import json_bytes
from spendgate.dialects.openai_chat import DIALECT
from spendgate.errors import CostBoundUnknown, Refused, RequestInvalid
from tests.dialects.builders import USER, chat, odd_values, parsed, read_chat

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "find", "description": "d", "parameters": {"type": "object"}, "strict": True},
}
CUSTOM: dict[str, Any] = {"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": '{"a":1}'}}
ANSWERED = [
    USER,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "found"},
]


def sent(output_cap: int = 99, **changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(DIALECT.outgoing(read_chat(**changes), "served-model", output_cap))
    return document


def test_the_facts_of_a_plain_request() -> None:
    facts = read_chat().facts

    assert (facts.dialect, facts.model, facts.stream) == ("openai", "house-model", False)
    assert (facts.text_bytes, facts.json_bytes, facts.parts, facts.tools) == (len("hello"), 0, 1, 0)
    assert (facts.output_cap, facts.choices, facts.structured, facts.tool_results) == (None, 1, False, 0)
    assert (facts.cache_write, facts.service_tier, facts.geo, facts.speed) == ("short", None, None, None)


def test_text_is_measured_wherever_it_stands() -> None:
    request = read_chat(
        messages=[
            {"role": "system", "content": "12345", "name": "boss"},
            {"role": "developer", "content": [{"type": "text", "text": "é"}]},
            {"role": "user", "content": [{"type": "text", "text": "1"}, {"type": "text", "text": "2"}]},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}], "refusal": "nope"},
            {"role": "assistant", "content": "x", "reasoning_content": "yyy", "audio": None, "annotations": []},
            {"role": "function", "name": "find", "content": None},
        ],
        stop=["END", "é"],
        prediction={"type": "content", "content": "abcdefgh"},
    )

    assert request.facts.text_bytes == 5 + 4 + 2 + 2 + 2 + 4 + 1 + 3 + 4 + 3 + 2 + 8
    assert request.facts.parts == 6 + 4


def test_tools_calls_and_results_are_measured_as_json_and_counted() -> None:
    facts = read_chat(
        messages=ANSWERED,
        tools=[TOOL, CUSTOM],
        functions=[{"name": "old", "parameters": {}}],
        tool_choice={"type": "function", "function": {"name": "find"}},
        function_call={"name": "old"},
    ).facts

    assert facts.tools == 3
    assert facts.tool_results == 1
    assert facts.parts == 4
    assert facts.json_bytes >= len(compact([TOOL, CUSTOM, CALL])) + len('{"a":1}')


def test_only_the_results_after_the_last_answer_are_brought_back() -> None:
    result = {"role": "tool", "tool_call_id": "call_1", "content": "found"}

    assert read_chat(messages=[*ANSWERED, *ANSWERED, result]).facts.tool_results == 2
    assert read_chat(messages=[*ANSWERED, {"role": "assistant", "content": "done"}]).facts.tool_results == 0
    assert read_chat(messages=[result, {"role": "function", "name": "f", "content": "x"}]).facts.tool_results == 2


@pytest.mark.parametrize(
    "response_format,structured",
    [
        ({"type": "text"}, False),
        ({"type": "json_object"}, True),
        ({"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}, True),
        ({"type": "json_schema", "json_schema": {"name": "a"}}, True),
        (None, False),
    ],
)
def test_a_response_format_is_structured_unless_it_is_text(response_format: Any, *, structured: bool) -> None:
    facts = read_chat(response_format=response_format).facts

    assert facts.structured is structured
    assert facts.json_bytes >= (len(compact(response_format)) if response_format else 0)


def test_what_a_schema_grows_by_is_counted() -> None:
    town = {"type": "string", "description": "a town " * 50}
    schema = {"$defs": {"T": town}, "properties": {n: {"$ref": "#/$defs/T"} for n in "ab"}, "pad": "x" * 400}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}

    facts = read_chat(tools=[tool]).facts

    # The town's description stands in both places, whatever of it is printed once in each.
    assert facts.json_bytes > json_bytes(tool) + 200


@pytest.mark.parametrize(
    "changes,cap",
    [
        ({"max_tokens": 7}, 7),
        ({"max_completion_tokens": 8}, 8),
        ({"max_tokens": 7, "max_completion_tokens": 8}, 8),
        ({"max_tokens": 9, "max_completion_tokens": 8}, 9),
        ({"max_tokens": None, "max_completion_tokens": 8}, 8),
        ({"max_tokens": None}, None),
        ({}, None),
    ],
)
def test_the_cap_is_the_larger_of_those_given(changes: dict[str, Any], cap: int | None) -> None:
    assert read_chat(**changes).facts.output_cap == cap


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "n"])
@pytest.mark.parametrize("value", ["4096", 4096.0, 1e6, True, -1, 0, [], {}, 2**60])
def test_only_a_whole_number_from_one_on_is_a_cap_or_a_number_of_choices(name: str, value: Any) -> None:
    with pytest.raises(RequestInvalid, match=f"{name} must be a whole number") as refused:
        read_chat(**{name: value})

    assert refused.value.facts.field == name


def test_choices_multiply_up_to_their_limit() -> None:
    assert read_chat(n=128).facts.choices == 128
    assert read_chat(n=None).facts.choices == 1

    with pytest.raises(RequestInvalid, match="from 1 to 128"):
        read_chat(n=129)


@pytest.mark.parametrize(
    "tier,fact",
    [
        (None, None),
        ("auto", None),
        ("default", "default"),
        ("flex", "flex"),
        ("priority", "priority"),
        ("fast", "priority"),
    ],
)
def test_the_service_tier_is_a_fact_by_the_name_it_is_billed_under(tier: str | None, fact: str | None) -> None:
    assert read_chat(service_tier=tier).facts.service_tier == fact


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt_cache_options": {"ttl": "12h"}},
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}}
                    ],
                }
            ]
        },
    ],
)
def test_a_lifetime_of_twelve_hours_is_a_long_write(changes: dict[str, Any]) -> None:
    assert read_chat(**changes).facts.cache_write == "long"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"prompt_cache_options": {"mode": "explicit", "ttl": "30m"}},
        {"prompt_cache_retention": "24h"},
        {"prompt_cache_options": None, "prompt_cache_key": "k"},
    ],
)
def test_every_other_request_may_write_the_short_lifetime_without_asking(changes: dict[str, Any]) -> None:
    assert read_chat(**changes).facts.cache_write == "short"


def test_harmless_options_pass() -> None:
    options: dict[str, Any] = {
        "frequency_penalty": 0.5,
        "presence_penalty": -1,
        "temperature": 0.2,
        "top_p": None,
        "seed": 12345678901234567890,
        "logprobs": True,
        "top_logprobs": 5,
        "logit_bias": {"50256": -100},
        "stop": "END",
        "metadata": {"team": "search"},
        "user": "u",
        "safety_identifier": "s",
        "store": True,
        "reasoning_effort": "xhigh",
        "verbosity": "low",
        "parallel_tool_calls": False,
        "modalities": ["text"],
        "audio": None,
        "web_search_options": None,
        "tool_choice": "auto",
        "function_call": "none",
    }

    assert sent(**options).items() >= options.items()


def said(*parts: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": list(parts)}]}


def image(url: str, **changes: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url} | changes}


def test_media_are_counted_by_kind_and_detail_and_their_bytes_are_no_text() -> None:
    parts = [
        {"type": "text", "text": "look"},
        image("data:image/png;base64," + "A" * 9000),
        image("https://example.com/a.png", detail="low"),
        image("https://example.com/b.png", detail="low"),
        {"type": "input_audio", "input_audio": {"data": "A" * 9000, "format": "wav"}},
        {"type": "file", "file": {"file_data": "A" * 9000, "filename": "a.pdf"}},
    ]

    facts = read_chat(**said(*parts)).facts

    assert facts.media == (
        Media(kind="image", field="messages[0].content[1]"),
        Media(kind="image", field="messages[0].content[2]", detail="low", count=2),
        Media(kind="audio", field="messages[0].content[4]"),
        Media(kind="document", field="messages[0].content[5]"),
    )
    assert facts.text_bytes == len("look") + len("a.pdf")
    assert facts.parts == 7


def test_an_image_in_a_tool_s_result_is_counted_too() -> None:
    call = {
        "role": "assistant",
        "tool_calls": [{"type": "function", "id": "c", "function": {"name": "f", "arguments": ""}}],
    }
    result = {"role": "tool", "tool_call_id": "c", "content": [image("https://example.com/a.png")]}

    assert read_chat(messages=[USER, call, result]).facts.media == (
        Media(kind="image", field="messages[2].content[0]"),
    )


def test_media_go_along_as_they_came() -> None:
    changes = said(image("data:image/png;base64,AAAA", detail="original"), {"type": "file", "file": {"file_id": "f"}})

    assert sent(**changes)["messages"] == changes["messages"]


def test_a_search_is_a_demand_for_as_many_as_an_operator_allows() -> None:
    options = {"search_context_size": "low", "user_location": {"type": "approximate", "approximate": {"country": "CH"}}}

    facts = read_chat(web_search_options=options).facts

    assert facts.demands == (
        Demand(feature="web_search", field="web_search_options", fee="web_search", tokens_each=8_000),
    )
    assert read_chat(web_search_options=None).facts.demands == ()


def test_a_grammar_of_a_custom_tool_is_measured_as_text() -> None:
    def measured(definition: str) -> int:
        grammar = {"type": "grammar", "grammar": {"definition": definition, "syntax": "lark"}}
        return read_chat(tools=[{"type": "custom", "custom": {"name": "a", "format": grammar}}]).facts.json_bytes

    # Doubled in the bound: the whole of it at least, and not only its length in the file of the tool.
    assert 2 * (measured("start: " + "x" * 500) - measured("start: ")) >= 500


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"web_search_options": {"budget": 1}}, "web_search_options.budget"),
        ({"web_search_options": {"search_context_size": "whole"}}, "web_search_options.search_context_size"),
        ({"moderation": {"model": "m"}}, "moderation"),
        ({"audio": {"voice": "a", "format": "wav"}}, "audio"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"multi_agent": {}}, "multi_agent"),
        ({"plugins": None}, "plugins"),
        ({"service_tier": "ultrafast"}, "service_tier"),
        ({"stream": True, "stream_options": {"billing": True}}, "stream_options.billing"),
        ({"tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"tools": [TOOL | {"cost": 1}]}, "tools[0].cost"),
        (
            {"tools": [{"type": "custom", "custom": {"name": "a", "format": {"type": "program"}}}]},
            "tools[0].custom.format",
        ),
        (said({"type": "video_url", "video_url": {"url": "x"}}), "messages[0].content[0]"),
        (said(image("x", detail="ultra")), "messages[0].content[0].image_url.detail"),
        (said({"type": "file", "file": {"url": "x"}}), "messages[0].content[0].file.url"),
        (
            {"prediction": {"type": "content", "content": [{"type": "file", "file": {"file_id": "f"}}]}},
            "prediction.content[0]",
        ),
        ({"messages": [USER | {"weight": 1}]}, "messages[0].weight"),
        ({"messages": [{"role": "assistant", "audio": {"id": "a"}}]}, "messages[0].audio"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"type": "mcp"}]}]}, "messages[0].tool_calls[0]"),
        ({"response_format": {"type": "video"}}, "response_format"),
        ({"prompt_cache_options": {"ttl": "48h"}}, "prompt_cache_options.ttl"),
        ({"prompt_cache_retention": "1y"}, "prompt_cache_retention"),
        ({"tool_choice": "everything"}, "tool_choice"),
        ({"tool_choice": {"type": "mcp"}}, "tool_choice"),
        ({"function_call": {"name": "a", "model": "b"}}, "function_call.model"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"$ref": "#"}}}]},
            "tools[0].parameters",
        ),
    ],
)
def test_what_is_not_bounded_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(CostBoundUnknown, match="not bounded") as refused:
        read_chat(**changes)

    assert refused.value.facts.field == field
    assert refused.value.facts.next_action


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"model": 1}, "model"),
        ({"model": ""}, "model"),
        ({"messages": {}}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": ["user"], "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": 1}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].tool_call_id"),
        (said({"type": "image_url", "image_url": "x"}), "messages[0].content[0].image_url"),
        (said({"type": "image_url"}), "messages[0].content[0].image_url"),
        (said(image("x") | {"image_url": {}}), "messages[0].content[0].image_url.url"),
        (said({"type": "input_audio"}), "messages[0].content[0].input_audio"),
        (said({"type": "file"}), "messages[0].content[0].file"),
        ({"messages": [{"role": "assistant", "tool_calls": {}}]}, "messages[0].tool_calls"),
        ({"stream": "true"}, "stream"),
        ({"stream_options": True}, "stream_options"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"seed": 1.5}, "seed"),
        ({"stop": 5}, "stop"),
        ({"stop": ["a", 5]}, "stop"),
        ({"tools": {}}, "tools"),
        ({"tools": [5]}, "tools[0]"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]},
            "tools[0].function.parameters",
        ),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"logit_bias": [1]}, "logit_bias"),
        ({"prediction": {"type": "content"}}, "prediction.content"),
        ({"function_call": 5}, "function_call"),
        ({"tool_choice": 5}, "tool_choice"),
    ],
)
def test_a_wrong_type_is_refused_with_the_field_and_what_is_allowed(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestInvalid, match="must be") as refused:
        read_chat(**changes)

    assert refused.value.facts.field == field
    assert str(refused.value).startswith(field)


@pytest.mark.parametrize("missing", ["model", "messages"])
def test_a_missing_field_is_named(missing: str) -> None:
    body = {key: value for key, value in chat().items() if key != missing}

    with pytest.raises(RequestInvalid, match=f"{missing} must be given"):
        DIALECT.read(body, {}, "")


def test_a_query_is_refused() -> None:
    with pytest.raises(RequestInvalid, match="query"):
        DIALECT.read(chat(), {}, "api-version=1")


def test_no_header_of_the_caller_goes_along() -> None:
    request = DIALECT.read(chat(), {"openai-organization": "org", "authorization": "Bearer x", "cookie": "c"}, "")

    assert request.headers == ()
    assert request.query == ""


def test_an_absent_cap_is_stamped_under_the_name_that_reasoning_models_take() -> None:
    assert sent(output_cap=77) == {
        "model": "served-model",
        "messages": [USER],
        "max_completion_tokens": 77,
    }
    assert sent(output_cap=77, max_tokens=None) == sent(output_cap=77)


def test_a_call_that_nothing_bounds_is_sent_as_it_came() -> None:
    for caps in ({"max_tokens": 7}, {}):
        document = json.loads(DIALECT.outgoing(read_chat(**caps), "served-model", None))

        assert document == {"model": "served-model", "messages": [USER]} | caps


def test_the_callers_own_cap_keeps_its_name_and_value() -> None:
    assert sent(output_cap=7, max_tokens=7) == {"model": "served-model", "messages": [USER], "max_tokens": 7}
    both = sent(output_cap=9, max_tokens=9, max_completion_tokens=8)
    assert (both["max_tokens"], both["max_completion_tokens"]) == (9, 8)


@given(
    caps=st.dictionaries(st.sampled_from(["max_tokens", "max_completion_tokens"]), st.none() | st.integers(1, 500)),
    bounded=st.integers(1, 500),
)
def test_no_cap_is_sent_above_what_was_bounded(caps: dict[str, Any], bounded: int) -> None:
    document = sent(output_cap=bounded, **caps)
    sent_caps = [document[name] for name in ("max_tokens", "max_completion_tokens") if name in document]

    assert sent_caps
    assert max(sent_caps) <= bounded


def test_usage_is_asked_for_in_every_stream() -> None:
    assert sent(stream=True)["stream_options"] == {"include_usage": True}
    kept = sent(stream=True, stream_options={"include_usage": False, "include_obfuscation": False})
    assert kept["stream_options"] == {"include_usage": True, "include_obfuscation": False}
    assert "stream_options" not in sent(stream=False)


@pytest.mark.parametrize(
    "options,wants", [(None, False), ({}, False), ({"include_usage": False}, False), ({"include_usage": True}, True)]
)
def test_the_usage_chunk_is_the_callers_only_if_asked_for(options: Any, *, wants: bool) -> None:
    assert read_chat(stream=True, stream_options=options).wants_usage is wants


FIELDS = st.sampled_from(
    [
        "model",
        "messages",
        "stream",
        "stream_options",
        "n",
        "max_tokens",
        "stop",
        "tools",
        "tool_choice",
        "functions",
        "function_call",
        "response_format",
        "prediction",
        "prompt_cache_options",
        "service_tier",
        "modalities",
        "role",
        "content",
        "type",
        "text",
        "function",
        "name",
        "tool_calls",
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
    for odd in (body, chat() | body, chat(messages=[USER | body])):
        try:
            request = DIALECT.read(odd, {}, "")
        except Refused:
            continue
        DIALECT.outgoing(request, "m", 1)


texts = st.text(max_size=20)
conversations = st.lists(
    st.one_of(
        st.fixed_dictionaries({"role": st.sampled_from(["user", "system", "assistant"]), "content": texts}),
        st.fixed_dictionaries(
            {
                "role": st.just("user"),
                "content": st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": texts})),
            }
        ),
        st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": texts, "content": texts}),
        st.fixed_dictionaries(
            {
                "role": st.just("assistant"),
                "tool_calls": st.lists(
                    st.fixed_dictionaries(
                        {
                            "type": st.just("function"),
                            "id": texts,
                            "function": st.fixed_dictionaries({"name": texts, "arguments": texts}),
                        }
                    )
                ),
            }
        ),
    ),
    min_size=1,
    max_size=5,
)


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [text for key, item in value.items() if key not in {"role", "type"} for text in strings(item)]


@given(conversation=conversations)
def test_every_text_that_a_model_may_see_is_measured(conversation: list[dict[str, Any]]) -> None:
    facts = read_chat(messages=conversation).facts

    assert facts.text_bytes + facts.json_bytes >= sum(len(text.encode()) for text in strings(conversation))


@given(conversation=conversations, cap=st.none() | st.integers(1, 100), stream=st.booleans())
def test_what_is_sent_holds_only_what_was_parsed_and_stamped(
    conversation: Any, cap: int | None, *, stream: bool
) -> None:
    body = parsed(chat(messages=conversation, max_tokens=cap, stream=stream))
    document = json.loads(DIALECT.outgoing(DIALECT.read(body, {}, ""), "served", cap or 50))

    assert document.keys() - body.keys() <= {"max_completion_tokens", "stream_options"}
    assert document["messages"] == conversation
    assert document["model"] == "served"
