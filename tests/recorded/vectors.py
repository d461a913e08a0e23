"""Reads the corpus: one file a vector, ``<provider>/<name>.yaml``; README.md tells the format."""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from struct import pack
from typing import Any, Final
from zlib import crc32

import yaml

from spendgate.configuration_reader import parse_prices
from spendgate.configuration_yaml import Findings
from spendgate.core.bound import Offer
from spendgate.core.feature import granted
from spendgate.core.kind import KINDS
from spendgate.core.price import PriceRow
from spendgate.core.route import Candidate, Provider
from spendgate.core.usage import BUCKETS, Usage
from spendgate.dialects.dialect import Dialect, Request
from spendgate.dialects.json_strict import parse_object
from spendgate.dialects.registry import DIALECTS

FOLDER: Final = Path(__file__).parent
KEYS: Final = frozenset(
    {"provenance", "dialect", "kind", "provider", "allow", "request", "answer", "price", "expected"}
)
EXPECTED_KEYS: Final = frozenset(
    {"buckets", "fees", "model", "service_tier", "response_id", "cost_usd", "charge_usd", "problem", "worked"}
)
_HEADER_TEXT: Final = 7
_NUMBERS: Final = frozenset({"above", "context_tokens", "output_tokens_max", "image_tokens_max"})
_DATA: Final = re.compile(r"^data: ([{].*)$", re.MULTILINE)
# A long text in a request: so many letters.
_LONG: Final = re.compile(r"«([0-9]+)»")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What was worked out by hand. With a ``problem`` nothing is settled, and ``usage`` is the floor that was seen."""

    usage: Usage | None
    model: str | None
    service_tier: str | None
    response_id: str | None
    cost_usd: str | None
    charge_usd: str | None
    problem: str | None
    worked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """A request, the answer byte by byte as it came, and what both cost."""

    name: str
    provenance: Mapping[str, str]
    dialect: Dialect
    request: Request
    provider: Provider
    row: PriceRow
    streamed: bool
    answer: bytes
    # What the caller gets of it.
    passed: bytes
    expected: Expected
    wire: Mapping[str, Any]
    content: Mapping[str, Any]

    @property
    def offer(self) -> Offer:
        """The one candidate that the answer is of."""
        return Offer(
            candidate=Candidate(provider="host", model=self.row.model), provider=self.provider, rows=(self.row,)
        )


def vectors() -> tuple[Vector, ...]:
    """Return the corpus."""
    return tuple(_vector(file) for file in sorted(FOLDER.glob("*/*.yaml")))


def _vector(file: Path) -> Vector:
    document = yaml.load(file.read_text(encoding="utf-8"), yaml.BaseLoader)  # noqa: S506 - makes nothing but text
    unknown = (document.keys() - KEYS) | (document["expected"].keys() - EXPECTED_KEYS)
    assert not unknown, f"{file}: {unknown}"
    dialect = DIALECTS[document["dialect"]]
    streamed, answer = _answer(document["answer"])
    provider = Provider(
        name="host",
        dialect=dialect.family,
        base_url="https://host.example",
        kind=document["kind"],
        **document.get("provider", {}),
    )
    return Vector(
        name=f"{file.parent.name}/{file.stem}",
        provenance=document["provenance"],
        dialect=dialect,
        request=_request(document, dialect),
        provider=provider,
        row=_row(document["price"]),
        streamed=streamed,
        answer=answer,
        passed=_passed(document["answer"], answer),
        expected=_expected(document["expected"]),
        wire=document["request"],
        content=document["answer"],
    )


def written_out(body: str) -> str:
    """Return a body with its long texts, of which it says only how long they are."""
    return _LONG.sub(lambda found: "a" * int(found[1]), body)


def altered(vector: Vector, edit: Callable[[str], str]) -> bytes:
    """Return a vector's answer with every JSON document in it edited, and encoded again as it was."""
    ((form, content),) = vector.content.items()
    if form == "eventstream":
        parts = [{name: part if name == "headers" else edit(part) for name, part in one.items()} for one in content]
        return _answer({form: parts})[1]
    if form == "json" or not content.lstrip().startswith(("data:", "event:", ":")):
        return _answer({form: edit(content)})[1]
    return _DATA.sub(lambda found: "data: " + edit(found[1]), content).encode()


def _request(document: Mapping[str, Any], dialect: Dialect) -> Request:
    wire = document["request"]
    body = parse_object(written_out(wire["body"]).encode())
    read = dialect.read(body, wire.get("headers", {}), wire.get("query", ""), wire.get("path", {}))
    allowed = {feature: int(uses) for feature, uses in document.get("allow", {}).items()}
    return replace(read, facts=granted(read.facts, allowed), kind=KINDS[document["kind"]])


def _row(price: Mapping[str, Any]) -> PriceRow:
    findings = Findings()
    rows = parse_prices([{"provider": "host", "model": "m", **_typed(price)}], ["host"], findings)
    findings.raise_any()
    (row,) = rows
    return row


def _typed(price: Any) -> Any:
    """Return a price as YAML would read it: what is no amount of money is a number or a truth there."""
    if isinstance(price, dict):
        return {
            name: int(one) if name in _NUMBERS else one == "true" if name == "inclusive" else _typed(one)
            for name, one in price.items()
        }
    return [_typed(one) for one in price] if isinstance(price, list) else price


def _answer(answer: Mapping[str, Any]) -> tuple[bool, bytes]:
    ((form, content),) = answer.items()
    match form:
        case "json":
            return False, content.encode()
        case "stream":
            return True, content.encode()
        case "eventstream":
            return True, b"".join(event_message(one["headers"], _payload(one)) for one in content)
        case _:
            raise ValueError(f"an answer is json, stream or eventstream, not {form}")


def _payload(message: Mapping[str, Any]) -> bytes:
    if "bytes" in message:
        # InvokeModel wraps each chunk of the model's own protocol.
        return json.dumps({"bytes": base64.b64encode(message["bytes"].encode()).decode()}).encode()
    payload: str = message["payload"]
    return payload.encode()


def _passed(answer: Mapping[str, Any], wire: bytes) -> bytes:
    """Return the answer as it reaches the caller: events of InvokeModel's leave their wrapping behind."""
    messages = answer.get("eventstream", [])
    if not any("bytes" in one for one in messages):
        return wire
    events = []
    for one in messages:
        # An exception is told in the caller's own protocol.
        broken = {"type": "api_error", "message": f"Bedrock broke off: {one['headers'].get(':exception-type')}"}
        data = one.get("bytes") or json.dumps({"type": "error", "error": broken}, separators=(",", ":"))
        events.append(f"event: {json.loads(data)['type']}\ndata: {data}\n\n".encode())
    return b"".join(events)


def event_message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return one message of ``application/vnd.amazon.eventstream``, its headers all being text."""
    block = b"".join(
        pack(">B", len(name)) + name.encode() + pack(">BH", _HEADER_TEXT, len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    prelude = pack(">II", 16 + len(block) + len(payload), len(block))
    message = prelude + pack(">I", crc32(prelude)) + block + payload
    return message + pack(">I", crc32(message))


def _expected(expected: Mapping[str, Any]) -> Expected:
    counts = expected.get("buckets")
    usage = None
    if counts is not None:
        assert counts.keys() <= set(BUCKETS), counts
        fees = tuple(sorted((kind, int(units)) for kind, units in expected.get("fees", {}).items()))
        usage = Usage(**{bucket: int(count) for bucket, count in counts.items()}, fees=fees)
    return Expected(
        usage=usage,
        model=expected.get("model"),
        service_tier=expected.get("service_tier"),
        response_id=expected.get("response_id"),
        cost_usd=expected.get("cost_usd"),
        charge_usd=expected.get("charge_usd"),
        problem=expected.get("problem"),
        worked=expected["worked"],
    )


def pieces(answer: bytes) -> Iterator[bytes]:
    """Cut an answer into its bytes."""
    return (answer[at : at + 1] for at in range(len(answer)))
