"""The adversary's reading of OpenAI's bodies. Imports nothing of ``spendgate``; see ``reading.py``."""

from __future__ import annotations

from typing import Any

from tests.fuzz.reading import (
    COMPLETIONS_CAP,
    PART,
    SEARCH_TOKENS,
    SEARCH_TOKENS_UNSEEN,
    Json,
    Reading,
    called,
    printed,
    with_schema,
)

_LONG = "12h"


def chat(body: dict[str, Any], model: str) -> Reading:
    read = Reading(writes=True)
    for message in body["messages"]:
        _message(read, message, model)
    for tool in body.get("tools") or []:
        read.tool()
        read.tokens += with_schema(tool, (tool.get("function") or {}).get("parameters"))
    for function in body.get("functions") or []:
        read.tool()
        read.tokens += with_schema(function, function.get("parameters"))
    shape = body.get("response_format") or {}
    if shape:
        read.tooling = read.tooling or shape["type"] != "text"
        read.tokens += with_schema(shape, (shape.get("json_schema") or {}).get("schema"))
    for name in ("tool_choice", "function_call", "web_search_options"):
        if body.get(name) is not None:
            read.tokens += printed(body[name])
    if body.get("web_search_options") is not None:
        read.uses["web_search"], read.unseen = None, SEARCH_TOKENS
    for word in _strings(body.get("stop")):
        read.text(word)
    if body.get("prediction"):
        _content(read, body["prediction"]["content"], model)
    read.long_write = read.long_write or (body.get("prompt_cache_options") or {}).get("ttl") == _LONG
    caps = [body[name] for name in ("max_completion_tokens", "max_tokens") if body.get(name) is not None]
    read.cap = max(caps, default=None)
    read.choices = body.get("n") or 1
    read.tier = body.get("service_tier")
    return read


def completions(body: dict[str, Any], _model: str) -> Reading:
    read = Reading(writes=True)
    prompts = _prompts(read, body["prompt"])
    read.inputs = prompts
    for _ in range(prompts):
        read.text(body.get("suffix"))
    for word in _strings(body.get("stop")):
        read.text(word)
    read.cap = COMPLETIONS_CAP if body.get("max_tokens") is None else body["max_tokens"]
    read.choices = prompts * max(body.get("n") or 1, body.get("best_of") or 1)
    return read


def embeddings(body: dict[str, Any], _model: str) -> Reading:
    read = Reading(has_output=False, cap=0, reads_cache=False)
    read.inputs = _prompts(read, body["input"])
    return read


def responses(body: dict[str, Any], model: str) -> Reading:
    read = Reading(writes=True, model=model, calls=body.get("max_tool_calls"))
    if isinstance(body["input"], str):
        read.text(body["input"])
        read.part()
    else:
        for item in body["input"]:
            _item(read, item, model)
    if body.get("instructions") is not None:
        read.text(body["instructions"])
        read.part()
    for tool in body.get("tools") or []:
        _tool(read, tool, model)
    for name in ("previous_response_id", "conversation"):
        if body.get(name) is not None:
            read.held += 1
            read.whole(model)
    shape = (body.get("text") or {}).get("format") or {}
    if shape:
        read.tooling = read.tooling or shape["type"] != "text"
        read.tokens += with_schema(shape, shape.get("schema"))
    if body.get("tool_choice") is not None:
        read.tokens += printed(body["tool_choice"])
    read.long_write = read.long_write or (body.get("prompt_cache_options") or {}).get("ttl") == _LONG
    read.cap = body.get("max_output_tokens")
    read.tier = body.get("service_tier")
    return read


def _message(read: Reading, message: dict[str, Any], model: str) -> None:
    read.part()
    _content(read, message.get("content"), model)
    for name in ("name", "tool_call_id", "refusal", "reasoning_content"):
        read.text(message.get(name))
    for call in message.get("tool_calls") or []:
        read.part()
        inner = ("function", "arguments") if "function" in call else ("custom", "input")
        read.tokens += called(call, *inner)
    if message.get("function_call"):
        read.tokens += called(message["function_call"], "arguments")
    if message.get("annotations"):
        read.tokens += printed(message["annotations"])


def _content(read: Reading, content: Json, model: str) -> None:
    if isinstance(content, str):
        read.text(content)
        return
    for part in content or []:
        read.part()
        match part["type"]:
            case "image_url":
                read.image(model, part["image_url"].get("detail"))
            case "input_image":
                read.image(model, part.get("detail"))
            case "input_audio":
                read.fills_context = read.sound = True
            case "file" | "input_file":
                read.whole(model)
                read.text((part.get("file") or part).get("filename"))
            case "refusal":
                read.text(part["refusal"])
            case _:
                read.text(part["text"])
        read.long_write = read.long_write or (part.get("prompt_cache_breakpoint") or {}).get("ttl") == _LONG


def _item(read: Reading, item: dict[str, Any], model: str) -> None:  # noqa: C901 - one flat list of what there is
    read.part()
    match item.get("type", "message" if "role" in item else "item_reference"):
        case "item_reference":
            # [12] nobody says what is held there.
            read.held += 1
            read.whole(model)
        case "web_search_call" | "file_search_call":
            # What was found then may be read again from wherever it is kept.
            read.whole(model)
        case "computer_call_output":
            read.image(model, "original")
        case "computer_call" | "tool_search_call":
            read.tokens += printed(item)
        case "additional_tools" | "tool_search_output":
            for tool in item["tools"]:
                _tool(read, tool, model)
        case "message":
            _content(read, item["content"], model)
        case "function_call":
            read.tokens += called(item, "arguments")
        case "custom_tool_call":
            read.tokens += called(item, "input")
        case "reasoning":
            shown = [part["text"] for name in ("summary", "content") for part in item.get(name) or []]
            for text in (*shown, item.get("encrypted_content")):
                read.text(text)
            read.tokens += PART * len(shown)
            read.hidden_blocks += not any(shown)
        case _:
            _content(read, item["output"], model)
            read.text(item.get("call_id"))


def _tool(read: Reading, tool: dict[str, Any], model: str) -> None:
    """[3, 12] a tool of the caller's own, a number of them under one name, or one that runs at the server."""
    read.tool()
    read.tokens += with_schema(tool, tool.get("parameters"))
    for inner in tool.get("tools") or []:
        read.tool()
        read.tokens += with_schema(inner, inner.get("parameters")) - printed(inner)
    if tool["type"].startswith("web_search"):
        read.uses["web_search"], read.counts_calls = None, True
        read.unseen = SEARCH_TOKENS if model in SEARCH_TOKENS_UNSEEN else 0
        if "image" in (tool.get("search_content_types") or []):
            read.fees_each = 2
            read.whole(model)
    if tool["type"] == "file_search":
        read.uses["file_search"], read.counts_calls = None, True


def _prompts(read: Reading, given: Json) -> int:
    """[4] one text, one list of token ids, or a list of either; each is read in a context of its own."""
    if isinstance(given, str) or isinstance(given[0], int):
        given = [given]
    for prompt in given:
        read.part()
        read.tokens += len(prompt) if isinstance(prompt, list) else 0
        read.text(prompt if isinstance(prompt, str) else "")
    return len(given)


def _strings(words: Json) -> list[str]:
    return [words] if isinstance(words, str) else list(words or [])
