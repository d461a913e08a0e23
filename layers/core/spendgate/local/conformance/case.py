"""A case, and the stand that it is played on: a gateway set up by a driver, before the suite's own provider."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from spendgate.core.money import Picodollars, usd
from spendgate.local.conformance.bill import Terms
from spendgate.local.conformance.driver import MODEL, Caller, Model, Session, Setup
from spendgate.local.conformance.manner import OK, Manner
from spendgate.local.conformance.provider import Provider
from spendgate.local.conformance.speech import SPEECH, Speech

AT_ONCE_MAX: Final = 48
# After so many refusals one after the other a limit is taken as reached.
REFUSALS_IN_A_ROW: Final = 4
CALLS_MAX: Final = 120
PATIENCE_SECONDS: Final = 30.0
GROUPS: Final = (
    "concurrency",
    "dense text",
    "output caps and multipliers",
    "media and hidden tokens",
    "streams and disconnects",
    "provider failures",
    "crashes and restarts",
    "hostile usage",
    "unpriced and aliased models",
    "identity",
    "windows",
    "hierarchy",
    "refusals",
    "responses protocol",
    "gemini protocol",
)

Body = Mapping[str, Any]


class Missed(Exception):
    """A gateway kept the money, and still did not do what a case looks for; says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a caller got; ``status`` 0 where nothing came, or nobody waited for it."""

    status: int
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0

    @property
    def served(self) -> bool:
        return self.status == 200

    @property
    def refused(self) -> bool:
        """Told no, rather than told that something broke."""
        return 400 <= self.status < 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One attempt to spend more than a limit, or to make the books say less than was billed.

    ``play`` makes the calls; it may raise Missed. ``judged`` is the limit that counts where it is not ``limit``.
    ``sends``: the case says nothing unless a call reaches the provider.
    """

    name: str
    group: str
    title: str
    play: Callable[["Stand"], None]
    limit: str = "0.01"
    judged: str | None = None
    terms: Terms = field(default_factory=Terms)
    manner: Manner = OK
    models: tuple[Model, ...] = (Model(),)
    unpriced: tuple[str, ...] = ()
    dialect: str = "openai"
    daily: str | None = None
    requests_a_minute: int | None = None
    shares: tuple[str, ...] = ()
    runs: str | None = None
    sends: bool = True

    @property
    def limit_judged(self) -> Picodollars:
        return usd(self.judged or self.limit)

    def setup(self, provider_url: str) -> Setup:
        """Return what the case needs of a gateway."""
        return Setup(
            provider_url=provider_url,
            limit=usd(self.limit),
            dialect=self.dialect,
            models=self.models,
            unpriced=self.unpriced,
            daily=None if self.daily is None else usd(self.daily),
            requests_a_minute=self.requests_a_minute,
            shares=tuple(usd(share) for share in self.shares),
            runs=None if self.runs is None else usd(self.runs),
        )


class Stand:
    """A gateway in front of the provider, and callers of it."""

    def __init__(self, case: Case, session: Session, provider: Provider, http: httpx.Client) -> None:
        self.case = case
        self.session = session
        self.provider = provider
        self.answers: list[Answer] = []
        self.remarks: list[str] = []
        self.milliseconds: float | None = None
        self._http = http

    @property
    def speech(self) -> Speech:
        """How the case's callers speak."""
        return SPEECH[self.case.dialect]

    def path(self, template: str | None = None) -> str:
        """Return the path of a call; some have the model in it."""
        return (template or self.speech.path).replace("{model}", self.session.asked[MODEL])

    def body(self, **fields: Any) -> dict[str, Any]:
        """Return a request of about a tenth of a cent; a field that is None is left out."""
        document = self.speech.body(self.session.asked[MODEL])
        document |= fields
        return {name: value for name, value in document.items() if value is not None}

    def call(
        self,
        body: Body | bytes | None = None,
        *,
        caller: Caller | int = 0,
        headers: Mapping[str, str] | None = None,
        path: str | None = None,
        seconds: float = PATIENCE_SECONDS,
    ) -> Answer:
        """Make one call and wait for its whole answer, for so long."""
        content = body if isinstance(body, bytes) else json.dumps(self.body() if body is None else body).encode()
        began = time.perf_counter()
        try:
            got = self._http.post(
                f"{self.session.url}{path or self.path()}",
                content=content,
                headers=self._headers(caller) | dict(headers or {}),
                timeout=seconds,
            )
        except httpx.HTTPError:
            answer = Answer(status=0, seconds=time.perf_counter() - began)
        else:
            took = time.perf_counter() - began
            answer = Answer(status=got.status_code, text=got.text, headers=got.headers, seconds=took)
        self.answers.append(answer)
        return answer

    def leave(self, body: Body, *, after_bytes: int = 1) -> None:
        """Begin a stream and go after its first bytes."""
        url = f"{self.session.url}{self.path()}"
        content, headers = json.dumps(body).encode(), self._headers(0)
        status, seen = 0, 0
        try:
            with self._http.stream("POST", url, content=content, headers=headers, timeout=PATIENCE_SECONDS) as answer:
                status = answer.status_code
                for part in answer.iter_raw():
                    seen += len(part)
                    if seen >= after_bytes:
                        break
        except httpx.HTTPError:
            status = 0
        self.answers.append(Answer(status=status))

    def burst(self, bodies: Iterable[Body], *, callers: int = 1, seconds: float = PATIENCE_SECONDS) -> list[Answer]:
        """Make calls at once, in turn by each caller."""
        given = list(bodies)
        with ThreadPoolExecutor(max_workers=AT_ONCE_MAX) as pool:
            waiting = [
                pool.submit(self.call, body, caller=at % callers, seconds=seconds) for at, body in enumerate(given)
            ]
            return [one.result() for one in waiting]

    def spend(
        self,
        body: Body | None = None,
        *,
        caller: int = 0,
        headers: Mapping[str, str] | None = None,
        path: str | None = None,
        most: int = CALLS_MAX,
        seconds: float = PATIENCE_SECONDS,
    ) -> list[Answer]:
        """Call until the limit is reached, or nothing more is to be expected."""
        made: list[Answer] = []
        refusals = 0
        while len(made) < most and refusals < REFUSALS_IN_A_ROW:
            made.append(self.call(body, caller=caller, headers=headers, path=path, seconds=seconds))
            refusals = 0 if made[-1].served or not made[-1].refused else refusals + 1
        return made

    def until(self, condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> bool:
        """Wait for something that happens by itself; False where it does not."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def _headers(self, caller: Caller | int) -> dict[str, str]:
        one = self.session.callers[caller] if isinstance(caller, int) else caller
        given = {"content-type": "application/json", **self.speech.headers, **one.headers}
        if one.key:
            given[self.speech.key_header] = f"{self.speech.key_scheme}{one.key}"
        return given
