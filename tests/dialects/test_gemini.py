"""Gemini: what is read, refused and sent."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.media import Media
from spendgate.core.request import Demand
from spendgate.dialects.dialect import Request
from spendgate.dialects.gemini import (
    COUNT_TOKENS,
    DIALECT,
    STREAM_DIALECT,
    refusal,
)
from spendgate.dialects.gemini_fields import TOP_LEVEL, Many, MapOf, Message, Shape, camel
from spendgate.dialects.json_strict import compact
from spendgate.errors import BudgetBusy, CostBoundUnknown, OverBudget, Refused, RequestInvalid
from tests.dialects.builders import odd_values, parsed

PATH = {"model": "house-model"}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(60)).decode()
INLINE = {"mimeType": "image/png", "data": PNG}
USER: dict[str, Any] = {"role": "user", "parts": [{"text": "hello"}]}
CALL = {"functionCall": {"id": "c1", "name": "find", "args": {"a": [1, 2]}}}
RESULT = {"functionResponse": {"id": "c1", "name": "find", "response": {"found": True}}}
FUNCTION = {
    "name": "find",
    "description": "d",
    "parameters": {"type": "OBJECT", "properties": {"a": {"type": "ARRAY"}}},
}
TOOLS = [{"functionDeclarations": [FUNCTION]}]
ANSWERED = [USER, {"role": "model", "parts": [CALL]}, {"role": "user", "parts": [RESULT, RESULT]}]


def gemini(**changes: Any) -> dict[str, Any]:
    return {"contents": [USER]} | changes


def read(**changes: Any) -> Request:
    return DIALECT.read(parsed(gemini(**changes)), {}, "", PATH)


def sent(request: Request, cap: int | None = 40) -> Any:
    return json.loads(DIALECT.outgoing(request, "gemini-x", cap))


def said(*parts: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"contents": [{"role": role, "parts": list(parts)}]}


def config(**fields: Any) -> dict[str, Any]:
    return {"generationConfig": fields}


def test_the_facts_of_a_plain_request() -> None:
    facts = read().facts

    assert (facts.dialect, facts.model, facts.stream, facts.output_cap) == ("gemini", "house-model", False, None)
    assert (facts.text_bytes, facts.json_bytes, facts.parts, facts.tools) == (len("hello"), 0, 2, 0)
    assert (facts.cache_write, facts.choices, facts.structured, facts.tool_results) == ("none", 1, False, 0)
    assert (facts.service_tier, facts.geo, facts.speed) == (None, None, None)


def test_text_is_measured_wherever_it_stands() -> None:
    facts = read(
        systemInstruction={"parts": [{"text": "1234"}]},
        contents=[
            {"parts": [{"text": "é"}]},
            {"role": "model", "parts": [{"text": "hmm", "thought": True, "thoughtSignature": "abcdef"}]},
            {"role": "model", "parts": [CALL | {"thoughtSignature": "gh"}]},
            {"role": "user", "parts": [RESULT]},
        ],
        generationConfig={"stopSequences": ["END"]},
    ).facts

    assert facts.text_bytes == 4 + 2 + 3 + 6 + (2 + 2 + 4) + (2 + 4) + 3
    assert facts.parts == 5 + 5
    assert facts.json_bytes == len(compact(CALL["functionCall"]["args"])) + len(compact({"found": True}))
    assert facts.tool_results == 1


@pytest.mark.parametrize(
    "part", [{"text": "", "thoughtSignature": "abc"}, {"thoughtSignature": "abc", "thought": True}]
)
def test_a_signature_without_its_text_stands_for_thinking_that_was_not_shown(part: dict[str, Any]) -> None:
    facts = read(**said(part, part, role="model")).facts

    assert facts.media == (Media(kind="reasoning", field="contents[0].parts[0].thoughtSignature", count=2),)
    assert facts.text_bytes == 6
    assert read(**said({"text": "hm", "thoughtSignature": "abc"}, CALL | {"thoughtSignature": "d"})).facts.media == ()


def in_base64(head: bytes) -> str:
    return base64.urlsafe_b64encode(head + bytes(40)).decode()


@pytest.mark.parametrize(
    "mime_type,head,kind",
    [
        ("image/png", b"\x89PNG\r\n\x1a\n", "image"),
        ("IMAGE/JPEG; q=1", b"\xff\xd8\xff\xe0", "image"),
        ("image/webp", b"RIFF\0\0\0\0WEBPVP8 ", "image"),
        ("image/heic", b"\0\0\0\x18ftypheic", "image"),
        # A name that the bytes do not bear out, and the other way round.
        ("image/webp", b"RIFF\0\0\0\0WAVEfmt ", "file"),
        ("image/heif", b"\0\0\0\x18ftypisom", "file"),
        ("image/png", b"%PDF-1.7", "file"),
        ("image/gif", b"GIF89a", "file"),
        ("video/mp4", b"\x89PNG\r\n\x1a\n", "file"),
        ("text/csv", b"a,b", "file"),
        ("application/pdf", b"%PDF-1.7", "document"),
        ("audio/wav", b"RIFF", "audio"),
    ],
)
def test_inline_data_is_what_its_name_and_its_bytes_say_and_else_anything(
    mime_type: str, head: bytes, kind: str
) -> None:
    part = {"inlineData": {"mimeType": mime_type, "data": in_base64(head)}}

    assert [item.kind for item in read(**said(part)).facts.media] == [kind]


def test_what_is_no_base64_is_no_image() -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": "?"}}

    assert [item.kind for item in read(**said(part)).facts.media] == ["file"]


def test_media_are_counted_wherever_they_stand_and_never_by_their_bytes() -> None:
    image, film = {"inlineData": INLINE}, {"file_data": {"file_uri": "https://youtu.be/x", "mime_type": "image/png"}}
    result = {"functionResponse": RESULT["functionResponse"] | {"parts": [image, film, image]}}
    facts = read(
        systemInstruction={"parts": [image]},
        contents=[{"role": "user", "parts": [{"text": "see"}, image, film]}, {"role": "user", "parts": [result]}],
    ).facts

    assert facts.media == (
        Media(kind="image", field="systemInstruction.parts[0].inlineData", count=4),
        Media(kind="file", field="contents[0].parts[2].fileData", count=2),
    )
    assert facts.text_bytes == len("see") + 4 * len("image/png") + 2 * len("https://youtu.be/ximage/png") + len(
        "c1find"
    )
    assert facts.parts == 3 + 5 + 3


@pytest.mark.parametrize("inner", [{}, {"inlineData": INLINE, "fileData": {"fileUri": "u"}}])
def test_a_medium_of_a_result_is_one(inner: dict[str, Any]) -> None:
    with pytest.raises(RequestInvalid, match="parts"):
        read(**said({"functionResponse": RESULT["functionResponse"] | {"parts": [inner]}}))


def test_tools_of_the_provider_and_what_it_has_stored_are_demands() -> None:
    tools = [{"functionDeclarations": [FUNCTION], "google_search": {"exclude_domains": "a.example"}}]
    facts = read(tools=[*tools, {"urlContext": {}, "googleSearch": {}}], cached_content="cachedContents/1").facts

    assert facts.demands == (
        Demand(feature="web_search", field="tools[0].googleSearch", fee="web_search"),
        Demand(feature="web_fetch", field="tools[1].urlContext"),
        Demand(feature="server_state", field="cachedContent", uses=1, turns=1),
    )
    assert facts.media == (Media(kind="file", field="cachedContent"),)
    assert facts.tools == 4


def test_functions_schemas_and_the_choice_of_a_tool_are_measured_as_json() -> None:
    choice = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["find"]}}
    schema = {"type": "OBJECT", "properties": {"name": {"type": "STRING"}}}
    other = {"name": "other", "parametersJsonSchema": {"type": "object"}}

    facts = read(
        tools=[{"functionDeclarations": [FUNCTION, other]}, {"functionDeclarations": [FUNCTION]}],
        toolConfig=choice,
        generationConfig={"responseSchema": schema, "responseMimeType": "application/json"},
    ).facts

    assert facts.tools == 3
    assert facts.structured
    assert facts.json_bytes >= len(compact([FUNCTION, other, FUNCTION])) + len(compact(choice)) + len(compact(schema))


def test_only_the_results_after_the_last_answer_are_brought_back() -> None:
    later = {"role": "model", "parts": [{"text": "done"}]}

    assert read(contents=ANSWERED).facts.tool_results == 2
    assert read(contents=[*ANSWERED, later, USER]).facts.tool_results == 0


@pytest.mark.parametrize(
    "changes,fact,value",
    [
        (config(maxOutputTokens=7), "output_cap", 7),
        (config(candidateCount=3), "choices", 3),
        (config(responseMimeType="application/json"), "structured", True),
        (config(responseMimeType="text/plain"), "structured", False),
        (config(responseJsonSchema={"type": "object"}), "structured", True),
        ({"serviceTier": "flex"}, "service_tier", "flex"),
        ({"serviceTier": "unspecified"}, "service_tier", None),
    ],
)
def test_what_decides_the_cost_is_a_fact(changes: dict[str, Any], fact: str, value: Any) -> None:
    assert getattr(read(**changes).facts, fact) == value


def test_the_model_is_the_path_s_and_the_body_may_only_repeat_it() -> None:
    for name in ("house-model", "models/house-model"):
        request = read(model=name)
        assert request.facts.model == "house-model"
        assert "model" not in sent(request)
    with pytest.raises(RequestInvalid, match="the model of the path"):
        read(model="models/dearer")


def test_the_candidate_s_model_is_in_the_path_that_is_sent_to() -> None:
    request = read()

    assert DIALECT.upstream_path(request, "gemini-x") == "/v1beta/models/gemini-x:generateContent"
    assert STREAM_DIALECT.upstream_path(request, "gemini-x") == "/v1beta/models/gemini-x:streamGenerateContent"
    assert COUNT_TOKENS.upstream_path(request, "a?b") == "/v1beta/models/a%3Fb:countTokens"


def test_an_absent_cap_is_stamped_and_one_that_is_given_never_exceeds_what_was_bounded() -> None:
    assert sent(read())["generationConfig"] == {"maxOutputTokens": 40}
    assert sent(read(**config(temperature=0)))["generationConfig"] == {"temperature": 0, "maxOutputTokens": 40}
    assert sent(read(**config(max_output_tokens=7)))["generationConfig"] == {"maxOutputTokens": 7}
    assert sent(read(**config(maxOutputTokens=70)))["generationConfig"] == {"maxOutputTokens": 40}
    assert sent(read(), None)["generationConfig"] == {}


def test_both_spellings_are_read_and_one_of_them_leaves() -> None:
    snake = {
        "system_instruction": {"parts": [{"text": "brief"}]},
        "generation_config": {"max_output_tokens": 9, "top_p": 0.5, "thinking_config": {"thinking_budget": 0}},
        "tools": [{"function_declarations": [{"name": "f", "parameters": {"type": "OBJECT", "any_of": []}}]}],
        "tool_config": {"function_calling_config": {"mode": "AUTO"}},
        "safety_settings": [{"category": "c", "threshold": "t"}],
        "service_tier": "standard",
        "contents": [{"role": "model", "parts": [{"function_call": {"name": "f", "args": {"snake_case": 1}}}]}],
    }

    assert sent(read(**snake)) == {
        "systemInstruction": {"parts": [{"text": "brief"}]},
        "generationConfig": {"maxOutputTokens": 9, "topP": 0.5, "thinkingConfig": {"thinkingBudget": 0}},
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT", "anyOf": []}}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "safetySettings": [{"category": "c", "threshold": "t"}],
        "serviceTier": "standard",
        # The names of arguments are the caller's own.
        "contents": [{"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"snake_case": 1}}}]}],
    }


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"generationConfig": {}, "generation_config": {"maxOutputTokens": 1}}, "generationConfig"),
        ({"generationConfig": None, "generation_config": {"maxOutputTokens": 1}}, "generationConfig"),
        (config(maxOutputTokens=1, max_output_tokens=10**6), "generationConfig.maxOutputTokens"),
        (said({"functionCall": {"name": "f"}, "function_call": {"name": "f"}}), "contents[0].parts[0].functionCall"),
    ],
)
def test_a_field_in_both_spellings_is_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestInvalid, match="two spellings") as refused:
        read(**changes)
    assert refused.value.facts.field == field


def test_one_value_stands_for_a_list_of_one() -> None:
    request = read(contents={"parts": {"text": "hello"}}, tools={"functionDeclarations": FUNCTION})

    assert sent(request)["contents"] == [{"parts": [{"text": "hello"}]}]
    assert request.facts.tools == 1
    assert request.facts.text_bytes == len("hello")


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"serviceTier": "ludicrous"}, "serviceTier"),
        ({"store": True}, "store"),
        ({"continuationToken": "x"}, "continuationToken"),
        (
            {"tools": [{"googleSearch": {"searchTypes": {"imageSearch": {}}}}]},
            "tools[0].googleSearch.searchTypes.imageSearch",
        ),
        ({"tools": [{"googleSearch": {"blockingConfidence": "X"}}]}, "tools[0].googleSearch.blockingConfidence"),
        ({"tools": [{"urlContext": {"deep": True}}]}, "tools[0].urlContext.deep"),
        ({"tools": [{"urlContext": {}}]} | config(candidateCount=2), "generationConfig.candidateCount"),
        (config(mediaResolution="MEDIA_RESOLUTION_ULTRA_HIGH"), "generationConfig.mediaResolution"),
        ({"tools": [{"googleSearchRetrieval": {}}]}, "tools[0].googleSearchRetrieval"),
        ({"tools": [{"googleMaps": {}}]}, "tools[0].googleMaps"),
        ({"tools": [{"codeExecution": {}}]}, "tools[0].codeExecution"),
        ({"tools": [{"fileSearch": {}}]}, "tools[0].fileSearch"),
        ({"tools": [{"computerUse": {}}]}, "tools[0].computerUse"),
        ({"tools": [{"mcpServers": []}]}, "tools[0].mcpServers"),
        ({"toolConfig": {"retrievalConfig": {}}}, "toolConfig.retrievalConfig"),
        ({"toolConfig": {"includeServerSideToolInvocations": True}}, "toolConfig.includeServerSideToolInvocations"),
        (config(responseModalities=["TEXT", "IMAGE"]), "generationConfig.responseModalities[1]"),
        (config(responseModalities=["AUDIO"]), "generationConfig.responseModalities[0]"),
        (config(speechConfig={}), "generationConfig.speechConfig"),
        (config(imageConfig={}), "generationConfig.imageConfig"),
        (config(routingConfig={}), "generationConfig.routingConfig"),
        (config(modelSelectionConfig={}), "generationConfig.modelSelectionConfig"),
        (config(responseSchema={"ref": "#/defs/A"}), "generationConfig.responseSchema.ref"),
        (
            config(responseSchema={"properties": {"a": {"defs": {}}}}),
            "generationConfig.responseSchema.properties.a.defs",
        ),
        (config(responseJsonSchema={"$ref": "#"}), "generationConfig.responseJsonSchema"),
        (
            said({"inlineData": INLINE, "mediaResolution": {"level": "MEDIA_RESOLUTION_EXTREME"}}),
            "contents[0].parts[0].mediaResolution.level",
        ),
        (
            said({"inlineData": INLINE, "mediaResolution": {"numTokens": 9999}}),
            "contents[0].parts[0].mediaResolution.numTokens",
        ),
        (
            said({"fileData": {"fileUri": "u"}, "videoMetadata": {"contentLayers": []}}),
            "contents[0].parts[0].videoMetadata.contentLayers",
        ),
        (said({"executableCode": {}}), "contents[0].parts[0].executableCode"),
        (said({"toolCall": {}}), "contents[0].parts[0].toolCall"),
        (
            {"tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"$ref": "#"}}]}]},
            "tools[0].functionDeclarations[0].parametersJsonSchema",
        ),
    ],
)
def test_what_is_not_bounded_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(CostBoundUnknown, match="not bounded") as refused:
        read(**changes)

    assert refused.value.facts.field == field


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"contents": []}, "contents"),
        ({"contents": None}, "contents"),
        ({"contents": "hello"}, "contents[0]"),
        ({"contents": [None]}, "contents[0]"),
        (said({}), "contents[0].parts[0]"),
        (said({"text": "a"} | CALL), "contents[0].parts[0]"),
        (said({"text": 1}), "contents[0].parts[0].text"),
        (said({"functionResponse": {"name": "f"}}), "contents[0].parts[0].functionResponse.response"),
        (said({"functionCall": {"name": ""}}), "contents[0].parts[0].functionCall.name"),
        (config(maxOutputTokens="5"), "generationConfig.maxOutputTokens"),
        (config(maxOutputTokens=5.0), "generationConfig.maxOutputTokens"),
        (config(maxOutputTokens=0), "generationConfig.maxOutputTokens"),
        (config(maxOutputTokens=-1), "generationConfig.maxOutputTokens"),
        (config(maxOutputTokens=2**53), "generationConfig.maxOutputTokens"),
        (config(candidateCount=0), "generationConfig.candidateCount"),
        (config(candidateCount=129), "generationConfig.candidateCount"),
        (config(candidateCount="2"), "generationConfig.candidateCount"),
        ({"model": 5}, "model"),
    ],
)
def test_what_is_malformed_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestInvalid) as refused:
        read(**changes)

    assert refused.value.facts.field == field


@pytest.mark.parametrize("query", ["alt=sse", "alt=json", "alt=sse&x=1", "fields=usageMetadata"])
def test_a_query_that_is_not_known_is_refused(query: str) -> None:
    body = parsed(gemini())
    with pytest.raises(RequestInvalid, match="query"):
        DIALECT.read(body, {}, query, PATH)
    with pytest.raises(RequestInvalid, match="query"):
        COUNT_TOKENS.read(body, {}, query, PATH)
    if query != "alt=sse":
        with pytest.raises(RequestInvalid, match="query"):
            STREAM_DIALECT.read(body, {}, query, PATH)


@pytest.mark.parametrize("query", ["", "alt=sse"])
def test_a_stream_is_asked_for_as_the_caller_asked(query: str) -> None:
    request = STREAM_DIALECT.read(parsed(gemini()), {}, query, PATH)

    assert (request.facts.dialect, request.facts.stream, request.query) == ("gemini-stream", True, query)


def test_a_token_count_is_read_for_its_model_alone_and_names_the_candidate_s() -> None:
    body = {
        "model": "models/house-model",
        "contents": [{"parts": [{"fileData": {"fileUri": "x"}}]}],
        "generateContentRequest": {"model": "models/house-model", "contents": []},
    }

    request = COUNT_TOKENS.read(body, {}, "", PATH)

    assert request.facts.model == "house-model"
    assert json.loads(COUNT_TOKENS.outgoing(request, "gemini-x")) == {
        "contents": body["contents"],
        "generateContentRequest": {"model": "models/gemini-x", "contents": []},
    }
    with pytest.raises(RequestInvalid, match="the model of the path"):
        COUNT_TOKENS.read({"generate_content_request": {"model": "models/other"}}, {}, "", PATH)


@pytest.mark.parametrize(
    "refused,code,status",
    [
        (OverBudget("No."), 402, "RESOURCE_EXHAUSTED"),
        (BudgetBusy("Wait."), 429, "RESOURCE_EXHAUSTED"),
        (RequestInvalid("Bad."), 400, "INVALID_ARGUMENT"),
    ],
)
def test_a_refusal_is_google_s_error_with_all_facts_among_its_details(refused: Refused, code: int, status: str) -> None:
    error = refusal(refused, "r1")["error"]

    assert (error["code"], error["status"], error["message"]) == (code, status, str(refused))
    (facts,) = error["details"]
    assert (facts["@type"], facts["code"], facts["request_id"]) == ("spendgate.refusal", refused.code, "r1")
    # Google's client knows an error in a stream by how it begins.
    assert STREAM_DIALECT.stream_error(refused, "r1").startswith(b'{"error":')


def shapes(shape: Shape, depth: int) -> st.SearchStrategy[Any]:
    """Return values that nearly fit: known fields in either spelling, and odd values everywhere."""
    match shape:
        case Message() if depth and shape.fields:
            names = sorted(shape.fields)
            field = st.sampled_from(names).flatmap(
                lambda name: st.tuples(spellings(name), shapes(shape.fields[name], depth - 1) | odd_values)
            )
            return st.lists(field, max_size=4).map(dict)
        case Many() if depth:
            return st.lists(shapes(shape.of, depth - 1), max_size=3) | shapes(shape.of, depth - 1)
        case MapOf() if depth:
            return st.dictionaries(st.sampled_from(["a", "b_c", "ref"]), shapes(shape.of, depth - 1), max_size=2)
        case _:
            return odd_values


def spellings(name: str) -> st.SearchStrategy[str]:
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    assert camel(snake) == name
    return st.sampled_from([name, snake])


@given(body=shapes(TOP_LEVEL, 6), model=st.sampled_from([{}, {"model": "house-model"}]))
def test_whatever_comes_is_read_or_refused_and_what_leaves_reads_the_same(body: Any, model: dict[str, str]) -> None:
    try:
        request = DIALECT.read(parsed(body), {}, "", model)
    except (RequestInvalid, CostBoundUnknown):
        return
    again = DIALECT.read(sent(request, request.facts.output_cap), {}, "", model)

    assert again.facts == request.facts
    assert again.body.get("contents") == request.body.get("contents")


@given(
    text=st.text(max_size=40), cap=st.integers(1, 2**40), name=st.sampled_from(["maxOutputTokens", "max_output_tokens"])
)
def test_the_cap_that_leaves_is_the_one_that_was_bounded(text: str, cap: int, name: str) -> None:
    request = read(**said({"text": text}), generationConfig={name: cap})

    assert request.facts.output_cap == cap
    assert sent(request, cap)["generationConfig"] == {"maxOutputTokens": cap}
    assert request.facts.text_bytes >= len(text.encode())
