"""What a request to the demo provider asks for, and how much work that is: pure, by the rule of ``demo_provider``."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spendgate.core.money import Picodollars
from spendgate.local.demo_forms import as_chat

TOKENS_A_MESSAGE: Final = 4
# It searches this often, whenever it may, and bills 14 USD for a thousand.
SEARCHES: Final = 2
SEARCH_FEE: Final = Picodollars(14_000_000_000)
BYTES_A_TOKEN: Final = 4
OUTPUT_TOKENS_A_MESSAGE: Final = 12
OUTPUT_TOKENS_MAX: Final = 1_000_000
CHOICES_MAX: Final = 128
# The text of an answer stays small, however much is billed for it.
WORDS_MAX: Final = 4096

_WORDS: Final = ("The", "demo", "provider", "says", "what", "it", "is", "told", "and", "bills", "what", "it", "says.")
_OUTPUT: Final = re.compile(r"\[\[output:([0-9]{1,7})\]\]")
_BEHAVIOUR: Final = re.compile(r"\[\[behaviour:([a-z_]{1,40})\]\]")
_TOOL: Final = re.compile(r"\btool\b", re.IGNORECASE)
_NOT_TEXT: Final = frozenset({"role", "type", "id", "tool_call_id", "tool_use_id"})
_EXAMPLES: Final[Mapping[str, Any]] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}


class RequestUnreadable(ValueError):
    """The demo provider cannot read a request; it answers 400."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One request's work. ``output_tokens`` are of all choices."""

    model: str
    stream: bool
    usage_asked: bool
    choices: int
    output_cap: int | None
    input_tokens: int
    output_tokens: int
    capped: bool
    words: tuple[str, ...]
    tool: tuple[str, str] | None
    behaviour: str
    field_names: tuple[str, ...]
    # Of embeddings only: whether the numbers are asked for as base64.
    base64: bool = False
    # Of Gemini and Responses only: how often the web is searched.
    searches: int = 0


def work_of(dialect: str, body: bytes) -> Work:
    """Read a request of a dialect, by its name; RequestUnreadable says what is wrong with it."""
    given = _document(body)
    document = as_chat(dialect, given)
    messages = _messages(document)
    choices = _choices(dialect, document)
    cap = _output_cap(dialect, document)
    count = len(messages) + (document.get("system") is not None)
    prompt = _last_user_text(messages)
    directives = _OUTPUT.findall(prompt)
    wanted = min(int(directives[-1]), OUTPUT_TOKENS_MAX) if directives else OUTPUT_TOKENS_A_MESSAGE * count
    if dialect == "openai-embeddings":
        wanted = 0
    tokens = wanted if cap is None else min(cap, wanted)
    behaviour = _BEHAVIOUR.search(prompt)
    options = document.get("stream_options")
    return Work(
        model=document["model"],
        stream=document.get("stream") is True,
        usage_asked=isinstance(options, Mapping) and options.get("include_usage") is True,
        choices=choices,
        output_cap=cap,
        input_tokens=TOKENS_A_MESSAGE * count + -(-_counted_bytes(document) // BYTES_A_TOKEN),
        output_tokens=tokens * choices,
        capped=tokens < wanted,
        words=tuple(_WORDS[index % len(_WORDS)] for index in range(min(tokens, WORDS_MAX))),
        tool=_tool_call(document, prompt),
        behaviour=behaviour.group(1) if behaviour else "ok",
        field_names=tuple(sorted(given)),
        base64=document.get("encoding_format") == "base64",
    )


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as cause:
        raise RequestUnreadable("the body is not JSON") from cause
    if not isinstance(document, dict) or not isinstance(document.get("model"), str):
        raise RequestUnreadable("model: must be a string")
    return document


def _messages(document: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    messages = document.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise RequestUnreadable("there must be at least one message, item, prompt or input")
    return messages


def _choices(dialect: str, document: Mapping[str, Any]) -> int:
    """Return how many answers are made; of completions all are shown, those that only ``best_of`` asks for too."""
    if dialect == "openai-embeddings":
        return len(document["messages"])
    if dialect not in {"openai", "openai-completions"}:
        return 1
    asked = [_whole_number(document, name, least=1, most=CHOICES_MAX) or 1 for name in ("n", "best_of")]
    return asked[0] if dialect == "openai" else max(asked) * len(document["messages"])


def _output_cap(dialect: str, document: Mapping[str, Any]) -> int | None:
    names = ("max_completion_tokens", "max_tokens") if dialect == "openai" else ("max_tokens",)
    caps = [cap for name in names if (cap := _whole_number(document, name, least=0, most=2**53)) is not None]
    return min(caps, default=None)


def _whole_number(document: Mapping[str, Any], name: str, *, least: int, most: int) -> int | None:
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise RequestUnreadable(f"{name}: must be a whole number from {least} to {most}")
    return value


def _counted_bytes(document: Mapping[str, Any]) -> int:
    texts = _text_bytes(document["messages"]) + _text_bytes(document.get("system"))
    printed = [document[name] for name in ("tools", "response_format") if document.get(name) is not None]
    return texts + sum(len(_printed(value)) for value in printed)


def _text_bytes(value: object) -> int:
    """Count the bytes of all texts within a JSON value."""
    if isinstance(value, str):
        return len(value.encode(errors="surrogatepass"))
    if isinstance(value, Mapping):
        return sum(_text_bytes(inner) for name, inner in value.items() if name not in _NOT_TEXT)
    if isinstance(value, Sequence):
        return sum(_text_bytes(inner) for inner in value)
    return 0


def _printed(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass")


def _last_user_text(messages: Sequence[Mapping[str, Any]]) -> str:
    for message in reversed(messages):
        if message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                return content
            parts = content if isinstance(content, list) else []
            return "\n".join(str(part["text"]) for part in parts if isinstance(part, Mapping) and "text" in part)
    return ""


def _tool_call(document: Mapping[str, Any], prompt: str) -> tuple[str, str] | None:
    """Return the name and the arguments of the call that answers, if one does."""
    tools = document.get("tools")
    if (
        not isinstance(tools, list)
        or not tools
        or not _TOOL.search(prompt)
        or _is_tool_result(document["messages"][-1])
    ):
        return None
    first = tools[0] if isinstance(tools[0], Mapping) else {}
    # OpenAI nests a function's name and schema, Anthropic does not.
    function = first.get("function", first)
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise RequestUnreadable("tools: the first has no name")
    schema = function.get("parameters", function.get("input_schema"))
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    arguments = {name: _example(rule) for name, rule in properties.items()} if isinstance(properties, Mapping) else {}
    return function["name"], json.dumps(arguments)


def _is_tool_result(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return message.get("role") == "tool" or any(
        isinstance(part, Mapping) and part.get("type") == "tool_result" for part in parts
    )


def _example(rule: object) -> Any:
    kind = rule.get("type") if isinstance(rule, Mapping) else None
    return _EXAMPLES.get(kind.lower(), "demo") if isinstance(kind, str) else "demo"
