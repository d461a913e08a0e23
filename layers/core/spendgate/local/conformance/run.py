"""Play the cases against a gateway and judge them."""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from subprocess import SubprocessError
from typing import Final

import httpx

from spendgate.local.conformance import provider as providers
from spendgate.local.conformance import provider_app
from spendgate.local.conformance.case import Case, Missed, Stand
from spendgate.local.conformance.driver import Books, Cannot, Driver, Session
from spendgate.local.conformance.provider import Provider
from spendgate.local.conformance.verdict import Figures, Kind, Verdict, judge, unsupported

# How long what is under way may take to come to rest. What does not is held, and the books must say so.
REST_SECONDS: Final = 6.0
_STEADY_SECONDS: Final = 0.4
_WORDS_MAX: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A case, what it came to, and how; ``figures`` None where it could not be played."""

    case: Case
    verdict: Verdict
    figures: Figures | None = None
    # Why money is held at the end, each reason once.
    held_because: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    # What a refusal took in the middle, where the case took the time of it.
    milliseconds: float | None = None
    seconds: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Every case of one gateway."""

    name: str
    version: str
    command: str
    results: tuple[Result, ...]

    @property
    def holds(self) -> bool:
        """Whether no case shows that it does not, and some case was played; one that it cannot play shows nothing."""
        kinds = {one.verdict.kind for one in self.results}
        return Kind.HOLDS in kinds and kinds <= {Kind.HOLDS, Kind.UNSUPPORTED}


def play(
    driver: Driver, cases: Iterable[Case], tell: Callable[[Result], None] = lambda _: None, *, provider_port: int = 0
) -> Report:
    """Play cases one after the other; a gateway that cannot be started at all is unsupported in each.

    The provider listens on ``provider_port``, or for each case on one that is free.
    """
    results: list[Result] = []
    try:
        try:
            version = driver.version()
        except Cannot as reason:
            version = "not installed"
            results = [Result(case=case, verdict=unsupported(str(reason))) for case in cases]
            for result in results:
                tell(result)
        else:
            for result in _played(driver, cases, provider_port):
                results.append(result)
                tell(result)
    finally:
        driver.close()
    return Report(name=driver.name, version=version, command=driver.command(), results=tuple(results))


def _played(driver: Driver, cases: Iterable[Case], port: int) -> Iterator[Result]:
    # Callers are many and their connections their own; nothing waits for another's.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    with httpx.Client(trust_env=False, follow_redirects=False, limits=limits) as http:
        for case in cases:
            began = time.monotonic()
            try:
                with provider_app.running(case.models, port=port) as provider:
                    provider.terms, provider.manner = case.terms, case.manner
                    with driver.session(case.setup(provider.url)) as session:
                        result = _result(case, Stand(case, session, provider, http), began)
            except (Cannot, httpx.HTTPError, sqlite3.Error, SubprocessError, OSError, ValueError) as reason:
                result = Result(case=case, verdict=unsupported(str(reason)), seconds=time.monotonic() - began)
            yield result


def _result(case: Case, stand: Stand, began: float) -> Result:
    missed: str | None = None
    session, provider = stand.session, stand.provider
    try:
        case.play(stand)
    except Missed as reason:
        missed = str(reason)
    books: Books | None = None
    try:
        books = _at_rest(session, provider)
    except Cannot as reason:
        missed = missed or str(reason)
    figures = Figures(
        limit=case.limit_judged,
        billed=provider.billed,
        books=books,
        made=len(stand.answers),
        answered=sum(answer.served for answer in stand.answers),
        hits=provider.hits,
    )
    refusal = next((f"{one.status} {' '.join(one.text.split())}" for one in stand.answers if one.refused), "")
    return Result(
        case=case,
        verdict=judge(figures, missed=missed, sends=case.sends, first_refusal=refusal[:_WORDS_MAX]),
        figures=figures,
        held_because=tuple(dict.fromkeys(one.why for one in (books.records if books and books.records else ()))),
        remarks=tuple(stand.remarks),
        milliseconds=stand.milliseconds,
        seconds=time.monotonic() - began,
    )


def _at_rest(session: Session, provider: Provider) -> Books:
    """Return the books once nothing moves any more, or as they are when that takes too long; Cannot."""
    providers.quiet(provider, seconds=REST_SECONDS)
    deadline = time.monotonic() + REST_SECONDS
    books = session.books()
    while time.monotonic() < deadline:
        time.sleep(_STEADY_SECONDS)
        before, books = books, session.books()
        if before == books:
            break
    return books
