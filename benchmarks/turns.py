"""Turns of agents as they are on the wire, made of real prose and code: this repository's own.

One seed decides them all. A turn is a system text, tools with schemas, a history of tool calls and their results (code,
JSON, prose), and the next question; its size, its output cap and the length of its answer are drawn from the ranges
that agents of such a kind show. ``answer_tokens`` is what the model then puts out: a tool call or a few paragraphs,
far below any cap, which is what makes a reservation large.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
SEED: Final = 20261130


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn, before it is put into a protocol's words. ``calls`` are (tool, arguments, result)."""

    system: str
    tools: tuple[tuple[str, str, Mapping[str, Any]], ...]
    calls: tuple[tuple[str, Mapping[str, Any], str], ...]
    question: str
    output_cap: int | None
    answer_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Profile:
    system: tuple[int, int]
    tools: tuple[int, int]
    calls: tuple[int, int]
    result: tuple[int, int]
    caps: tuple[int | None, ...]
    answer: tuple[int, int]


# (characters of the system text, tools, past tool calls, characters of a result, output caps, tokens of the answer).
# The caps are defaults that programs send: none, 1024, 4096, 8192, and 32000 of a coding agent.
_PROFILES: Final = {
    "assistant": _Profile(
        system=(400, 2500), tools=(0, 6), calls=(0, 3), result=(200, 3000), caps=(None, 1024, 4096), answer=(80, 500)
    ),
    "researcher": _Profile(
        system=(1500, 5000),
        tools=(3, 12),
        calls=(2, 12),
        result=(1000, 9000),
        caps=(None, 4096, 8192),
        answer=(60, 900),
    ),
    "coder": _Profile(
        system=(8000, 24000), tools=(10, 24), calls=(4, 30), result=(500, 12000), caps=(8192, 32000), answer=(60, 1200)
    ),
}


def turns(count: int, *, seed: int = SEED) -> tuple[Turn, ...]:
    """Return so many turns, a third of each profile."""
    chance = random.Random(seed)  # noqa: S311 - a corpus, not a secret
    prose, code = _texts("docs/*.md"), _texts("layers/core/spendgate/*.py")
    profiles = list(_PROFILES.values())
    return tuple(_turn(chance, profiles[number % len(profiles)], prose, code) for number in range(count))


def _turn(chance: random.Random, profile: _Profile, prose: str, code: str) -> Turn:
    tools = tuple(_tool(chance, number, prose) for number in range(chance.randint(*profile.tools)))
    calls = tuple(_calls(chance, profile, tools, prose, code)) if tools else ()
    return Turn(
        system=_slice(chance, prose, profile.system),
        tools=tools,
        calls=calls,
        question=_slice(chance, prose, (40, 600)),
        output_cap=chance.choice(profile.caps),
        answer_tokens=chance.randint(*profile.answer),
    )


def _tool(chance: random.Random, number: int, prose: str) -> tuple[str, str, Mapping[str, Any]]:
    kinds = ("string", "integer", "boolean")
    properties = {
        f"argument_{place}": {"type": chance.choice(kinds), "description": _slice(chance, prose, (20, 160))}
        for place in range(chance.randint(1, 5))
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return f"tool_{number}", _slice(chance, prose, (60, 900)), schema


def _calls(
    chance: random.Random,
    profile: _Profile,
    tools: tuple[tuple[str, str, Mapping[str, Any]], ...],
    prose: str,
    code: str,
) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    results: tuple[Callable[[int], str], ...] = (
        lambda size: _slice(chance, prose, (size, size)),
        lambda size: _slice(chance, code, (size, size)),
        lambda size: _records(chance, prose, size),
    )
    for _ in range(chance.randint(*profile.calls)):
        name, _description, schema = chance.choice(tools)
        arguments = {key: _slice(chance, prose, (10, 120)) for key in schema["required"]}
        yield name, arguments, chance.choice(results)(chance.randint(*profile.result))


def _records(chance: random.Random, prose: str, size: int) -> str:
    found = [
        {"id": chance.randrange(10**9), "title": _slice(chance, prose, (20, 80)), "score": round(chance.random(), 4)}
        for _ in range(max(1, size // 110))
    ]
    return json.dumps({"results": found}, indent=chance.choice((None, 2)))


def _slice(chance: random.Random, text: str, size: tuple[int, int]) -> str:
    length = chance.randint(*size)
    start = chance.randrange(max(1, len(text) - length))
    return text[start : start + length]


def _texts(pattern: str) -> str:
    return "\n".join(file.read_text(encoding="utf-8") for file in sorted(ROOT.glob(pattern)))


def chat(turn: Turn, model: str) -> dict[str, Any]:
    """Put a turn into the words of OpenAI's chat completions."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": turn.system}]
    for number, (name, arguments, result) in enumerate(turn.calls):
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": result})
    messages.append({"role": "user", "content": turn.question})
    body: dict[str, Any] = {"model": model, "messages": messages}
    if turn.tools:
        body["tools"] = [
            {"type": "function", "function": {"name": name, "description": text, "parameters": schema}}
            for name, text, schema in turn.tools
        ]
    return body | ({} if turn.output_cap is None else {"max_completion_tokens": turn.output_cap})


def responses(turn: Turn, model: str) -> dict[str, Any]:
    """Put a turn into the words of OpenAI's Responses."""
    items: list[dict[str, Any]] = []
    for number, (name, arguments, result) in enumerate(turn.calls):
        call = {"type": "function_call", "call_id": f"call_{number}", "name": name, "arguments": json.dumps(arguments)}
        items += [call, {"type": "function_call_output", "call_id": f"call_{number}", "output": result}]
    items.append({"role": "user", "content": turn.question})
    body: dict[str, Any] = {"model": model, "instructions": turn.system, "input": items}
    if turn.tools:
        body["tools"] = [
            {"type": "function", "name": name, "description": text, "parameters": schema, "strict": False}
            for name, text, schema in turn.tools
        ]
    return body | ({} if turn.output_cap is None else {"max_output_tokens": turn.output_cap})


def messages(turn: Turn, model: str) -> dict[str, Any]:
    """Put a turn into the words of Anthropic's messages, with the cache marks that its agents set."""
    said: list[dict[str, Any]] = []
    for number, (name, arguments, result) in enumerate(turn.calls):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
        said.append({"role": "assistant", "content": [use]})
        told = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": result}
        said.append({"role": "user", "content": [told]})
    said.append({"role": "user", "content": turn.question})
    system = [{"type": "text", "text": turn.system, "cache_control": {"type": "ephemeral"}}]
    body: dict[str, Any] = {"model": model, "max_tokens": turn.output_cap or 4096, "system": system, "messages": said}
    if turn.tools:
        body["tools"] = [
            {"name": name, "description": text, "input_schema": schema} for name, text, schema in turn.tools
        ]
    return body


def gemini(turn: Turn, _: str) -> dict[str, Any]:
    """Put a turn into the words of Gemini's generateContent."""
    contents: list[dict[str, Any]] = []
    for name, arguments, result in turn.calls:
        contents.append({"role": "model", "parts": [{"functionCall": {"name": name, "args": arguments}}]})
        answer = {"functionResponse": {"name": name, "response": {"result": result}}}
        contents.append({"role": "user", "parts": [answer]})
    contents.append({"role": "user", "parts": [{"text": turn.question}]})
    body: dict[str, Any] = {"systemInstruction": {"parts": [{"text": turn.system}]}, "contents": contents}
    if turn.tools:
        declared = [{"name": name, "description": text, "parameters": schema} for name, text, schema in turn.tools]
        body["tools"] = [{"functionDeclarations": declared}]
    return body | ({} if turn.output_cap is None else {"generationConfig": {"maxOutputTokens": turn.output_cap}})
