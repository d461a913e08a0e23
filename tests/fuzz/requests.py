"""Wire bodies of every dialect, drawn from a seed: as a client would send them, and as nobody but a fuzzer would."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from tests.fuzz import values
from tests.fuzz.reading import AT_BEDROCK, IMAGES

Body = dict[str, Any]

OPENAI_MODELS: Final = tuple(name for name in IMAGES if name.startswith(("gpt", "o")))
CLAUDE_MODELS: Final = tuple(name for name in IMAGES if name.startswith("claude"))
_BEDROCK_MODELS: Final = tuple(AT_BEDROCK)
IMAGE: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as it comes in, and the model that it is sent to."""

    dialect: str
    model: str
    body: Body
    query: str = ""
    path: dict[str, str] = field(default_factory=dict)
    streams: bool = False
    # The kinds of provider that it is sent to, where not any of the family.
    kinds: tuple[str, ...] = ()
    # What of it nobody can bound: it has to be refused by this name.
    refused: str | None = None


def chat(random: Random) -> Ask:
    model = random.choice(OPENAI_MODELS)
    # Of a whole document nobody says what it costs where images are billed beside the context.
    whole = random.random() < 0.05 and model != "gpt-4o-mini"
    messages = [_chat_message(random, whole=whole) for _ in range(random.randrange(1, 5))]
    body: Body = {"model": model, "messages": messages}
    cap(random, body, "max_tokens", "max_completion_tokens")
    if random.random() < 0.3:
        body["n"] = random.choice((1, 2, 3, 128))
    if random.random() < 0.4:
        body["tools"] = [_chat_tool(random) for _ in range(random.randrange(1, 4))]
    if random.random() < 0.1:
        body["functions"] = [function(random)]
    if random.random() < 0.2:
        shape = {"name": values.name(random), "schema": values.schema(random)}
        kind = random.choice(("text", "json_object", "json_schema"))
        body["response_format"] = {"type": kind} | ({"json_schema": shape} if kind == "json_schema" else {})
    if random.random() < 0.1:
        body["tool_choice"] = random.choice(("auto", "required", {"type": "function", "function": {"name": "x"}}))
    if random.random() < 0.1:
        body["stop"] = random.choice((values.text(random), [values.text(random), "stop"]))
    if random.random() < 0.05:
        body["prediction"] = {"type": "content", "content": values.text(random)}
    if random.random() < 0.04:
        body["web_search_options"] = {"search_context_size": "high"}
    if random.random() < 0.2:
        body["prompt_cache_options"] = {"mode": "explicit", "ttl": random.choice(("30m", "12h"))}
    return openai(random, "openai", model, body)


def completions(random: Random) -> Ask:
    model = random.choice(OPENAI_MODELS)
    body: Body = {"model": model, "prompt": _prompt(random)}
    cap(random, body, "max_tokens")
    for name in ("n", "best_of"):
        if random.random() < 0.3:
            body[name] = random.choice((1, 2, 7))
    if random.random() < 0.2:
        body["suffix"] = values.text(random)
    if random.random() < 0.1:
        body["stop"] = [values.text(random)]
    return openai(random, "openai-completions", model, body, tiers=False)


def embeddings(random: Random) -> Ask:
    model = random.choice(OPENAI_MODELS)
    return Ask("openai-embeddings", model, {"model": model, "input": _prompt(random)})


def responses(random: Random) -> Ask:
    model = random.choice(OPENAI_MODELS)
    items = [response_item(random) for _ in range(random.randrange(1, 5))]
    body: Body = {"model": model, "input": items if random.random() < 0.85 else values.text(random)}
    cap(random, body, "max_output_tokens")
    if random.random() < 0.4:
        body["instructions"] = values.text(random)
    if random.random() < 0.4:
        body["tools"] = [{"type": "function", **function(random)} for _ in range(random.randrange(1, 4))]
    if random.random() < 0.2:
        shape = {"type": "json_schema", "name": "x", "schema": values.schema(random)}
        body["text"] = {"format": random.choice((shape, {"type": "text"}, {"type": "json_object"}))}
    if random.random() < 0.2:
        body["prompt_cache_options"] = {"mode": "implicit", "ttl": random.choice(("30m", "12h"))}
    return openai(random, "openai-responses", model, body)


def messages(random: Random) -> Ask:
    model = random.choice(CLAUDE_MODELS)
    body: Body = {
        "model": model,
        "max_tokens": random.choice((0, 1, 40, 4096, random.randrange(10_000))),
        "messages": [claude_message(random) for _ in range(random.randrange(1, 5))],
    }
    if random.random() < 0.4:
        body["system"] = random.choice(
            (values.text(random), [cached(random, {"type": "text", "text": values.text(random)})])
        )
    if random.random() < 0.4:
        body["tools"] = [claude_tool(random) for _ in range(random.randrange(1, 4))]
    if random.random() < 0.05:
        body["tools"] = [{"type": "web_search_20250305", "name": "web_search", "max_uses": random.randrange(1, 4)}]
    if random.random() < 0.03:
        body.setdefault("tools", []).append(
            {"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": random.randrange(1, 4)}
        )
    if random.random() < 0.1:
        body["output_config"] = {"format": {"type": "json_schema", "schema": values.schema(random)}}
    if random.random() < 0.1:
        body["stop_sequences"] = [values.text(random)]
    if random.random() < 0.1:
        body["tool_choice"] = {"type": random.choice(("auto", "any"))}
    for name, choices in (
        ("service_tier", ("auto", "standard_only")),
        ("inference_geo", ("us", "global")),
        ("speed", ("fast", "standard")),
    ):
        if random.random() < 0.15:
            body[name] = random.choice(choices)
    return streaming(random, Ask("anthropic", model, cached(random, body, rate=0.1)))


def generate_content(random: Random) -> Ask:
    model = "gemini-3.8-flash"
    body: Body = {"contents": [gemini_content(random) for _ in range(random.randrange(1, 5))]}
    config: Body = {}
    if random.random() < 0.7:
        config["maxOutputTokens"] = random.choice((1, 40, 4096, random.randrange(1, 10_000)))
    if random.random() < 0.3:
        config["candidateCount"] = random.choice((1, 2, 8))
    if random.random() < 0.2:
        config |= {"responseMimeType": "application/json", "responseJsonSchema": values.schema(random)}
    if random.random() < 0.1:
        config["stopSequences"] = [values.text(random)]
    if config:
        body[random.choice(("generationConfig", "generation_config"))] = config
    if random.random() < 0.3:
        body["systemInstruction"] = {"parts": [{"text": values.text(random)}]}
    if random.random() < 0.4:
        functions = [
            {
                "name": values.name(random),
                "description": values.text(random),
                "parametersJsonSchema": values.schema(random),
            }
            for _ in range(random.randrange(1, 3))
        ]
        body["tools"] = [{"functionDeclarations": functions}]
    if random.random() < 0.2:
        body["serviceTier"] = random.choice(("standard", "priority", "flex"))
    streams = random.random() < 0.5
    query = random.choice(("", "alt=sse")) if streams else ""
    return Ask("gemini-stream" if streams else "gemini", model, body, query, {"model": model}, streams)


def converse(random: Random) -> Ask:
    model = random.choice(_BEDROCK_MODELS)
    body: Body = {"messages": [_converse_message(random) for _ in range(random.randrange(1, 5))]}
    config: Body = {}
    if random.random() < 0.7:
        config["maxTokens"] = random.choice((1, 40, 4096, random.randrange(1, 10_000)))
    if random.random() < 0.1:
        config["stopSequences"] = [values.text(random)]
    if config:
        body["inferenceConfig"] = config
    if random.random() < 0.4:
        body["system"] = [{"text": values.text(random)}, *_cache_points(random, 0.2)]
    if random.random() < 0.4:
        tools: list[Body] = [{"toolSpec": _tool_spec(random)} for _ in range(random.randrange(1, 4))]
        body["toolConfig"] = {"tools": [*tools, *_cache_points(random, 0.1)]}
        if random.random() < 0.2:
            body["toolConfig"]["toolChoice"] = random.choice(({"auto": {}}, {"any": {}}, {"tool": {"name": "x"}}))
    if random.random() < 0.2:
        body["serviceTier"] = {"type": random.choice(("default", "priority", "flex"))}
    streams = random.random() < 0.5
    dialect = "bedrock-converse-stream" if streams else "bedrock-converse"
    return Ask(dialect, model, body, "", {"model": model}, streams)


def openai(random: Random, dialect: str, model: str, body: Body, *, tiers: bool = True) -> Ask:
    if tiers and random.random() < 0.2:
        body["service_tier"] = random.choice(("auto", "default", "flex", "priority", "fast"))
    return streaming(random, Ask(dialect, model, body))


def streaming(random: Random, ask: Ask) -> Ask:
    streams = random.random() < 0.4
    if streams:
        ask.body["stream"] = True
    return replace(ask, streams=streams)


def cap(random: Random, body: Body, *names: str) -> None:
    for name in names:
        if random.random() < 0.5:
            body[name] = random.choice((1, 40, 4096, random.randrange(1, 10_000), None))


def _prompt(random: Random) -> Any:
    kind = random.randrange(4)
    if kind == 0:
        return values.text(random)
    if kind == 1:
        return [values.text(random) for _ in range(random.randrange(1, 5))]
    if kind == 2:
        return [random.randrange(200_000) for _ in range(random.randrange(1, 40))]
    return [[random.randrange(200_000) for _ in range(random.randrange(1, 20))] for _ in range(random.randrange(1, 5))]


def _chat_message(random: Random, *, whole: bool) -> Body:
    role = random.choice(("system", "user", "user", "assistant", "tool"))
    message: Body = {"role": role, "content": values.text(random)}
    if role == "tool":
        message["tool_call_id"] = values.name(random)
    if role == "assistant":
        if random.random() < 0.6:
            message["tool_calls"] = [_chat_call(random) for _ in range(random.randrange(1, 3))]
            message["content"] = random.choice((None, "", values.text(random)))
        if random.random() < 0.2:
            message["reasoning_content"] = values.text(random)
    elif random.random() < 0.5:
        message["content"] = [_chat_part(random, whole=whole) for _ in range(random.randrange(4))]
    if role == "user" and random.random() < 0.2:
        message["name"] = values.name(random)
    return message


def _chat_part(random: Random, *, whole: bool) -> Body:
    kind = random.random()
    if kind < 0.3:
        url = random.choice((f"data:image/png;base64,{IMAGE}", "https://example.com/a.png"))
        image: Body = {"url": url}
        if random.random() < 0.5:
            image["detail"] = random.choice(("auto", "low", "high", "original"))
        return {"type": "image_url", "image_url": image}
    if whole:
        return random.choice(
            (
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE", "filename": "ﷺ.pdf"}},
                {"type": "file", "file": {"file_id": "file-1"}},
            )
        )
    part: Body = {"type": "text", "text": values.text(random)}
    if random.random() < 0.1:
        part["prompt_cache_breakpoint"] = {"mode": "explicit", "ttl": random.choice(("30m", "12h"))}
    return part


def _chat_call(random: Random) -> Body:
    function = {"name": values.name(random), "arguments": _arguments(random)}
    return {"type": "function", "id": "call_1", "function": function}


def _arguments(random: Random) -> str:
    return random.choice((_dumped(random, values.json_object(random)), values.text(random), "", "{}"))


def _dumped(random: Random, value: Any) -> str:
    return json.dumps(value, ensure_ascii=random.random() < 0.5, separators=random.choice((None, (",", ":"))))


def function(random: Random) -> Body:
    function: Body = {"name": values.name(random), "parameters": values.schema(random)}
    if random.random() < 0.7:
        function["description"] = values.text(random)
    return function


def _chat_tool(random: Random) -> Body:
    if random.random() < 0.1:
        return {"type": "custom", "custom": {"name": values.name(random), "description": values.text(random)}}
    return {"type": "function", "function": function(random)}


def response_item(random: Random) -> Body:
    kind = random.randrange(6)
    if kind == 0:
        return {"type": "function_call", "call_id": "c", "name": values.name(random), "arguments": _arguments(random)}
    if kind == 1:
        return {"type": "function_call_output", "call_id": "c", "output": values.text(random)}
    if kind == 2:
        shown = [{"type": "summary_text", "text": values.text(random)} for _ in range(random.randrange(2))]
        return {"type": "reasoning", "id": "r", "summary": shown, "encrypted_content": "gAAA" * random.randrange(1, 9)}
    role = random.choice(("user", "assistant", "system"))
    if kind == 3:
        return {"role": role, "content": values.text(random)}
    part = "output_text" if role == "assistant" else "input_text"
    content: list[Body] = [{"type": part, "text": values.text(random)} for _ in range(random.randrange(4))]
    if role == "user" and random.random() < 0.3:
        content.append({"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}", "detail": "auto"})
    return {"type": "message", "role": role, "content": content}


def cached(random: Random, holder: Body, *, rate: float = 0.08) -> Body:
    if random.random() < rate:
        holder["cache_control"] = random.choice(
            ({"type": "ephemeral"}, {"type": "ephemeral", "ttl": "5m"}, {"type": "ephemeral", "ttl": "1h"})
        )
    return holder


def claude_message(random: Random) -> Body:
    role = random.choice(("user", "assistant"))
    if random.random() < 0.4:
        return {"role": role, "content": values.text(random)}
    blocks = _ASSISTANT_BLOCKS if role == "assistant" else _USER_BLOCKS
    return {
        "role": role,
        "content": [cached(random, random.choice(blocks)(random)) for _ in range(random.randrange(1, 4))],
    }


def text_block(random: Random) -> Body:
    return {"type": "text", "text": values.text(random)}


def _tool_use(random: Random) -> Body:
    return {"type": "tool_use", "id": "toolu_1", "name": values.name(random), "input": values.json_object(random)}


def _thinking(random: Random) -> Body:
    if random.random() < 0.2:
        return {"type": "redacted_thinking", "data": "AAAA" * random.randrange(9)}
    shown = values.text(random) if random.random() < 0.7 else ""
    return {"type": "thinking", "thinking": shown, "signature": "sig" * random.randrange(9)}


def _image_block(random: Random) -> Body:
    source = random.choice(
        (
            {"type": "base64", "media_type": "image/png", "data": IMAGE},
            {"type": "url", "url": "https://example.com/a.png"},
        )
    )
    return {"type": "image", "source": source}


def _document_block(random: Random) -> Body:
    source = {"type": "text", "media_type": "text/plain", "data": values.text(random)}
    if random.random() < 0.2:
        source = {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}
    block: Body = {"type": "document", "source": source}
    if random.random() < 0.3:
        block |= {"title": values.text(random), "context": values.text(random)}
    if random.random() < 0.1:
        block["citations"] = {"enabled": True}
    return block


def _tool_result(random: Random) -> Body:
    block: Body = {"type": "tool_result", "tool_use_id": "toolu_1"}
    if random.random() < 0.8:
        inner = [random.choice((text_block, _image_block))(random) for _ in range(random.randrange(3))]
        block["content"] = random.choice((values.text(random), inner))
    return block


_ASSISTANT_BLOCKS: Final = (text_block, _tool_use, _thinking)
_USER_BLOCKS: Final = (text_block, text_block, _image_block, _tool_result, _tool_result, _document_block)


def claude_tool(random: Random) -> Body:
    if random.random() < 0.15:
        return random.choice(
            (
                {"type": "bash_20250124", "name": "bash"},
                {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
                {"type": "computer_toolset_20260801"},
            )
        )
    tool: Body = {"name": values.name(random), "input_schema": values.schema(random)}
    if random.random() < 0.7:
        tool["description"] = values.text(random)
    return cached(random, tool)


def gemini_content(random: Random) -> Body:
    role = random.choice(("user", "model"))
    return {"role": role, "parts": [gemini_part(random) for _ in range(random.randrange(1, 4))]}


def gemini_part(random: Random) -> Body:
    kind = random.random()
    if kind < 0.1:
        return {"functionCall": {"name": values.name(random), "args": values.json_object(random)}}
    if kind < 0.2:
        return {"functionResponse": {"name": values.name(random), "response": values.json_object(random)}}
    if kind < 0.3:
        return {"inlineData": {"mimeType": "image/png", "data": IMAGE}}
    if kind < 0.32:
        return {"inline_data": {"mime_type": random.choice(("application/pdf", "audio/wav")), "data": "JVBE"}}
    if kind < 0.33:
        return {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.com/v"}}
    if kind < 0.35:
        inner = random.choice(({"mimeType": "image/png", "data": IMAGE}, {"mimeType": "audio/wav", "data": "AAAA"}))
        called = {"name": values.name(random), "response": values.json_object(random)}
        return {"functionResponse": called | {"parts": [{"inlineData": inner}]}}
    if kind < 0.4:
        return {"text": random.choice(("", values.text(random))), "thoughtSignature": "c2ln" * random.randrange(1, 9)}
    return {"text": values.text(random)}


def _cache_points(random: Random, rate: float) -> list[Body]:
    if random.random() >= rate:
        return []
    return [
        {
            "cachePoint": random.choice(
                ({"type": "default"}, {"type": "default", "ttl": "5m"}, {"type": "default", "ttl": "1h"})
            )
        }
    ]


def _tool_spec(random: Random) -> Body:
    spec: Body = {"name": values.name(random), "inputSchema": {"json": values.schema(random)}}
    if random.random() < 0.7:
        spec["description"] = values.text(random)
    return spec


def _converse_message(random: Random) -> Body:
    role = random.choice(("user", "assistant"))
    blocks = [_converse_block(random, role) for _ in range(random.randrange(1, 4))]
    return {"role": role, "content": [*blocks, *_cache_points(random, 0.1)]}


def _converse_image(_: Random) -> Body:
    return {"image": {"format": "png", "source": {"bytes": IMAGE}}}


def _converse_block(random: Random, role: str) -> Body:
    kind = random.random()
    if role == "assistant":
        if kind < 0.4:
            use = {"toolUseId": "t1", "name": values.name(random), "input": values.json_object(random)}
            return {"toolUse": use}
        if kind < 0.6:
            shown = {"text": random.choice(("", values.text(random))), "signature": "c2ln" * random.randrange(1, 9)}
            return {"reasoningContent": random.choice(({"reasoningText": shown}, {"redactedContent": "AAAA"}))}
        return {"text": values.text(random)}
    if kind < 0.2:
        return _converse_image(random)
    if kind < 0.5:
        inner = [
            random.choice(
                ({"text": values.text(random)}, {"json": values.json_object(random)}, _converse_image(random))
            )
            for _ in range(random.randrange(1, 3))
        ]
        return {"toolResult": {"toolUseId": "t1", "content": inner}}
    if kind < 0.53:
        return {"document": {"format": "pdf", "name": "d", "source": {"bytes": "JVBE"}}}
    return {"text": values.text(random)}
