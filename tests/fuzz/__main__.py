"""The long run: ``make fuzz ARGS="--cases 1000000 --seed 7"``, on every core, until done or until something does not hold."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.fuzz.case import Outcome, drawn, run
from tests.fuzz.requests import Ask
from tests.fuzz.requests_served import DRAWN
from tests.fuzz.tally import Tally, batch

_BATCH = 500
SHRINKS_MAX = 3000


def smallest(ask: Ask, seed: str, *, tries_max: int = SHRINKS_MAX) -> tuple[Ask, Outcome]:
    """Return the smallest request that still goes wrong: members, items and text are left out while it does."""
    best, outcome = ask, run(ask, seed)
    tries, found = 0, True
    while found and tries < tries_max:
        found = False
        for body in _smaller(best.body):
            tries += 1
            tried = replace(best, body=body)
            if _goes_wrong(tried, seed):
                best, outcome, found = tried, run(tried, seed), True
                break
            if tries >= tries_max:
                break
    return best, outcome


def main(arguments: list[str] | None = None) -> int:
    """Run; 1 where something does not hold."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000, help="over all dialects together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dialect", choices=sorted(DRAWN), action="append", help="this one only; may be repeated")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args(arguments)
    dialects = chosen.dialect or list(DRAWN)
    tallies = {dialect: Tally() for dialect in dialects}
    each = -(-chosen.cases // len(dialects))
    tasks = [
        (dialect, chosen.seed, start, min(start + _BATCH, each))
        for start in range(0, each, _BATCH)
        for dialect in dialects
    ]
    begun = shown = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(chosen.workers) as pool:
        for dialect, tally in pool.imap_unordered(batch, tasks):
            tallies[dialect].add(tally)
            if tally.wrong:
                break
            if time.monotonic() - shown > 10:
                shown = time.monotonic()
                done = sum(one.cases for one in tallies.values())
                _say(f"{done:,} cases, {done / (shown - begun):,.0f} a second")
    _print(tallies, seconds=time.monotonic() - begun, seed=chosen.seed)
    broken = [dialect for dialect, tally in tallies.items() if _explain(dialect, tally)]
    return 1 if broken else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _print(tallies: dict[str, Tally], *, seconds: float, seed: int) -> None:
    for dialect, tally in tallies.items():
        _say(
            f"{dialect:20} {tally.cases:>10,} cases {tally.refused:>9,} refused   bill/bound at most {tally.ratio:.6f}"
        )
    done = sum(one.cases for one in tallies.values())
    _say(f"{done:,} cases in {seconds:,.0f} s, {done / seconds:,.0f} a second, seed {seed}")


def _explain(dialect: str, tally: Tally) -> bool:
    if not tally.wrong:
        return False
    seed, _ = tally.wrong[0]
    ask, outcome = smallest(drawn(dialect, seed), seed)
    _say(f"{dialect}, seed {seed}: {outcome.wrong} (bill {outcome.bill}, bound {outcome.bound})")
    _say(json.dumps(ask.body, ensure_ascii=False))
    return True


def _goes_wrong(ask: Ask, seed: str) -> bool:
    try:
        return run(ask, seed).wrong is not None
    except (KeyError, TypeError, IndexError):
        # What is left is no request of this dialect any more.
        return False


def _smaller(value: Any) -> Iterator[Any]:
    if isinstance(value, str) and value:
        yield ""
        yield value[: len(value) // 2]
        yield value[len(value) // 2 :]
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield value[:index] + value[index + 1 :]
            for smaller in _smaller(item):
                yield [*value[:index], smaller, *value[index + 1 :]]
    elif isinstance(value, dict):
        for name, item in value.items():
            yield {other: kept for other, kept in value.items() if other != name}
            for smaller in _smaller(item):
                yield value | {name: smaller}


if __name__ == "__main__":
    sys.exit(main())
