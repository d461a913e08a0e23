"""Ask a provider about an answer that the gateway did not see to its end, and what it cost: one GET, which is free.

What it proves settles a reservation; anything else, silence among it, proves nothing and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import httpx

from spendgate.core.address import network_of
from spendgate.core.bound import settled_cost
from spendgate.core.kind import Kind, LookUp, kind_of, url_of
from spendgate.core.request import CacheWrite, RequestFacts
from spendgate.core.reservation import Reservation
from spendgate.core.route import Candidate, Provider
from spendgate.core.usage import Usage, UsageReport, usable_count
from spendgate.dialects.charges import cost_charge
from spendgate.dialects.dialect import Request
from spendgate.dialects.json_strict import parse_answer
from spendgate.dialects.registry import DIALECTS
from spendgate.errors import AddressRefused

ASK_SECONDS_MAX: Final = 10.0
ASKED_BYTES_MAX: Final = 64_000_000
_LIFETIMES: Final[tuple[CacheWrite, ...]] = ("long", "short")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What a provider says: a whole ``report``, or None; ``said`` is the reason in a few words."""

    report: UsageReport | None
    said: str


Recover = Callable[[Provider, Reservation], Recovered]


def recoverer(secrets: Callable[[str], str], transport: httpx.BaseTransport | None = None) -> Recover:
    """Return what asks providers; ``secrets`` resolves references."""

    def recover_once(provider: Provider, reservation: Reservation) -> Recovered:
        return recover(provider, reservation, secrets, transport)

    return recover_once


def recover(
    provider: Provider,
    reservation: Reservation,
    secrets: Callable[[str], str],
    transport: httpx.BaseTransport | None = None,
) -> Recovered:
    """Ask once. LedgerUnavailable where the provider's secret is missing."""
    kind = kind_of(provider)
    look_up = kind.look_up(reservation.dialect)
    if look_up is None:
        return _nothing(f"providers of kind {kind.name} cannot be asked about {reservation.dialect} answers")
    if reservation.response_id is None:
        return _nothing("the provider's id of the answer is not known")
    secret = None if provider.secret is None else secrets(provider.secret)
    url = url_of(
        provider,
        path=look_up.path.format(id=quote(reservation.response_id, safe="")),
        model=reservation.model or "",
    )
    try:
        status, body = _asked(url, kind, secret, transport or _transport_to(provider))
    except AddressRefused as refused:
        return _nothing(f"provider {provider.name} was not asked: {refused}")
    if status != 200:
        return _nothing(f"provider {provider.name} answered {status}" if status else f"{provider.name} did not answer")
    return _read(look_up, kind, reservation, body)


def _asked(url: str, kind: Kind, secret: str | None, transport: httpx.BaseTransport) -> tuple[int, bytes]:
    """Return status and body; status 0 where there is no answer, or one that is too large to be read."""
    headers = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "spendgate"}
    if secret is not None:
        name, form = kind.authorization
        headers[name] = form.format(secret)
    client = httpx.Client(timeout=ASK_SECONDS_MAX, follow_redirects=False, trust_env=False, transport=transport)
    try:
        with client, client.stream("GET", url, headers=headers) as response:
            body = bytearray()
            for piece in response.iter_bytes():
                body += piece
                if len(body) > ASKED_BYTES_MAX:
                    return 0, b""
            return response.status_code, bytes(body)
    except httpx.HTTPError:
        return 0, b""


def _read(look_up: LookUp, kind: Kind, reservation: Reservation, body: bytes) -> Recovered:
    is_record = look_up.reads == "generation"
    report = _generation(parse_answer(body)) if is_record else _answer(kind, reservation, body)
    if report.usage is None or not report.finished:
        return _nothing(report.problem or "the answer has not come to its end")
    if report.response_id != reservation.response_id:
        return _nothing("the answer that was shown is another one")
    return Recovered(report=report, said="the provider's own record")


def _answer(kind: Kind, reservation: Reservation, body: bytes) -> UsageReport:
    """Read an answer of which nobody knows any more for how long its request let the cache keep what it wrote.

    What tells no lifetime counts as the longest. Where that alone would be more than was held, either the request asked for
    the shorter or its bound was wrong; which, the record does not say, and so it proves nothing.
    """
    longest, shortest = (_read_as(kind, reservation, body, kept) for kept in _LIFETIMES)
    if _cost(reservation, shortest) <= reservation.asked.usd < _cost(reservation, longest):
        return UsageReport(
            problem="for how long its cache keeps what was written is not said, and decides what it cost"
        )
    return longest


def _read_as(kind: Kind, reservation: Reservation, body: bytes, kept: CacheWrite) -> UsageReport:
    facts = RequestFacts(dialect=reservation.dialect, model=reservation.model or "", text_bytes=0, cache_write=kept)
    return DIALECTS[reservation.dialect].report(body, Request(facts=facts, body={}, kind=kind))


def _cost(reservation: Reservation, report: UsageReport) -> int:
    """Return what an answer costs by the pinned prices, 0 where they do not say."""
    candidate = Candidate(provider=reservation.provider or "", model=reservation.model or "")
    quote = next((one for one in reservation.quotes if one.candidate == candidate), None)
    if quote is None or report.usage is None:
        return 0
    try:
        return settled_cost(report, report.usage, quote, start=reservation.created_at, end=reservation.deadline)
    except ValueError:
        return 0


def _generation(document: Any) -> UsageReport:
    """Return OpenRouter's record of a generation: its cost, and the counts of the model that served it."""
    data = document.get("data") if isinstance(document, dict) else None
    if not isinstance(data, dict):
        return UsageReport(problem="answer_unreadable")
    charge = cost_charge(
        {
            "cost": data.get("total_cost"),
            "is_byok": data.get("is_byok"),
            "cost_details": {"upstream_inference_cost": data.get("upstream_inference_cost")},
        }
    )
    usage = _native(data)
    if charge is None or usage is None:
        return UsageReport(problem="usage_missing")
    return UsageReport(
        usage=usage, finished=True, model=_text(data.get("model")), response_id=_text(data.get("id")), charge=charge
    )


def _native(data: Mapping[str, Any]) -> Usage | None:
    prompt, completion = (usable_count(data.get(f"native_tokens_{name}")) for name in ("prompt", "completion"))
    if prompt is None or completion is None:
        return None
    cached = min(usable_count(data.get("native_tokens_cached")) or 0, prompt)
    reasoning = usable_count(data.get("native_tokens_reasoning")) or 0
    return Usage(input_uncached=prompt - cached, cache_read=cached, output=max(completion, reasoning))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _transport_to(provider: Provider) -> httpx.BaseTransport:
    # As in attempt.py: not at the start of a gateway that may never ask.
    from spendgate.providers.network import blocking_transport  # noqa: PLC0415

    return blocking_transport(network_of(provider))


def _nothing(said: str) -> Recovered:
    return Recovered(report=None, said=said)
