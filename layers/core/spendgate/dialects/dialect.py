"""What every wire protocol module offers. A dialect is a value: functions over bytes and parsed JSON, no I/O."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol

from spendgate.core.kind import Kind
from spendgate.core.request import RequestFacts
from spendgate.core.usage import UsageReport
from spendgate.errors import Refused

NO_PATH: Final[Mapping[str, str]] = MappingProxyType({})


def is_event_stream(content_type: str) -> bool:
    """Tell a stream of server-sent events."""
    return "text/event-stream" in content_type


def _as_told(content_type: str) -> str:
    return content_type


def _own_status(refused: Refused) -> int:
    return refused.status


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request that was read strictly: its facts, and what of it may go to a provider.

    ``body`` is what was parsed and bounded; nothing else leaves. ``headers`` are the protocol's own headers that
    go along (lower-case names). ``query`` is forwarded as it stands. ``wants_usage`` is False where the usage frame
    of a stream must be hidden from the caller, who did not ask for it. ``kind`` is that of the provider it goes to, once
    that is known: how it spells what is stamped, and how it counts. None has no habits beside the protocol's.
    """

    facts: RequestFacts
    body: Mapping[str, Any]
    headers: tuple[tuple[str, str], ...] = ()
    query: str = ""
    wants_usage: bool = True
    kind: Kind | None = None


class Meter(Protocol):
    """Reads an answer while it passes. Feeding it byte by byte gives the same result as all at once."""

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the provider's answer; return those that may go to the caller now.

        The frame that ends the protocol (``[DONE]``, ``message_stop``) and what follows is held back for ``end``.
        """
        ...

    def end(self) -> bytes:
        """The provider's answer is over: return the bytes held back."""
        ...

    def interrupted(self, error: bytes) -> bytes:
        """Return what tells the caller that the answer broke off: the dialect's error, as it can stand here."""
        ...

    def report(self) -> UsageReport:
        """What the answer has said about itself so far."""
        ...


class ReadRequest(Protocol):
    """Reads a request strictly."""

    def __call__(
        self, body: Mapping[str, Any], headers: Mapping[str, str], query: str, path: Mapping[str, str] = NO_PATH, /
    ) -> Request:
        """Return the request; RequestInvalid or CostBoundUnknown, naming the field.

        ``path`` holds what the path names, such as the model of a dialect that has it there.
        """
        ...


class ReadAnswer(Protocol):
    """Reads a whole JSON answer."""

    def __call__(self, body: bytes, request: Request | None = None) -> UsageReport:
        """Report an answer; pass the request, since only it tells the lifetime of cache writes without a split."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """A call that no provider bills: it is passed through, and nothing is reserved. As the fields of ``Dialect``."""

    upstream_path: Callable[[Request, str], str]
    read: ReadRequest
    outgoing: Callable[[Request, str], bytes]


def _own_headers(request: Request) -> tuple[tuple[str, str], ...]:
    return request.headers


def _own_query(request: Request) -> str:
    return request.query


def _no_headers(_refused: Refused) -> tuple[tuple[str, str], ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One wire protocol.

    ``family`` is what a provider's ``dialect`` must be to serve it: one provider speaks several wire protocols.
    The gateway's own paths of it are in the registry. ``read`` raises RequestInvalid or CostBoundUnknown, naming the field. ``outgoing(request, model, output_cap)`` gives the body to send: the candidate's model, and the output
    cap stamped where the caller gave none (the number that was bounded; None for a call that nothing bounds).
    ``upstream_path(request, model)`` is appended to the provider's base URL. ``is_stream(content_type)`` tells an
    answer that comes in pieces, which ``meter(request)`` reads; ``report(body, request)`` reads a whole one.
    ``refusal(refused, request_id)`` is the error document that the dialect's SDKs parse; ``stream_error`` the same
    as an in-band event for a stream that has begun. ``key_query`` is the query parameter in which the caller's key may
    stand; it is taken out before anything reads the query. ``free`` are its calls that cost nothing.
    ``headers(request)`` and ``query(request)`` go along to the provider; ``answer_type`` is the content type that the
    caller is told of a stream with the provider's. ``status`` and ``refusal_headers`` are those of a refusal, where its
    SDK knows other ones than ours.
    """

    name: str
    family: str
    upstream_path: Callable[[Request, str], str]
    read: ReadRequest
    outgoing: Callable[[Request, str, int | None], bytes]
    meter: Callable[[Request], Meter]
    report: ReadAnswer
    refusal: Callable[[Refused, str], dict[str, Any]]
    stream_error: Callable[[Refused, str], bytes]
    is_stream: Callable[[str], bool] = is_event_stream
    key_query: str | None = None
    free: tuple[Free, ...] = ()
    headers: Callable[[Request], tuple[tuple[str, str], ...]] = _own_headers
    query: Callable[[Request], str] = _own_query
    answer_type: Callable[[str], str] = _as_told
    status: Callable[[Refused], int] = _own_status
    refusal_headers: Callable[[Refused], tuple[tuple[str, str], ...]] = _no_headers
