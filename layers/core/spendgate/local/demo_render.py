"""What people see of the demo: plain lines of at most 80 columns that can be pasted, coloured where a terminal is."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from spendgate.core.money import usd_text
from spendgate.local.demo_agent import Standing

WIDTH: Final = 78
BAR_WIDTH: Final = 50
# The marks of `spendgate status`.
SETTLED, RESERVED, UNKNOWN, FREE = "█", "▒", "?", "·"
_STYLES: Final = {SETTLED: "green", RESERVED: "yellow", UNKNOWN: "bold red", FREE: "dim"}
_MEANINGS: Final = {
    SETTLED: "settled",
    RESERVED: "reserved, in flight",
    UNKNOWN: "reserved, outcome unknown",
    FREE: "free",
}

# One piece of a line: its text, and its style if it has one.
Piece = str | tuple[str, str]


class Screen(Protocol):
    """The part of a rich Console that is used; only ``cli`` imports rich."""

    def print(self, *objects: Any, end: str = ..., style: str | None = ..., soft_wrap: bool | None = ...) -> None:
        """Print text in a style."""


class Narrator:
    """Tells the demo as it happens."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def beginning(self) -> None:
        self._line(("spendgate demo", "bold"), ": the gateway, its ledger and a provider that costs nothing,")
        self._line("all on this machine. Prices: 2.50 USD a million input tokens, 10 output.")

    def runaway(self, budget: Standing, *, output_cap: int) -> None:
        self._title("1. A runaway agent", f"{budget.path}, limit ${usd_text(budget.maximum)}, max_tokens {output_cap}")
        self._line("It adds every answer to its context and calls again. Before each call the")
        self._line("gateway reserves the most that the call can cost.")
        self._line()
        self._line(
            (f"step  status {'tokens in/out':>13} {'at most':>11} {'cost':>11} {'total':>11} {'left':>11}", "bold")
        )

    def step(self, step: Mapping[str, Any]) -> None:
        refused = step["code"] is not None
        tokens = "-" if refused else f"{step['input_tokens']} / {step['output_tokens']}"
        self._line(
            f"{step['step']:>4}  ",
            (f"{step['status']:<6}", "bold red" if refused else "green"),
            f" {tokens:>13}",
            *(f" {_money(step[name]):>11}" for name in ("bound_usd", "cost_usd", "total", "free")),
        )

    def refusal(self, refusal: Mapping[str, Any]) -> None:
        limit = refusal["limit"]
        self._line()
        self._line(
            "      ", (f"{refusal['status']} {refusal['code']}", "bold red"), ", in the shape that the SDK parses:"
        )
        fits = (refusal["fits"] or {}).get("max_output_tokens", 0)
        hits = f"{refusal['hits_before']} hits before, {refusal['hits_after']} after: the call never left"
        rows = (
            ("message", _what(refusal["message"])),
            ("limit", f"{_money(limit['maximum'])} in the lifetime of {refusal['budget']}"),
            ("settled", _money(refusal["settled"])),
            ("reserved", _money(refusal["reserved"])),
            ("asked", f"{_money(refusal['asked'])}, the most that this call can cost"),
            ("fits", f"max_tokens {fits}" if fits else "not even one output token"),
            ("next", refusal["next_action"]),
            ("retryable", "yes" if refusal["retryable"] else "no: x-should-retry: false, so no SDK repeats it"),
            ("provider", hits),
        )
        self._rows(rows)

    def fitted(self, step: Mapping[str, Any]) -> None:
        self._line()
        self._line(f"      What fits does fit. The same call with max_tokens {step['output_cap']}:")
        self._line()
        self.step(step)

    def crowd(self, budget: Standing, *, calls: int) -> None:
        self._title(f"2. {calls} calls at once", f"{budget.path}, limit ${usd_text(budget.maximum)}")

    def crowded(self, facts: Mapping[str, Any], fullest: Standing) -> None:
        self._line(f"Each may cost ${facts['bound_usd']}, so there is room for few.")
        self._line()
        refused = sum(facts["refused"].values())
        self._line("      admitted  ", (f"{facts['admitted']:>2}", "green"), f"   provider hits {facts['hits']}")
        told = ", ".join(f"{count} x {code}" for code, count in facts["refused"].items())
        self._line("      refused   ", (f"{refused:>2}", "bold red"), f"   {told}")
        self._line()
        self._line("      While they were in flight:")
        self._line()
        self._budget("      crowd", fullest)

    def hung(self, budget: Standing, *, seconds: float) -> None:
        self._title("3. A provider that hangs", f"{budget.path}, limit ${usd_text(budget.maximum)}")
        self._line(f"It takes the request, bills it, and never answers. After {seconds} s:")
        self._line()

    def held(self, facts: Mapping[str, Any]) -> None:
        then = facts["then"]
        self._line("      ", (f"{facts['status']} {facts['code']}", "bold red"))
        self._rows(
            (
                ("message", _what(facts["message"])),
                ("held", f"${facts['unknown']} as unknown; time alone never frees it"),
            )
        )
        self._line()
        self._line("      ", (f"{then['status']} {then['code']}", "bold red"), ", the next call:")
        self._rows((("message", _what(then["message"])),))
        self._line()
        self._line("      Once the provider's bill shows what it cost, an operator ends it:")
        self._line()
        self._line("      spendgate reconcile settle \\")
        self._line(f'          {facts["reservation"]} --cost {facts["billed_usd"]} --evidence "..."')

    def ending(self, budgets: Sequence[Standing], facts: Mapping[str, Any]) -> None:
        self._title("Where the money is", "limits are for a lifetime")
        for budget in budgets:
            name = "   " * budget.path.count("/") + budget.path.rpartition("/")[2]
            self._budget(name, budget)
        self._line()
        legend: list[Piece] = []
        for mark, meaning in _MEANINGS.items():
            legend += ["   " if legend else "", (mark, _STYLES[mark]), f" {meaning}"]
        self._line(*legend)
        self._line()
        self._line(
            ("provider hits ", "bold"),
            f"{facts['provider_hits']} == {facts['admitted_calls']}",
            (" admitted calls", "bold"),
        )
        self._line(
            ("billed        ", "bold"),
            f"${facts['billed_usd']} <= ${facts['ledger_usd']}",
            (" settled + reserved", "bold"),
        )
        self._line(("audit         ", "bold"), f"{facts['reservations']} reservations, no difference")
        self._line(("at every look ", "bold"), "settled + reserved <= limit on every budget; billed <= ledger")

    def broken(self, what: str) -> None:
        self._line()
        self._line(("A promise did not hold: ", "bold red"), what)

    def _budget(self, name: str, budget: Standing) -> None:
        self._line((f"{name:<12}", "bold"), " ", *bar(budget), f" of ${usd_text(budget.maximum)}")
        amounts = [f"{mark} ${usd_text(amount)}" for mark, amount in _parts(budget).items() if amount]
        self._line(" " * 13, "   ".join(amounts))

    def _title(self, title: str, after: str) -> None:
        self._line()
        self._line((title, "bold"), f"  ({after})")
        self._line()

    def _rows(self, rows: Sequence[tuple[str, str]]) -> None:
        for name, value in rows:
            first, *more = textwrap.wrap(value, WIDTH - 18)
            self._line(f"      {name:<10}  ", first)
            for line in more:
                self._line(" " * 18, line)

    def _line(self, *pieces: Piece) -> None:
        for piece in pieces:
            text, style = (piece, None) if isinstance(piece, str) else piece
            self._screen.print(text, end="", style=style, soft_wrap=True)
        self._screen.print()


def bar(budget: Standing) -> list[Piece]:
    """Return a budget's bar. What is not nothing has a cell, so the largest part gives back what that takes."""
    parts = _parts(budget)
    whole = max(sum(parts.values()), 1)
    cells = {mark: max(amount * BAR_WIDTH // whole, 1) if amount else 0 for mark, amount in parts.items()}
    largest = max(cells, key=lambda mark: (cells[mark], mark == FREE))
    cells[largest] += BAR_WIDTH - sum(cells.values())
    return [(mark * count, _STYLES[mark]) for mark, count in cells.items() if count]


def _parts(budget: Standing) -> dict[str, int]:
    return {
        SETTLED: budget.settled,
        RESERVED: budget.reserved - budget.unknown,
        UNKNOWN: budget.unknown,
        FREE: budget.free,
    }


def _what(message: str) -> str:
    """Return what a refusal says, without what to do, which has a row of its own or is told below."""
    return message.partition(". Next: ")[0]


def _money(text: str | None) -> str:
    return "-" if text is None else f"${text}"
