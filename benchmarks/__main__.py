"""Prints the figures: ``python -m benchmarks [round-trips] [write-units] [cpu] [profile] [imports] [tightness] [peers]``; all of them
without a name. With ``--write``, peers and profile go to docs/benchmarks.md too.

Nothing here passes or fails: times depend on the machine, which is printed with them. What is a count and no time is
asserted in tests/test_benchmarks.py.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import cpu, imports, peers, profile, report, round_trips, shares, tightness, turns, write_units
from benchmarks.rig import a_store, rig

NAMES: Final = ("round-trips", "write-units", "cpu", "profile", "imports", "tightness", "peers")
PAGE: Final = Path(__file__).parents[1] / "docs" / "benchmarks.md"
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
    parser.add_argument("--peers", type=Path, metavar="FOLDER", help="environments of other gateways, for peers")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of peers, each through every gateway (5)")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md from peers and profile")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(NAMES))
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    names = given.names or NAMES
    _console.print(machine())
    found: peers.Found | None = None
    profiles: list[profile.Profile] = []
    if set(names) - _ALONE:
        with a_store() as url:
            profiles = asyncio.run(_calls(url, names, calls=given.calls, repetitions=given.repetitions))
            if "peers" in names:
                found = peers.measure(peers=given.peers, store_url=url, calls=given.calls, rounds=given.rounds)
                _print_peers(found)
    if "imports" in names:
        _print_imports(given.repetitions)
    if "tightness" in names:
        _print_tightness(given.turns)
    if given.write:
        # Not where the environments are, which is this machine's.
        words = ["FOLDER" if word == str(given.peers) else word for word in sys.argv[1:]]
        page = report.document(
            machine=machine().partition(";")[0],
            command=f"python -m benchmarks {' '.join(words)}",
            found=found,
            profiles=profiles,
        )
        PAGE.write_text(page, encoding="utf-8")


def machine() -> str:
    """Return what the figures depend on."""
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    return (
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, load {load}; "
        "times are CPU times of the process, medians"
    )


async def _calls(url: str, names: Iterable[str], *, calls: int, repetitions: int) -> list[profile.Profile]:
    made = rig(url)
    profiles: list[profile.Profile] = []
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
    if "profile" in names:
        profiles = await profile.measure(made, calls=calls, repetitions=repetitions)
        for one in profiles:
            rows = [(part, f"{seconds * 1e3:.2f}", f"{share:.1%}") for part, seconds, share in one.parts]
            _print(f"Of {one.name}, {one.seconds * 1e3:.2f} CPU ms", ("part", "CPU ms", "share"), rows)
    return profiles


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


def _print_peers(found: peers.Found) -> None:
    for title, heads, rows in report.beside(found):
        _print(title, heads, rows)
    for name, why in sorted(found.absent.items()):
        _console.print(f"Not measured: {name}: {why}")


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
