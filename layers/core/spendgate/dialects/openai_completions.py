"""The dialect of OpenAI's completions: bare prompts, each continued by itself."""

from collections.abc import Mapping
from typing import Any, Final

from spendgate.core.request import RequestFacts
from spendgate.dialects import fields, openai_common, openai_prompts, openai_usage
from spendgate.dialects.dialect import NO_PATH, Dialect, Request
from spendgate.dialects.fields import invalid, under
from spendgate.dialects.json_strict import compact
from spendgate.dialects.measure import text_bytes

NAME: Final = "openai-completions"
CAP_FIELD: Final = "max_tokens"
# What OpenAI's own server takes where the request says nothing; others may take more, so it is always sent.
CAP_DEFAULT: Final = 16
CHOICES_MAX: Final = 128

CHECKED: Final = "2026-11-30"
# Source: openai-python 3.57.0 (``types/completion_create_params.py``), read on that day.
_TOP_LEVEL: Final = fields.record(
    {
        "model": fields.name,
        "prompt": fields.anything,
        "suffix": fields.nullable(fields.string),
        "max_tokens": fields.anything,
        "n": fields.anything,
        "best_of": fields.anything,
        "stream": fields.nullable(fields.boolean),
        "stream_options": fields.nullable(
            fields.record({"include_usage": fields.boolean, "include_obfuscation": fields.boolean})
        ),
        "echo": fields.nullable(fields.boolean),
        "logprobs": fields.nullable(fields.integer),
        "logit_bias": fields.nullable(fields.mapping_of(fields.number)),
        "stop": fields.anything,
        "frequency_penalty": fields.nullable(fields.number),
        "presence_penalty": fields.nullable(fields.number),
        "temperature": fields.nullable(fields.number),
        "top_p": fields.nullable(fields.number),
        "seed": fields.nullable(fields.integer),
        "user": fields.nullable(fields.string),
    },
    # Without a prompt the model begins a document of its own; whoever wants that can say so.
    required=("model", "prompt"),
    read_on=CHECKED,
)


def read(
    body: Mapping[str, Any], _headers: Mapping[str, str], query: str, _path: Mapping[str, str] = NO_PATH
) -> Request:
    """Read a request; RequestInvalid or CostBoundUnknown name the field."""
    if query:
        invalid("the query", "empty")
    _TOP_LEVEL(body, "")
    sizes = openai_prompts.sizes(body["prompt"], "prompt")
    cap = body.get(CAP_FIELD)
    facts = RequestFacts(
        dialect=NAME,
        model=body["model"],
        stream=bool(body.get("stream")),
        # The suffix is read again with every prompt.
        text_bytes=sum(sizes) + len(sizes) * text_bytes(body.get("suffix") or "") + _stop_bytes(body.get("stop")),
        parts=len(sizes),
        inputs=len(sizes),
        output_cap=CAP_DEFAULT if cap is None else openai_common.output_cap(cap, CAP_FIELD),
        choices=len(sizes) * _choices(body),
        # As in chat: models from gpt-5.6 on write to the cache without being asked.
        cache_write="short",
    )
    return Request(facts=facts, body=body, wants_usage=openai_common.wants_usage(body))


def outgoing(request: Request, model: str, output_cap: int | None) -> bytes:
    """Return the body to send, always with the cap that was bounded."""
    cap = request.facts.output_cap
    known = [number for number in (cap, output_cap) if number is not None]
    body = dict(request.body) | {"model": model, CAP_FIELD: min(known)}
    openai_common.ask_for_usage(body, request)
    return compact(body)


def _choices(body: Mapping[str, Any]) -> int:
    """Return how many continuations of each prompt are made, of which ``best_of`` shows only some."""
    return max(openai_common.count(body.get(name), name, most=CHOICES_MAX) for name in ("n", "best_of"))


def _stop_bytes(stop: Any) -> int:
    if stop is None:
        return 0
    words = [stop] if isinstance(stop, str) else stop
    if not isinstance(words, list):
        invalid("stop", "a string or an array of strings")
    for index, word in enumerate(words):
        fields.string(word, under("stop", index))
    return sum(text_bytes(word) for word in words)


DIALECT: Final = Dialect(
    name=NAME,
    family="openai",
    upstream_path=lambda _request, _model: "/completions",
    read=read,
    outgoing=outgoing,
    meter=openai_usage.meter,
    report=openai_usage.report,
    refusal=openai_common.refusal,
    stream_error=openai_common.stream_error,
)
