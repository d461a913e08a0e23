"""OpenAI's other requests in the form of a chat, so that one rule bills them all: pure."""

from collections.abc import Mapping
from typing import Any, Final

BYTES_A_TOKEN_ID: Final = 4
CAP_OF_COMPLETIONS: Final = 16
_TEXTS_OF_ITEMS: Final = ("name", "arguments", "input", "output", "summary", "encrypted_content", "content")


def as_chat(dialect: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request as a chat that says the same; what cannot be read is left out."""
    match dialect:
        case "openai-responses":
            return _of_response(document)
        case "openai-completions":
            prompts = _prompts(document.get("prompt"), str(document.get("suffix") or ""))
            cap = document.get("max_tokens")
            return {**document, "messages": prompts, "max_tokens": CAP_OF_COMPLETIONS if cap is None else cap}
        case "openai-embeddings":
            return {**document, "messages": _prompts(document.get("input"), "")}
        case _:
            return document


def _of_response(document: Mapping[str, Any]) -> Mapping[str, Any]:
    given = document.get("input")
    text = document.get("text")
    items = given if isinstance(given, list) else [{"role": "user", "content": given}] if given is not None else []
    return {
        **document,
        "messages": [_message(item) for item in items if isinstance(item, Mapping)],
        "system": document.get("instructions"),
        "response_format": text.get("format") if isinstance(text, Mapping) else None,
        "max_tokens": document.get("max_output_tokens"),
    }


def _message(item: Mapping[str, Any]) -> Mapping[str, Any]:
    if "role" in item:
        return {"role": item["role"], "content": item.get("content")}
    is_result = str(item.get("type")).endswith("_output")
    texts = [item[name] for name in _TEXTS_OF_ITEMS if item.get(name) is not None]
    return {"role": "tool" if is_result else "assistant", "content": texts}


def _prompts(given: Any, suffix: str) -> list[Mapping[str, Any]]:
    is_one = isinstance(given, str) or (isinstance(given, list) and bool(given) and isinstance(given[0], int))
    prompts = [given] if is_one else given if isinstance(given, list) else []
    return [{"role": "user", "content": _text(prompt) + suffix} for prompt in prompts]


def _text(prompt: Any) -> str:
    """Return a text that is as long as a prompt counts."""
    if isinstance(prompt, str):
        return prompt
    return " " * BYTES_A_TOKEN_ID * (len(prompt) if isinstance(prompt, list) else 0)
