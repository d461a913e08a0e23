"""Prints the figures: ``python -m benchmarks [round-trips] [write-units] [cpu] [imports] [tightness]``; all of them without a name.

Nothing here passes or fails: times depend on the machine, which is printed with them. What is a count and no time is
asserted in tests/test_benchmarks.py.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
from collections import Counter
from collections.abc import Iterable
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import cpu, imports, round_trips, shares, tightness, turns, write_units
from benchmarks.rig import a_store, rig

NAMES: Final = ("round-trips", "write-units", "cpu", "imports", "tightness")
# What needs no store.
_ALONE: Final = frozenset({"imports", "tightness"})
TOP: Final = 10

_console = Console(width=132, highlight=False)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Print Spendgate's figures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to measure, of: {', '.join(NAMES)}")
    parser.add_argument("--calls", type=int, default=100, help="calls in each repetition of cpu (100)")
    parser.add_argument("--repetitions", type=int, default=7, help="repetitions of what is timed (7)")
    parser.add_argument("--turns", type=int, default=300, help="turns of agents in tightness (300)")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(NAMES))
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    names = given.names or NAMES
    _console.print(machine())
    if set(names) - _ALONE:
        with a_store() as url:
            asyncio.run(_calls(url, names, calls=given.calls, repetitions=given.repetitions))
    if "imports" in names:
        _print_imports(given.repetitions)
    if "tightness" in names:
        _print_tightness(given.turns)


def machine() -> str:
    """Return what the figures depend on."""
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    return (
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, load {load}; "
        "times are CPU times of the process, medians"
    )


async def _calls(url: str, names: Iterable[str], *, calls: int, repetitions: int) -> None:
    made = rig(url)
    if "round-trips" in names:
        _print_round_trips(await round_trips.measure(made))
    if "write-units" in names:
        # A gateway of its own: the round trips changed limits and left counters.
        fresh = rig(url)
        _print_write_units(await write_units.measure(fresh), emulator_counts=write_units.emulator_counts(fresh))
    if "cpu" in names:
        _print_cpu(await cpu.measure(made, calls=calls, repetitions=repetitions))
        whole = await shares.measure(made, calls=calls * repetitions)
        _print_shares("Where it goes, whole call of 1 KB", whole)
        streamed = await shares.measure(made, calls=calls * repetitions, stream=True)
        _print_shares("Where it goes, streamed call of 1 KB and 50 chunks", streamed)


def _print_round_trips(found: Iterable[round_trips.Trips]) -> None:
    rows = (
        (one.name, one.status, len(one.before), len(one.after) if one.left else "-", _named(one.before, one.after))
        for one in found
    )
    _print("Round trips to DynamoDB of one call", ("call", "status", "before egress", "after", "operations"), rows)


def _named(before: Iterable[str], after: Iterable[str]) -> str:
    sides = (
        ", ".join(name if count == 1 else f"{count} {name}" for name, count in Counter(one).items())
        for one in (before, after)
    )
    return " | ".join(side for side in sides if side)


def _print_write_units(found: Iterable[write_units.TransactionCost], *, emulator_counts: bool) -> None:
    found = list(found)
    rows = [
        (
            one.depth,
            one.name,
            ", ".join(f"{item.kind} {item.before}>{item.after}" for item in one.items),
            one.table_units,
            one.index_units,
            one.table_units + one.index_units,
            one.units_most,
        )
        for one in found
    ]
    heads = ("depth", "transaction", "items, bytes before>after", "table", "indexes", "units", "at most")
    _print("Write units of a warm call", heads, rows)
    depths = sorted({one.depth for one in found})
    sums = [
        (depth, sum(row[5] for row in rows if row[0] == depth), sum(row[6] for row in rows if row[0] == depth))
        for depth in depths
    ]
    _print("Write units of a whole call: reserve and settle", ("depth", "units", "at most"), sums)
    told = "agree with" if emulator_counts else "do not follow"
    _console.print(
        f"Computed by DynamoDB's rules from the items; the local store's own, which leave out indexes, {told} them."
    )


def _print_cpu(found: Iterable[cpu.CallCost]) -> None:
    rows = (
        (
            one.name,
            one.body_bytes,
            f"{one.seconds * 1e3:.2f}",
            f"{one.seconds_least * 1e3:.2f}",
            f"{1 / one.seconds:.0f}",
        )
        for one in found
    )
    heads = ("call", "body bytes", "CPU ms", "least", "calls/s on one core")
    _print("CPU of a warm call, store and provider taken out", heads, rows)


def _print_shares(title: str, found: Iterable[tuple[str, float]]) -> None:
    _print(title, ("part", "share"), ((part, f"{share:.1%}") for part, share in list(found)[:TOP]))


def _print_imports(repetitions: int) -> None:
    found = imports.measure(repetitions=repetitions)
    boto3 = next(one.seconds for one in found if one.name == "import boto3")
    rows = (
        (one.name, f"{one.seconds * 1e3:.0f}", f"{one.seconds / boto3:.2f}", f"{one.kilobytes / 1024:.0f}")
        for one in found
    )
    _print("Start of the gateway's function", ("program", "CPU ms", "ratio to boto3", "memory MB"), rows)
    modules = imports.modules()
    _print_modules("The largest imports, themselves", sorted(modules, key=lambda one: -one.own))
    _print_modules("The largest imports, with what they import", sorted(modules, key=lambda one: -one.cumulative))


def _print_tightness(count: int) -> None:
    # A vocabulary of 40 MB is loaded for nothing else.
    from benchmarks import tokenizer  # noqa: PLC0415

    corpus = turns.turns(count)
    cases = tightness.cases()
    plain = [tightness.measure(case, corpus, tokenizer.count, provider=case.provider) for case in cases]
    told = [tightness.measure(case, corpus, tokenizer.count, provider=case.declared) for case in cases]
    heads = ("dialect", "model", "median", "p95", "with cache", "declared", "declared p95", "largest part, turns")
    _print(f"Reserved / actual over {count} turns of agents", heads, tightness.table(plain, told))


def _print_modules(title: str, modules: list[imports.ImportCost]) -> None:
    rows = ((one.name, f"{one.own / 1e3:.1f}", f"{one.cumulative / 1e3:.1f}") for one in modules[:TOP])
    _print(title, ("module", "own ms", "cumulative ms"), rows)


def _print(title: str, heads: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    _console.print(f"\n[bold]{title}[/bold]")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head)
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    _console.print(table)


if __name__ == "__main__":
    main()
