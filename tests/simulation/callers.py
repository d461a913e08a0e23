"""What callers ask for: a request of every dialect, now and then one that nobody should send."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.simulation.wants import SPOKEN, Wants, said, wants_of

# The gateway's dialect, and the routes that speak it.
ROUTES: Final[Mapping[str, tuple[str, ...]]] = {
    "openai": (*("gpt", "router", "bare", "latest", "dear"), *("two",) * 4, *("gpt-rich",) * 3),
    "openai-responses": ("oai", "router", "gpt", "latest", "oai-rich", "oai-rich"),
    "openai-completions": ("gpt",),
    "openai-embeddings": ("gpt",),
    "anthropic": ("claude", "claude", "claude-there", "claude-rich", "claude-rich", "claude-rich"),
    "gemini": ("gemini", "gemini-rich", "gemini-rich"),
    "gemini-stream": ("gemini", "gemini-rich", "gemini-rich"),
    "gemini-embeddings": ("gemini",),
    "gemini-batch-embeddings": ("gemini",),
    "bedrock-converse": ("converse", "converse-rich"),
    "bedrock-converse-stream": ("converse", "converse-rich"),
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
    wants: Wants
    sound: bool = True


def ask_of(random: Random, mark: str, *, dialect: str | None = None) -> Ask:
    """Draw a request, of a dialect or of any, whose text begins with a mark."""
    dialect = dialect or random.choice(_DIALECTS)
    route = random.choice(ROUTES[dialect])
    wanted = random.choice((0, 1, 5, 20, 60, 200, 900))
    wants = wants_of(random, dialect, route)
    text = f"{mark} [[output:{wanted}]] " + "x" * random.choice((0, 10, 60, 400, 1500))
    if wants.tools and random.random() < 0.5:
        # Which the provider takes for a word to call one.
        text += " tool"
    body, query, path = _form(dialect, random, route, text, random.choice(_CAPS), wants)
    headers = {"content-type": "application/json"}
    if dialect == "anthropic":
        headers["anthropic-version"] = "2023-06-01"
    # Whatever a caller says of budgets is nobody's business but its key's.
    headers |= {"x-spendgate-budget": "other", "openai-organization": "other"}
    raw, sound = json.dumps(body).encode(), True
    if random.random() < 0.04:
        raw, sound = _spoilt(random, body, route), False
    return Ask(dialect=dialect, route=route, raw=raw, headers=headers, query=query, path=path, wants=wants, sound=sound)


def _form(
    dialect: str, random: Random, route: str, text: str, cap: int | None, wants: Wants
) -> tuple[dict[str, Any], str, dict[str, str]]:
    if dialect.startswith(_IN_PATH):
        query = "alt=sse" if dialect == "gemini-stream" and random.random() < 0.6 else ""
        return _with_model_in_path(dialect, route, text, cap, wants), query, {"model": route}
    body: dict[str, Any] = {"model": route}
    if dialect in SPOKEN:
        body |= said(dialect, text, wants)
    match dialect:
        case "openai":
            _capped(body, random.choice(("max_tokens", "max_completion_tokens")), cap)
            _streams(body, random)
            if body.get("stream") and random.random() < 0.5:
                body["stream_options"] = {"include_usage": True}
            if random.random() < 0.1:
                body["n"] = 2
        case "openai-responses":
            _capped(body, "max_output_tokens", cap)
            _streams(body, random)
        case "openai-completions":
            body["prompt"] = text
            _capped(body, "max_tokens", cap)
        case "openai-embeddings":
            body["input"] = [text, "y"]
        case _:
            body["max_tokens"] = cap or 128
            _streams(body, random)
    return body, "", {}


def _with_model_in_path(dialect: str, route: str, text: str, cap: int | None, wants: Wants) -> dict[str, Any]:
    match dialect:
        case "gemini-embeddings":
            return {"content": {"parts": [{"text": text}]}}
        case "gemini-batch-embeddings":
            return {"requests": [{"model": f"models/{route}", "content": {"parts": [{"text": text}]}}]}
        case "gemini" | "gemini-stream":
            config = "generationConfig", "maxOutputTokens"
        case _:
            config = "inferenceConfig", "maxTokens"
    body = said(dialect, text, wants)
    return body if cap is None else body | {config[0]: {config[1]: cap}}


def _capped(body: dict[str, Any], name: str, cap: int | None) -> None:
    if cap is not None:
        body[name] = cap


def _streams(body: dict[str, Any], random: Random) -> None:
    if random.random() < 0.5:
        body["stream"] = True


def _spoilt(random: Random, body: dict[str, Any], route: str) -> bytes:
    text = json.dumps(body)
    match random.randrange(4):
        case 0:
            return text[: len(text) // 2].encode()
        case 1:
            return json.dumps(body | {"budget": "other", "max_budget": 10**9}).encode()
        case 2:
            return f'{text[:-1]},"model":"bare","model":"{route}"}}'.encode()
        case _:
            return b"[" * 300 + text.encode()
