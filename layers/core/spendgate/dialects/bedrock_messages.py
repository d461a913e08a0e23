"""Claude at Bedrock for callers of Anthropic's Messages: InvokeModel has its body, with a path and a stream of its own.

Source: Claude docs, Claude on Amazon Bedrock (legacy InvokeModel); botocore 1.43.106, InvokeModelWithResponseStream. Read on
2026-11-30. The model stands in the path, versions and betas in the body, and a stream is binary: each ``chunk`` holds one
of the protocol's own events in base64.
"""

from base64 import b64decode
from binascii import Error as Base64Error
from dataclasses import replace
from typing import Final

from spendgate.core.usage import UsageReport
from spendgate.dialects import anthropic_messages, eventstream
from spendgate.dialects.bedrock import JSON, path_of
from spendgate.dialects.dialect import Dialect, Meter, Request
from spendgate.dialects.eventstream import Frame, FrameReader
from spendgate.dialects.json_strict import compact, parse_answer, parse_object

KIND: Final = "bedrock-anthropic"
VERSION: Final = "bedrock-2023-05-31"
SSE: Final = "text/event-stream; charset=utf-8"
# Bedrock takes the model from the path, streams by it, and has a header for its own tiers: this field is not known there.
_ELSEWHERE: Final = ("model", "stream", "service_tier")


def at_bedrock(request: Request) -> bool:
    """Tell whether the provider that a request goes to is Bedrock."""
    return request.kind is not None and request.kind.name == KIND


def spoken_there(dialect: Dialect) -> Dialect:
    """Return Anthropic's dialect, which speaks InvokeModel where the provider is Bedrock."""

    def upstream_path(request: Request, model: str) -> str:
        if not at_bedrock(request):
            return dialect.upstream_path(request, model)
        return path_of(model, "invoke-with-response-stream" if request.facts.stream else "invoke")

    def outgoing(request: Request, model: str, output_cap: int | None) -> bytes:
        body = dialect.outgoing(request, model, output_cap)
        return _invoked(body, request) if at_bedrock(request) else body

    def meter(request: Request) -> Meter:
        inner = dialect.meter(request)
        return ChunkMeter(inner) if at_bedrock(request) else inner

    def is_stream(content_type: str) -> bool:
        return eventstream.CONTENT_TYPE in content_type or dialect.is_stream(content_type)

    return replace(
        dialect,
        upstream_path=upstream_path,
        outgoing=outgoing,
        meter=meter,
        is_stream=is_stream,
        headers=lambda request: _headers(request) if at_bedrock(request) else dialect.headers(request),
        query=lambda request: "" if at_bedrock(request) else dialect.query(request),
        answer_type=lambda told: SSE if eventstream.CONTENT_TYPE in told else told,
    )


class ChunkMeter:
    """The Meter of Anthropic's stream as Bedrock wraps it: the caller gets server-sent events."""

    def __init__(self, inner: Meter) -> None:
        self._inner = inner
        self._reader = FrameReader()
        self._unreadable = False

    def feed(self, data: bytes) -> bytes:
        return self._inner.feed(b"".join(self._event(frame) for frame in self._reader.feed(data)))

    def end(self) -> bytes:
        return self._inner.end()

    def interrupted(self, error: bytes) -> bytes:
        return self._inner.interrupted(error)

    def report(self) -> UsageReport:
        return self._inner.report()

    def _event(self, frame: Frame) -> bytes:
        if frame.readable:
            return _event(frame)
        # What cannot be read comes in pieces as the network cut them: said once, however many these are.
        again, self._unreadable = self._unreadable, True
        return b"" if again else UNREADABLE


def _invoked(body: bytes, request: Request) -> bytes:
    document = {
        name: value for name, value in parse_object(body, bytes_max=len(body)).items() if name not in _ELSEWHERE
    }
    betas = dict(request.headers).get("anthropic-beta")
    if betas:
        document["anthropic_beta"] = betas.split(",")
    return compact({**document, "anthropic_version": VERSION})


def _headers(request: Request) -> tuple[tuple[str, str], ...]:
    return (("accept", eventstream.CONTENT_TYPE if request.facts.stream else JSON),)


def _event(frame: Frame) -> bytes:
    """Return a frame as the event that it holds; what cannot be read becomes one that the meter cannot read either."""
    if frame.is_error:
        told = {"type": "error", "error": {"type": "api_error", "message": f"Bedrock broke off: {frame.kind}"}}
        return _said("error", compact(told))
    if frame.kind != "chunk":
        # Only a chunk is part of the answer.
        return b""
    wrapped = parse_answer(frame.payload)
    inside = wrapped.get("bytes") if isinstance(wrapped, dict) else None
    data = _decoded(inside) if isinstance(inside, str) else b""
    document = parse_answer(data)
    if not isinstance(document, dict) or b"\n" in data or b"\r" in data:
        return UNREADABLE
    kind = document.get("type")
    return _said(kind if isinstance(kind, str) and kind.isidentifier() else "unreadable", data)


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError):
        return b""


def _said(kind: str, data: bytes) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


UNREADABLE: Final = _said("unreadable", b'"unreadable"')
DIALECT: Final = spoken_there(anthropic_messages.DIALECT)
