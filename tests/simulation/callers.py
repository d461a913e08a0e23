"""What callers ask for: a request of every dialect, now and then one that nobody should send."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

# The gateway's dialect, and the routes that speak it.
ROUTES: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": ("gpt", "two", "router", "two", "bare"),
    "openai-responses": ("oai", "router", "gpt"),
    "openai-completions": ("gpt",),
    "openai-embeddings": ("gpt",),
    "anthropic": ("claude", "claude", "claude-there"),
    "gemini": ("gemini",),
    "gemini-stream": ("gemini",),
    "gemini-embeddings": ("gemini",),
    "gemini-batch-embeddings": ("gemini",),
    "bedrock-converse": ("converse",),
    "bedrock-converse-stream": ("converse",),
}
_DIALECTS: Final = (
    *ROUTES,
    "openai",
    "openai",
    "openai",
    "anthropic",
    "anthropic",
    "openai-responses",
    "gemini-stream",
)
_IN_PATH: Final = ("gemini", "bedrock")
_CAPS: Final = (1, 16, 64, 64, 256, 256, 1024, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request as it comes to the gateway; ``sound`` tells that there is nothing wrong with it."""

    dialect: str
    route: str
    raw: bytes
    headers: Mapping[str, str]
    query: str
    path: Mapping[str, str]
    sound: bool = True


def ask_of(random: Random, mark: str) -> Ask:
    """Draw a request whose text begins with a mark, by which the provider knows the call."""
    dialect = random.choice(_DIALECTS)
    route = random.choice(ROUTES[dialect])
    wanted = random.choice((0, 1, 5, 20, 60, 200, 900))
    text = f"{mark} [[output:{wanted}]] " + "x" * random.choice((0, 10, 60, 400, 1500))
    body, query, path = _form(dialect, random, route, text, random.choice(_CAPS))
    headers = {"content-type": "application/json"}
    if dialect == "anthropic":
        headers["anthropic-version"] = "2023-06-01"
    # Whatever a caller says of budgets is nobody's business but its key's.
    headers |= {"x-spendgate-budget": "other", "openai-organization": "other"}
    raw, sound = json.dumps(body).encode(), True
    if random.random() < 0.04:
        raw, sound = _spoilt(random, body), False
    return Ask(dialect=dialect, route=route, raw=raw, headers=headers, query=query, path=path, sound=sound)


def _form(
    dialect: str, random: Random, route: str, text: str, cap: int | None
) -> tuple[dict[str, Any], str, dict[str, str]]:
    if dialect.startswith(_IN_PATH):
        query = "alt=sse" if dialect == "gemini-stream" and random.random() < 0.6 else ""
        return _with_model_in_path(dialect, route, text, cap), query, {"model": route}
    body: dict[str, Any] = {"model": route}
    match dialect:
        case "openai":
            body["messages"] = [{"role": "user", "content": text}]
            _capped(body, random.choice(("max_tokens", "max_completion_tokens")), cap)
            _streams(body, random)
            if body.get("stream") and random.random() < 0.5:
                body["stream_options"] = {"include_usage": True}
            if random.random() < 0.1:
                body["n"] = 2
        case "openai-responses":
            body["input"] = text
            _capped(body, "max_output_tokens", cap)
            _streams(body, random)
        case "openai-completions":
            body["prompt"] = text
            _capped(body, "max_tokens", cap)
        case "openai-embeddings":
            body["input"] = [text, "y"]
        case _:
            body |= {"max_tokens": cap or 128, "messages": [{"role": "user", "content": text}]}
            _streams(body, random)
    return body, "", {}


def _with_model_in_path(dialect: str, route: str, text: str, cap: int | None) -> dict[str, Any]:
    parts = [{"text": text}]
    match dialect:
        case "gemini-embeddings":
            return {"content": {"parts": parts}}
        case "gemini-batch-embeddings":
            return {"requests": [{"model": f"models/{route}", "content": {"parts": parts}}]}
        case "gemini" | "gemini-stream":
            body: dict[str, Any] = {"contents": [{"role": "user", "parts": parts}]}
            return body if cap is None else body | {"generationConfig": {"maxOutputTokens": cap}}
        case _:
            body = {"messages": [{"role": "user", "content": parts}]}
            return body if cap is None else body | {"inferenceConfig": {"maxTokens": cap}}


def _capped(body: dict[str, Any], name: str, cap: int | None) -> None:
    if cap is not None:
        body[name] = cap


def _streams(body: dict[str, Any], random: Random) -> None:
    if random.random() < 0.5:
        body["stream"] = True


def _spoilt(random: Random, body: dict[str, Any]) -> bytes:
    text = json.dumps(body)
    match random.randrange(4):
        case 0:
            return text[: len(text) // 2].encode()
        case 1:
            return json.dumps(body | {"budget": "other", "max_budget": 10**9}).encode()
        case 2:
            return text[:-1].encode() + b',"model":"gpt","model":"bare"}'
        case _:
            return b"[" * 300 + text.encode()
