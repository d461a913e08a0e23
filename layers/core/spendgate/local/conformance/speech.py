"""How callers speak each dialect: where they ask, how they say who they are, and their smallest request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

# Of Gemini the path says whether an answer is a stream, and in which form.
GEMINI_EVENTS: Final = "/v1beta/models/{model}:streamGenerateContent?alt=sse"
GEMINI_ARRAY: Final = "/v1beta/models/{model}:streamGenerateContent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """One dialect. ``body`` is a request of about a tenth of a cent."""

    path: str
    body: Callable[[str], dict[str, Any]]
    key_header: str = "authorization"
    key_scheme: str = "Bearer "
    headers: Mapping[str, str] = field(default_factory=dict)


def _messages(model: str) -> dict[str, Any]:
    return {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}


def _response(model: str) -> dict[str, Any]:
    return {"model": model, "max_output_tokens": 100, "input": "hello"}


def _content(_model: str) -> dict[str, Any]:
    # Its path has the model.
    return {
        "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
        "generationConfig": {"maxOutputTokens": 100},
    }


SPEECH: Final[Mapping[str, Speech]] = {
    "openai": Speech(path="/v1/chat/completions", body=_messages),
    "openai-responses": Speech(path="/v1/responses", body=_response),
    "anthropic": Speech(
        path="/v1/messages",
        body=_messages,
        key_header="x-api-key",
        key_scheme="",
        headers={"anthropic-version": "2023-06-01"},
    ),
    "gemini": Speech(
        path="/v1beta/models/{model}:generateContent", body=_content, key_header="x-goog-api-key", key_scheme=""
    ),
}
