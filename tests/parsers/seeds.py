"""Where a fuzzer begins: requests and answers that were recorded, and the examples that the documents give."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from spendgate.dialects.registry import DIALECTS
from tests.parsers.targets import ANSWERED, REQUESTED
from tests.recorded.vectors import Vector, vectors

ROOT: Final = Path(__file__).parents[2]
# What was found by a fuzzer once: ``inputs/<target>/<anything>``.
FOUND: Final = Path(__file__).parent / "inputs"
SEED_BYTES_MAX: Final = 64 * 1024
_AGENTS: Final = {
    "/v1/chat/completions": "openai",
    "/v1/responses": "openai-responses",
    "/v1/messages": "anthropic",
    ":streamGenerateContent": "gemini-stream",
}
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@cache
def seeds() -> Mapping[str, tuple[bytes, ...]]:
    """Return the first inputs of every target."""
    recorded = vectors()
    requests = [*_requests(recorded), *_agents()]
    found = {
        "json": [body for _, body in requests] + _blocks("json") + [one.answer for one in recorded if not one.streamed],
        "sse": [one.answer for one in recorded if one.streamed],
        "array": [one.answer for one in recorded if one.answer.lstrip().startswith(b"[")],
        "event-stream": [one.answer for one in recorded if one.dialect.family == "bedrock"],
        "event-messages": [*_messages(recorded)],
        "configuration": [*_blocks("yaml"), (ROOT / "examples" / "spendgate.yaml").read_bytes()],
        "key": [b"sg-" + b"a" * 32, b"sg-run." + b"a" * 32, b"sk-proj-1"],
        "path": [b"acme/search/triage", b"acme", b"4471", b"a.b_c-d"],
        "money": [b"0.50", b"5", b"2.5", b"0.000000000001", b"999999999999999999999999"],
        "address": [
            b"https://api.example.com/v1",
            b"https://[2600::1]:8443/v1",
            b"http://10.0.0.1:8080",
            b"https://a.b",
        ],
        "head": [*_heads()],
        "request": [bytes([number]) + body for number, body in requests],
        "answer": [bytes([number]) + one.answer for one in recorded for number in _answered(one)],
    }
    return MappingProxyType(
        {name: tuple(one for one in several if len(one) <= SEED_BYTES_MAX) for name, several in found.items()}
    )


def _requests(recorded: tuple[Vector, ...]) -> Iterator[tuple[int, bytes]]:
    for one in recorded:
        yield REQUESTED.index(one.dialect), str(one.wire["body"]).encode()


def _agents() -> Iterator[tuple[int, bytes]]:
    for file in sorted((ROOT / "tests" / "recorded" / "agents").glob("*.json")):
        for request in json.loads(file.read_text(encoding="utf-8"))["requests"]:
            name = next((name for end, name in _AGENTS.items() if request["path"].endswith(end)), None)
            if name is not None:
                yield REQUESTED.index(DIALECTS[name]), json.dumps(request["body"]).encode()


def _answered(vector: Vector) -> Iterator[int]:
    """Return the number of the request that stands for a vector's dialect and kind."""
    for number, one in enumerate(ANSWERED):
        if (one.dialect.name, one.provider.kind) == (vector.dialect.name, vector.provider.kind):
            yield number


def _messages(recorded: tuple[Vector, ...]) -> Iterator[bytes]:
    for one in recorded:
        if one.streamed and one.dialect.family == "bedrock":
            yield b"\xff\xfe".join(_unsealed(one.answer))


def _unsealed(stream: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(stream):
        total, size = (int.from_bytes(stream[at + place : at + place + 4], "big") for place in (0, 4))
        yield bytes([min(size, 255)]) + stream[at + 12 : at + total - 4]
        at += total


def _heads() -> Iterator[bytes]:
    yield b"/v1/chat/completions\nauthorization: Bearer sg-" + b"a" * 32 + b"\ncontent-type: application/json"
    yield b"/v1beta/models/gemini:generateContent?key=sg-aaaaaaaa&alt=sse\nx-goog-api-key: sg-aaaaaaaa"
    yield b"/model/us.anthropic%3Acl%2Faude/converse\nidempotency-key: one"
    yield b'/v1/messages\nx-api-key: sg-aaaaaaaa\nx-amzn-request-context: {"requestId": "a-b"}'


def _blocks(language: str) -> list[bytes]:
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    texts: list[Any] = [match for file in files for match in _BLOCK.findall(file.read_text(encoding="utf-8"))]
    return [text.encode() for name, text in texts if name == language]
