"""The adversary's reading of Anthropic's and Google's bodies. Imports nothing of ``spendgate``; see ``reading.py``."""

from __future__ import annotations

from typing import Any

from tests.fuzz.reading import AT_BEDROCK, CLAUDE_TOOLS, Json, Reading, printed, with_schema


def messages(body: dict[str, Any], model: str) -> Reading:
    read = Reading(cap=body["max_tokens"])
    _control(read, body)
    _content(read, body.get("system"), model)
    for message in body["messages"]:
        read.part()
        _content(read, message["content"], model)
    for tool in body.get("tools") or []:
        read.tool()
        _control(read, tool)
        read.tokens += with_schema(tool, tool.get("input_schema"))
        kind = tool.get("type") or "custom"
        read.tokens += CLAUDE_TOOLS.get(kind, 0)
        for feature in ("web_search", "web_fetch"):
            if kind.startswith(feature):
                read.uses[feature] = tool["max_uses"]
    for edit in (body.get("context_management") or {}).get("edits") or []:
        if edit["type"].startswith("compact"):
            read.compacts = True
            read.text(edit.get("instructions"))
    shape = (body.get("output_config") or {}).get("format")
    if shape:
        read.tooling = True
        read.tokens += with_schema(shape, shape["schema"])
    if body.get("tool_choice"):
        read.tokens += printed(body["tool_choice"])
    for word in body.get("stop_sequences") or []:
        read.text(word)
    read.tier = body.get("service_tier")
    read.geo, read.speed = body.get("inference_geo"), body.get("speed")
    return read


def generate_content(body: dict[str, Any], model: str) -> Reading:
    read = Reading()
    system = body.get("systemInstruction")
    for content in ([system] if system else []) + body["contents"]:
        read.part()
        for part in content.get("parts", []):
            _part(read, part, model)
    for tool in body.get("tools", []):
        _gemini_tool(read, tool)
    if "cachedContent" in body:
        read.held += 1
        read.whole(sound=True)
    config = body.get("generationConfig", {})
    for name in ("responseSchema", "responseJsonSchema"):
        if name in config:
            read.tooling = True
            read.tokens += with_schema({name: config[name]}, config[name])
    read.tooling = read.tooling or config.get("responseMimeType", "text/plain") != "text/plain"
    if "toolConfig" in body:
        read.tokens += printed(body["toolConfig"])
    for word in config.get("stopSequences", []):
        read.text(word)
    read.cap = config.get("maxOutputTokens")
    read.choices = config.get("candidateCount", 1)
    read.tier = body.get("serviceTier")
    return read


def embed_content(body: dict[str, Any], model: str) -> Reading:
    """[4] one content, or several that are read each in a context of its own; numbers come back, and no tokens."""
    several = body.get("requests") or [body]
    read = Reading(has_output=False, cap=0, reads_cache=False, inputs=len(several))
    for one in several:
        read.part()
        read.text(one.get("title"))
        for part in one["content"].get("parts", []):
            _part(read, part, model)
    return read


def converse(body: dict[str, Any], model: str) -> Reading:
    """[7] Bedrock's Converse: one member names the kind of a block; an absent tier is the default one."""
    read, model = Reading(), AT_BEDROCK[model]
    for block in body.get("system", []):
        _converse_block(read, block, model)
    for message in body["messages"]:
        read.part()
        for block in message["content"]:
            _converse_block(read, block, model)
    tools = body.get("toolConfig", {})
    for tool in tools.get("tools", []):
        if "cachePoint" in tool:
            _point(read, tool["cachePoint"])
            continue
        read.tool()
        read.tokens += with_schema(tool["toolSpec"], tool["toolSpec"]["inputSchema"]["json"])
    if "toolChoice" in tools:
        read.tokens += printed(tools["toolChoice"])
    config = body.get("inferenceConfig", {})
    for word in config.get("stopSequences", []):
        read.text(word)
    read.cap = config.get("maxTokens")
    read.tier = body.get("serviceTier", {}).get("type", "default")
    return read


def _converse_block(read: Reading, block: dict[str, Any], model: str) -> None:
    read.part()
    ((kind, value),) = block.items()
    match kind:
        case "text":
            read.text(value)
        case "json":
            read.tokens += printed(value)
        case "image":
            read.image(model)
        case "toolUse":
            read.text(value["name"])
            read.text(value["toolUseId"])
            read.tokens += printed(value["input"])
        case "toolResult":
            read.text(value["toolUseId"])
            for inner in value["content"]:
                _converse_block(read, inner, model)
        case "reasoningContent":
            shown = value.get("reasoningText", {})
            for said in (*shown.values(), value.get("redactedContent")):
                read.text(said)
            read.hidden_blocks += not shown.get("text")
        case "cachePoint":
            _point(read, value)
        case _:
            read.fills_context = read.pages = True


def _point(read: Reading, point: dict[str, Any]) -> None:
    read.writes = True
    read.long_write = read.long_write or point.get("ttl") == "1h"


def _control(read: Reading, holder: dict[str, Any]) -> None:
    control = holder.get("cache_control")
    if control:
        read.writes = True
        read.long_write = read.long_write or control.get("ttl") == "1h"


def _content(read: Reading, content: Json, model: str) -> None:
    if isinstance(content, str):
        read.text(content)
        return
    for block in content or []:
        read.part()
        _control(read, block)
        _block(read, block, model)


def _block(read: Reading, block: dict[str, Any], model: str) -> None:
    match block["type"]:
        case "text":
            read.text(block["text"])
        case "thinking":
            read.text(block["thinking"])
            read.text(block.get("signature"))
            read.hidden_blocks += not block["thinking"]
        case "redacted_thinking":
            read.text(block["data"])
            read.hidden_blocks += 1
        case "tool_use" | "server_tool_use":
            read.text(block["name"])
            read.text(block["id"])
            read.tokens += printed(block["input"])
            read.text((block.get("caller") or {}).get("tool_id"))
        case "tool_result":
            read.text(block["tool_use_id"])
            _content(read, block.get("content"), model)
        case "image":
            read.image(model)
        case "document":
            read.text(block.get("title"))
            read.text(block.get("context"))
            source = block["source"]
            if source["type"] == "text" and not (block.get("citations") or {}).get("enabled"):
                read.text(source["data"])
            elif source["type"] == "content" and not (block.get("citations") or {}).get("enabled"):
                _content(read, source["content"], model)
            else:
                read.fills_context = read.pages = True
        case _:
            read.fills_context = read.pages = True


def _gemini_tool(read: Reading, tool: dict[str, Any]) -> None:
    for function in tool.get("functionDeclarations", []):
        read.tool()
        read.tokens += with_schema(function, function.get("parametersJsonSchema"))
    for name, feature in (("googleSearch", "web_search"), ("urlContext", "web_fetch")):
        if name in tool:
            read.tool()
            read.tokens += printed(tool[name])
            read.uses[feature] = None
            # Under an address may be pages and images; what is found by searching is text.
            read.pages = read.pages or name == "urlContext"


def _part(read: Reading, part: dict[str, Any], model: str) -> None:
    read.part()
    text, signature = part.get("text"), part.get("thoughtSignature")
    read.text(text)
    read.text(signature)
    if signature and not text and not {"functionCall", "functionResponse", "inlineData", "fileData"} & part.keys():
        read.hidden_blocks += 1
    for kind, inner in (("functionCall", "args"), ("functionResponse", "response")):
        if kind in part:
            read.text(part[kind]["name"])
            read.text(part[kind].get("id"))
            read.tokens += printed(part[kind].get(inner, {}))
    for inside in part.get("functionResponse", {}).get("parts", []):
        _part(read, inside, model)
    if "inlineData" in part:
        kind = part["inlineData"]["mimeType"]
        if kind.startswith("image/"):
            read.image(model)
        else:
            read.fills_context = True
            read.sound, read.pages = read.sound or kind.startswith("audio/"), read.pages or kind == "application/pdf"
    if "fileData" in part:
        read.fills_context = read.sound = read.pages = True
