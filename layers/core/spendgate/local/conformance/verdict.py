"""What a case's figures come to: pure, exact, and the same for every gateway."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from spendgate.core.money import Picodollars, usd_text
from spendgate.local.conformance.driver import Books

UNKNOWN: Final = "-"


class Kind(StrEnum):
    """The verdicts, the worst first."""

    OVERSPENT = "overspent"
    UNDER_BOOKED = "under-booked"
    UNEXPLAINED = "unexplained"
    MISSED = "missed"
    UNSUPPORTED = "unsupported"
    HOLDS = "holds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a case came to. ``books`` None: they cannot be read. ``made`` and ``answered`` count calls, ``hits`` what
    the provider saw of them.
    """

    limit: Picodollars
    billed: Picodollars
    books: Books | None
    made: int
    answered: int
    hits: int

    @property
    def of_limit(self) -> str:
        """Billed / limit, rounded up: 1.00 is never more than the limit."""
        return UNKNOWN if not self.limit else _ratio(-(-self.billed * 100 // self.limit))

    @property
    def of_billed(self) -> str:
        """Ledger / billed, rounded down: 1.00 is never less than was billed."""
        if self.books is None:
            return UNKNOWN
        if not self.billed:
            return "1.00" if not self.books.booked else UNKNOWN
        return _ratio((self.books.booked + self.books.resolution) * 100 // self.billed)

    @property
    def held(self) -> str:
        """What is held at the end, in USD."""
        if self.books is None or self.books.held is None:
            return UNKNOWN
        return usd_text(self.books.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A kind, and the reason in one sentence where it needs one."""

    kind: Kind
    reason: str = ""


HOLDS: Final = Verdict(kind=Kind.HOLDS)


def judge(figures: Figures, *, missed: str | None = None, sends: bool = True, first_refusal: str = "") -> Verdict:
    """Return the verdict of a case: money first, then what holds it, then what else the case looked for.

    Where a case is of calls that the provider gets and it got none, nothing was shown: that is unsupported, not a
    success.
    """
    if figures.billed > figures.limit:
        over = usd_text(figures.billed - figures.limit)
        return Verdict(kind=Kind.OVERSPENT, reason=f"{over} USD above the limit of {usd_text(figures.limit)} USD")
    books = figures.books
    if books is not None and books.booked + books.resolution < figures.billed:
        short = usd_text(figures.billed - books.booked)
        where = "neither booked nor held" if books.held is not None else "not in the books that it shows"
        return Verdict(kind=Kind.UNDER_BOOKED, reason=f"{short} USD of what was billed are {where}")
    if books is not None and (unexplained := _unexplained(books)):
        return Verdict(kind=Kind.UNEXPLAINED, reason=f"{usd_text(unexplained)} USD are held, and no record says why")
    if missed is not None:
        return Verdict(kind=Kind.MISSED, reason=missed)
    if sends and not figures.hits:
        refusal = f": {first_refusal}" if first_refusal else ""
        return Verdict(kind=Kind.UNSUPPORTED, reason=f"it let none of {figures.made} calls through{refusal}")
    return HOLDS


def unsupported(reason: str) -> Verdict:
    """Return the verdict of a case that cannot be played."""
    return Verdict(kind=Kind.UNSUPPORTED, reason=reason)


def _unexplained(books: Books) -> int:
    if not books.held:
        return 0
    return max(0, books.held - sum(one.amount for one in books.records or () if one.why))


def _ratio(hundredths: int) -> str:
    sign, size = ("-", -hundredths) if hundredths < 0 else ("", hundredths)
    return f"{sign}{size // 100}.{size % 100:02}"
