"""Requests that set a server to work or name what it holds: searches, pages, summaries, files, what was stored.

What nobody can bound is drawn too, in a request that is plain otherwise: it has to be refused by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.fuzz import requests, values
from tests.fuzz.requests import CLAUDE_MODELS, IMAGE, OPENAI_MODELS, Ask, Body

# How often what cannot be bounded is drawn.
_REFUSED: Final = 0.08
# More than what is allowed is refused.
_USES: Final = (1, 2, 3, 3, 3, 3, 4)
_EMBEDDERS: Final = ("gemini-embedding-2", "gemini-embedding-001")


def responses_served(random: Random) -> Ask:
    """OpenAI's Responses with its searches, with files, and with what it holds."""
    model = random.choice(OPENAI_MODELS)
    if random.random() < _REFUSED:
        return _unbounded(random, "openai-responses", {"model": model, "input": "a"}, _RESPONSES_REFUSED)
    items = [_served_item(random) for _ in range(random.randrange(1, 4))]
    body: Body = {"model": model, "input": items if random.random() < 0.8 else values.text(random)}
    requests.cap(random, body, "max_output_tokens")
    searches = random.random() < 0.6
    if searches or random.random() < 0.3:
        body["tools"] = _response_tools(random, searches=searches)
        if random.random() < 0.6:
            body["max_tool_calls"] = random.choice(_USES)
    if random.random() < 0.15:
        body["previous_response_id"] = "resp_0"
    elif random.random() < 0.1:
        body["conversation"] = random.choice(("conv_1", {"id": "conv_1"}))
    if random.random() < 0.2:
        body["prompt_cache_options"] = {"mode": "implicit", "ttl": random.choice(("30m", "12h"))}
    # Only OpenAI itself is known to hold the number of calls.
    kinds = ("openai",) if searches and random.random() < 0.9 else ()
    ask = requests.openai(random, "openai-responses", model, body)
    return Ask(ask.dialect, model, body, streams=ask.streams, kinds=kinds)


def messages_served(random: Random) -> Ask:
    """Anthropic's web tools in all of their versions, the edits of a context, and what served answers leave behind."""
    model = random.choice(CLAUDE_MODELS)
    body: Body = {"model": model, "max_tokens": random.choice((0, 1, 40, random.randrange(10_000)))}
    if random.random() < _REFUSED:
        return _unbounded(
            random, "anthropic", body | {"messages": [{"role": "user", "content": "a"}]}, _MESSAGES_REFUSED
        )
    body["messages"] = [_served_message(random) for _ in range(random.randrange(1, 4))]
    tools = [requests.claude_tool(random) for _ in range(random.randrange(2))]
    if random.random() < 0.6:
        tools += [_web_tool(random, kind) for kind in random.choice((("search",), ("fetch",), ("search", "fetch")))]
    if tools:
        body["tools"] = tools
    edits = [edit(random) for edit in (_clears_thinking, _clears_uses, _compacts) if random.random() < 0.3]
    if edits:
        body["context_management"] = {"edits": edits}
    for name, choices in (("service_tier", ("auto", "standard_only")), ("inference_geo", ("us", "global"))):
        if random.random() < 0.15:
            body[name] = random.choice(choices)
    return requests.streaming(random, Ask("anthropic", model, requests.cached(random, body, rate=0.3)))


def generate_content_served(random: Random) -> Ask:
    """Gemini with its searches, with pages that it reads, and with a cache that was filled before."""
    model = "gemini-3.8-flash"
    plain: Body = {"contents": [{"role": "user", "parts": [{"text": "a"}]}]}
    if random.random() < _REFUSED:
        return _unbounded(random, "gemini", plain, _GEMINI_REFUSED, path={"model": model})
    body: Body = {"contents": [requests.gemini_content(random) for _ in range(random.randrange(1, 4))]}
    if random.random() < 0.8:
        body["generationConfig"] = {"maxOutputTokens": random.choice((1, 40, 4096, random.randrange(1, 10_000)))}
    tools: list[Body] = []
    if random.random() < 0.7:
        search: Body = random.choice(
            ({}, {"searchTypes": {"webSearch": {}}}, {"excludeDomains": [values.text(random)]})
        )
        several = random.choice(([{"googleSearch": search}], [{"google_search": search, "url_context": {}}]))
        tools += random.choice((several, [{"urlContext": {}}]))
    if random.random() < 0.2:
        declared = {"name": values.name(random), "parametersJsonSchema": values.schema(random)}
        tools.append({"functionDeclarations": [declared]})
    if tools:
        body["tools"] = tools
    if random.random() < 0.4:
        body[random.choice(("cachedContent", "cached_content"))] = "cachedContents/c1"
    if random.random() < 0.2:
        body["serviceTier"] = random.choice(("standard", "priority", "flex"))
    streams = random.random() < 0.5
    query = random.choice(("", "alt=sse")) if streams else ""
    return Ask("gemini-stream" if streams else "gemini", model, body, query, {"model": model}, streams)


def embed_content(random: Random) -> Ask:
    """Gemini's embeddings, one content or several."""
    model = random.choice(_EMBEDDERS)
    several = random.random() < 0.5
    dialect = "gemini-batch-embeddings" if several else "gemini-embeddings"
    if random.random() < _REFUSED:
        part, name = random.choice(_EMBEDDINGS_REFUSED)
        one: Body = {"content": {"parts": [{"text": "a"}, part]}}
        return Ask(dialect, model, {"requests": [one]} if several else one, path={"model": model}, refused=name)
    media = model == _EMBEDDERS[0]
    entries = [_embedded(random, media=media) for _ in range(random.randrange(1, 4) if several else 1)]
    return Ask(dialect, model, {"requests": entries} if several else entries[0], path={"model": model})


DRAWN: Final[dict[str, Callable[[Random], Ask]]] = {
    "openai": requests.chat,
    "openai-completions": requests.completions,
    "openai-embeddings": requests.embeddings,
    "openai-responses": requests.responses,
    "openai-responses-served": responses_served,
    "anthropic": requests.messages,
    "anthropic-served": messages_served,
    "gemini": requests.generate_content,
    "gemini-served": generate_content_served,
    "gemini-embeddings": embed_content,
    "bedrock-converse": requests.converse,
}


# A change of a plain request, and the name that the refusal has to say.
_Change = tuple[Body, str]


def _unbounded(
    random: Random, dialect: str, plain: Body, changes: tuple[_Change, ...], *, path: dict[str, str] | None = None
) -> Ask:
    change, name = random.choice(changes)
    return Ask(dialect, path["model"] if path else plain["model"], plain | change, path=path or {}, refused=name)


_RESPONSES_REFUSED: Final[tuple[_Change, ...]] = (
    ({"background": True}, "background"),
    ({"context_management": [{"type": "compaction", "compact_threshold": 1000}]}, "context_management"),
    ({"multi_agent": {"enabled": True}}, "multi_agent"),
    ({"prompt": {"id": "pmpt_1"}}, "prompt"),
    ({"reasoning": {"mode": "pro"}}, "reasoning.mode"),
    ({"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}, "code_interpreter"),
    ({"tools": [{"type": "image_generation"}]}, "image_generation"),
    ({"tools": [{"type": "mcp", "server_label": "a", "server_url": "https://example.com"}]}, "mcp"),
    ({"tools": [{"type": "shell"}]}, "shell"),
    ({"tools": [{"type": "tool_search"}]}, "execution"),
    ({"tools": [{"type": "web_search", "return_token_budget": "unlimited"}]}, "return_token_budget"),
    ({"input": [{"type": "mcp_call", "id": "m", "name": "a", "arguments": "{}", "server_label": "a"}]}, "mcp_call"),
    ({"input": [{"type": "code_interpreter_call", "id": "c", "container_id": "c"}]}, "code_interpreter_call"),
    ({"input": [{"type": "reasoning", "id": "rs_1", "summary": []}]}, "reasoning"),
)
_MESSAGES_REFUSED: Final[tuple[_Change, ...]] = (
    ({"container": "c_1"}, "container"),
    ({"fallbacks": [{"model": "claude-opus-5-5"}]}, "fallbacks"),
    ({"mcp_servers": [{"type": "url", "url": "https://example.com", "name": "a"}]}, "mcp_servers"),
    ({"thread": {"id": "t"}}, "thread"),
    ({"tools": [{"type": "code_execution_20260521", "name": "code_execution"}]}, "code_execution_20260521"),
    ({"tools": [{"type": "advisor_20260301", "name": "advisor", "model": "claude-opus-5-5"}]}, "advisor_20260301"),
    ({"tools": [{"type": "mcp_toolset", "mcp_server_name": "a"}]}, "mcp_toolset"),
    ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "does not say how often"),
    ({"tools": [{"type": "web_search_20990101", "name": "web_search", "max_uses": 1}]}, "web_search_20990101"),
    (
        {
            "tools": [
                {
                    "type": "web_search_20250305",
                    "name": "web_search",
                    "max_uses": 1,
                    "allowed_callers": ["code_execution_20250825"],
                }
            ]
        },
        "allowed_callers",
    ),
    ({"tools": [{"name": "a", "input_schema": {}, "defer_loading": True}]}, "defer_loading"),
    ({"context_management": {"edits": [{"type": "compact_20990101"}]}}, "compact_20990101"),
    ({"messages": [{"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]}]}, "container_upload"),
)
_GEMINI_REFUSED: Final[tuple[_Change, ...]] = (
    ({"tools": [{"codeExecution": {}}]}, "codeExecution"),
    ({"tools": [{"googleMaps": {}}]}, "googleMaps"),
    ({"tools": [{"fileSearch": {"fileSearchStoreNames": ["a"]}}]}, "fileSearch"),
    ({"tools": [{"mcpServers": [{"name": "a"}]}]}, "mcpServers"),
    ({"tools": [{"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}]}, "computerUse"),
    ({"tools": [{"googleSearchRetrieval": {}}]}, "googleSearchRetrieval"),
    ({"tools": [{"googleSearch": {"searchTypes": {"imageSearch": {}}}}]}, "imageSearch"),
    ({"tools": [{"googleSearch": {}}], "generationConfig": {"candidateCount": 2}}, "candidateCount"),
    ({"generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}}, "responseModalities"),
    ({"generationConfig": {"speechConfig": {"languageCode": "en"}}}, "speechConfig"),
    ({"store": True}, "store"),
    ({"toolConfig": {"includeServerSideToolInvocations": True}}, "includeServerSideToolInvocations"),
    ({"continuationToken": "t"}, "continuationToken"),
)
_EMBEDDINGS_REFUSED: Final[tuple[_Change, ...]] = (
    ({"inlineData": {"mimeType": "application/pdf", "data": "JVBE"}}, "inlineData"),
    ({"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}, "inlineData"),
    ({"fileData": {"mimeType": "image/png", "fileUri": "https://example.com/a"}}, "fileData"),
)


def _served_item(random: Random) -> Body:
    """An item that names what is not in it, or was made by a tool of the server or of the caller."""
    kind = random.randrange(8)
    if kind < 3:
        parts = [_part_by_reference(random) for _ in range(random.randrange(1, 3))]
        if random.random() < 0.3:
            return {"type": "function_call_output", "call_id": "c", "output": parts}
        return {"role": "user", "content": [{"type": "input_text", "text": values.text(random)}, *parts]}
    if kind == 3:
        return random.choice(({"type": "item_reference", "id": "msg_1"}, {"id": "msg_1"}))
    if kind == 4:
        return random.choice(
            (
                {"type": "web_search_call", "id": "ws", "action": {"type": "search", "query": values.text(random)}},
                {"type": "file_search_call", "id": "fs", "queries": [values.text(random)], "results": []},
            )
        )
    if kind == 5:
        return random.choice(
            (
                {"type": "computer_call", "call_id": "c", "action": {"type": "type", "text": values.text(random)}},
                {
                    "type": "computer_call_output",
                    "call_id": "c",
                    "output": {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{IMAGE}"},
                },
            )
        )
    if kind == 6:
        tools = [{"type": "function", **requests.function(random)} for _ in range(random.randrange(1, 3))]
        return random.choice(
            (
                {"type": "additional_tools", "role": "developer", "tools": tools},
                {"type": "tool_search_output", "execution": "client", "tools": tools},
                {"type": "tool_search_call", "execution": "client", "arguments": values.json_object(random)},
            )
        )
    return requests.response_item(random)


def _part_by_reference(random: Random) -> Body:
    detail: Body = random.choice(({}, {"detail": "low"}, {"detail": "high"}))
    if random.random() < 0.7:
        where = random.choice(({"file_id": "file-1"}, {"image_url": "https://example.com/a.png"}))
        return {"type": "input_image", **where, **random.choice((detail, {"detail": "original"}))}
    where = random.choice(
        (
            {"file_id": "file-1"},
            {"file_url": "https://example.com/a.pdf"},
            {"file_data": "data:application/pdf;base64,JVBE", "filename": values.text(random)},
        )
    )
    return {"type": "input_file", **where, **detail}


def _response_tools(random: Random, *, searches: bool) -> list[Body]:
    tools: list[Body] = []
    if searches:
        search: Body = {"type": random.choice(("web_search", "web_search_2025_08_26", "web_search_preview"))}
        if random.random() < 0.3:
            search["search_context_size"] = random.choice(("low", "medium", "high"))
        if random.random() < 0.2:
            search["search_content_types"] = ["text", "image"]
        files: Body = {"type": "file_search", "vector_store_ids": ["vs_1"]}
        tools += random.choice(([search], [search], [files], [search, files]))
    if not searches or random.random() < 0.3:
        grammar = {"type": "grammar", "syntax": "lark", "definition": values.text(random)}
        tools += [
            {"type": "function", **requests.function(random)},
            random.choice(
                (
                    {"type": "custom", "name": values.name(random), "format": grammar},
                    {
                        "type": "namespace",
                        "name": values.name(random),
                        "tools": [{"type": "function", **requests.function(random)} for _ in range(2)],
                    },
                    {"type": "tool_search", "execution": "client", "parameters": values.schema(random)},
                )
            ),
        ]
    return tools


def _web_tool(random: Random, kind: str) -> Body:
    versions = {
        "search": ("20250305", "20260209", "20260318"),
        "fetch": ("20250910", "20260209", "20260309", "20260318"),
    }
    version = random.choice(versions[kind])
    tool: Body = {"type": f"web_{kind}_{version}", "name": f"web_{kind}", "max_uses": random.choice(_USES)}
    if version.startswith("2026") and random.random() < 0.5:
        # Code of the model's own filters what is found.
        tool["allowed_callers"] = ["direct", "code_execution_20260120"]
    if kind == "fetch" and random.random() < 0.5:
        tool["max_content_tokens"] = 1000
    return requests.cached(random, tool)


def _clears_thinking(_: Random) -> Body:
    return {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}


def _clears_uses(random: Random) -> Body:
    return {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": 1000},
        "keep": {"type": "tool_uses", "value": random.randrange(4)},
        "clear_tool_inputs": random.choice((True, False, ["search"])),
    }


def _compacts(random: Random) -> Body:
    edit: Body = {"type": "compact_20260112"}
    if random.random() < 0.5:
        edit |= {"instructions": values.text(random), "trigger": {"type": "input_tokens", "value": 50_000}}
    return edit


def _served_message(random: Random) -> Body:
    kind = random.random()
    if kind < 0.6:
        return requests.claude_message(random)
    if kind < 0.75:
        return {"role": "user", "content": [requests.cached(random, _held_at_the_server(random))]}
    block = random.choice((_server_use, _server_result, _summary, requests.text_block))(random)
    return {"role": "assistant", "content": [requests.cached(random, block)]}


def _held_at_the_server(random: Random) -> Body:
    source = random.choice(({"type": "file", "file_id": "file_1"}, {"type": "url", "url": "https://example.com/a"}))
    if random.random() < 0.5:
        return {"type": "image", "source": source}
    if random.random() < 0.6:
        parts: list[Body] = [requests.text_block(random), {"type": "image", "source": source}]
        return {"type": "document", "source": {"type": "content", "content": random.choice((parts, "a"))}}
    return {"type": "document", "source": source, "title": values.text(random)}


def _server_use(random: Random) -> Body:
    block: Body = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": random.choice(("web_search", "web_fetch", "code_execution")),
        "input": values.json_object(random),
    }
    if random.random() < 0.4:
        block["caller"] = {"type": "code_execution_20260120", "tool_id": values.text(random)}
    return block


def _server_result(random: Random) -> Body:
    kind = random.choice(("web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result"))
    found: list[Any] = [{"type": "web_search_result", "url": "https://example.com", "encrypted_content": "AAAA"}]
    return {"type": kind, "tool_use_id": "srvtoolu_1", "content": found}


def _summary(random: Random) -> Body:
    return {"type": "compaction", "content": random.choice((None, values.text(random)))}


def _embedded(random: Random, *, media: bool) -> Body:
    parts: list[Body] = [{"text": values.text(random)} for _ in range(random.randrange(1, 3))]
    if media and random.random() < 0.3:
        inner = random.choice(({"mimeType": "image/png", "data": IMAGE}, {"mimeType": "audio/wav", "data": "AAAA"}))
        parts.append(random.choice(({"inlineData": inner}, {"inline_data": inner})))
    one: Body = {"content": {"parts": parts}}
    if random.random() < 0.2:
        one["title"] = values.text(random)
    if random.random() < 0.2:
        one["taskType"] = "RETRIEVAL_DOCUMENT"
    return one
