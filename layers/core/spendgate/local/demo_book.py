"""What the demo provider was asked, what it billed, and how it was told to behave."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final

from spendgate.core.money import usd_text

RECORDS_MAX: Final = 1000
HOLD_SECONDS_MAX: Final = 600.0

BEHAVIOURS: Final = {
    "ok": "answers as asked",
    "slow": "waits delay_seconds before the answer and between_seconds between the frames of a stream",
    "hang": "bills and never answers, until the caller goes or max_seconds have passed",
    "hang_mid_stream": "bills, sends after_frames frames, then hangs",
    "error_after_work": "bills, then answers with status (500)",
    "refuse": "answers with status (429), retry_after and code, and bills nothing",
    "reset": "bills, then breaks the connection without an answer",
    "cut": "bills, sends after_frames frames, then breaks the connection; clean: ends the body as if it were whole",
    "error_in_stream": "bills, sends after_frames frames, then an error in the stream",
    "no_usage": "answers without any usage",
    "usage": "reports usage (any JSON) or usage_text (any text, such as NaN) in place of the usage object",
    "overbill": "uses, reports and bills factor times the output cap",
    "redirect": "answers with status (307) to another path of its own, and bills nothing",
    "garbage": "bills, then answers 200 with half a JSON document, as content_type",
    "gzip": "compresses its answer, whatever was asked for",
    "echo": "puts the key that it received into a header and into its text",
    "model_echo": "says that another model answered (model)",
    "byte_by_byte": "sends its answer one byte at a time",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How one call is answered. The options of one name may be given with any other, where they mean something."""

    name: str = "ok"
    delay_seconds: float = 0
    between_seconds: float = 0
    max_seconds: float = HOLD_SECONDS_MAX
    after_frames: int = 2
    clean: bool = False
    status: int | None = None
    retry_after: str | None = None
    code: str | None = None
    factor: int = 2
    usage: Any = None
    usage_text: str | None = None
    usage_fields: Mapping[str, Any] = field(default_factory=dict)
    billed_picodollars: int | None = None
    model: str | None = None
    content_type: str = "application/json"


OK: Final = Behaviour()
_OPTIONS: Final = {option.name for option in fields(Behaviour)} - {"name"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request that arrived where work is billed; names and numbers, never its text."""

    id: int
    path: str
    behaviour: str
    key_matches: bool | None
    header_names: tuple[str, ...]
    accept_encoding: str | None
    field_names: tuple[str, ...] = ()
    model: str | None = None
    stream: bool = False
    output_cap: int | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    billed_picodollars: int = 0


class DemoBook:
    """The demo provider's own bookkeeping; the truth that a ledger is compared with."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget every call and every behaviour; requests now being answered stay counted as open."""
        self.hits = 0
        self.free_hits = 0
        self.billed_picodollars = 0
        self.behaviours: Counter[str] = Counter()
        self._calls: deque[Call] = deque(maxlen=RECORDS_MAX)
        self._next: deque[Behaviour] = deque()
        self._standing = OK
        self._open: int = getattr(self, "_open", 0)

    @property
    def open(self) -> int:
        """How many requests are being answered now."""
        return self._open

    @property
    def calls(self) -> tuple[Call, ...]:
        """The last calls, oldest first."""
        return tuple(self._calls)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Count a request as open while it is being answered."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    def arrived(self, *, told: bool = True) -> tuple[int, Behaviour]:
        """Count a request on a billable path; return its number and how it is to be answered (as told, or well)."""
        self.hits += 1
        if not told:
            return self.hits, OK
        return self.hits, self._next.popleft() if self._next else self._standing

    def record(self, call: Call) -> None:
        """Keep a call and bill it, for good: nothing that happens to its connection takes it back."""
        self._calls.append(call)
        self.behaviours[call.behaviour] += 1
        self.billed_picodollars += call.billed_picodollars

    def behave(self, behaviour: Behaviour, *, calls: int | None = None) -> None:
        """Answer the next ``calls`` calls so (after those already told), or without a number all that follow."""
        if calls is None:
            self._next.clear()
            self._standing = behaviour
        else:
            self._next.extend([behaviour] * calls)

    def as_json(self) -> dict[str, Any]:
        """Return what ``GET /_demo`` answers."""
        return {
            "hits": self.hits,
            "free_hits": self.free_hits,
            "billed_usd": usd_text(self.billed_picodollars),
            "billed_picodollars": self.billed_picodollars,
            "open": self.open,
            "behaviours": dict(self.behaviours),
            "requests": [asdict(call) for call in self._calls],
        }


def behaviour_from(document: object) -> tuple[Behaviour, int | None]:
    """Read the body of ``POST /_demo``; ValueError or TypeError says what is allowed."""
    if not isinstance(document, Mapping):
        raise TypeError("the body is not a JSON object")
    options = dict(document)
    name = options.pop("behaviour", "ok")
    calls = options.pop("calls", None)
    if name not in BEHAVIOURS:
        raise ValueError(f"behaviour {name!r} is none of {', '.join(sorted(BEHAVIOURS))}")
    if calls is not None and (not isinstance(calls, int) or calls < 1):
        raise ValueError(f"calls {calls!r} is neither null nor a whole number from 1")
    unknown = sorted(set(options) - _OPTIONS)
    if unknown:
        raise ValueError(f"unknown option {', '.join(unknown)}; options are {', '.join(sorted(_OPTIONS))}")
    behaviour = Behaviour(name=name, **options)
    return replace(behaviour, max_seconds=min(behaviour.max_seconds, HOLD_SECONDS_MAX)), calls
