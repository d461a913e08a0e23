"""docs/benchmarks.md, from the figures of one run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from benchmarks.load import percentile
from benchmarks.peers import DIRECT, KINDS, OURS, Found, Gateway, Kind
from benchmarks.profile import Profile

_INTRODUCTION: Final = """\
# Benchmarks

Written by `make bench ARGS="peers profile --peers FOLDER --write"`; nothing in it is written by hand, and no test measures a time.
Spendgate, other gateways and two limits, in one run, before one provider that answers at once, on one machine, called in turns.

```sh
for peer in hardcap inferrail governer; do
    python3 -m venv FOLDER/$peer && FOLDER/$peer/bin/pip install $peer
done
```

hardcap needs a `redis-server` on the path. Each gateway is set up by its driver of the conformance suite, in the strictest way that it has.

- **Added** is a call's time through a gateway less the median of the same call to the provider alone.
- **CPU** is the gateway's own process, user and system, divided by the calls; its store's is not in it: Redis's for hardcap, and for Spendgate
  that of MiniStack, an emulation of DynamoDB in Python. inferrail and governer write files in their own process.
- **Ratio** is to Spendgate: below 1 it takes less than Spendgate does.
- **The proxy** passes calls through on the HTTP stack that Spendgate stands on (Starlette, uvicorn, httpx), and looks at nothing.
- **The store** is the two transactions of a call alone, as Spendgate sends them, sent by a client that does nothing else. In a
  region DynamoDB takes the place of the emulation.
"""


def document(*, machine: str, command: str, found: Found | None, profiles: Sequence[Profile]) -> str:
    """Return the page."""
    parts = [_INTRODUCTION, f"Machine: {machine}.\nCommand: `{command}`.\n"]
    if found is not None:
        parts += _beside(found)
    parts += [_profile(one) for one in profiles]
    return "\n".join(parts)


def beside(found: Found) -> list[tuple[str, Sequence[str], list[Sequence[str]]]]:
    """Return the tables: title, heads, rows."""
    tables: list[tuple[str, Sequence[str], list[Sequence[str]]]] = []
    for kind in KINDS:
        heads = ("gateway", "added p50 ms", "p95", "p99", "ratio p50", "first answer p50 ms", "CPU ms", "ratio CPU")
        rows: list[Sequence[str]] = [_row(found, one, kind) for one in found.gateways if one.name != DIRECT]
        rows.append(_store_row(found, kind))
        tables.append((f"{kind.name.capitalize()}", heads, rows))
    memory: list[Sequence[str]] = [
        (_named(one), f"{one.kilobytes_before / 1024:.0f}", f"{one.kilobytes_after / 1024:.0f}")
        for one in found.gateways
        if one.name != DIRECT
    ]
    tables.append(("Memory, MB", ("gateway", "after the first calls", "at the end"), memory))
    return tables


def _beside(found: Found) -> list[str]:
    parts = ["## Beside other gateways\n"]
    parts += [f"### {title}\n\n{_table(heads, rows)}" for title, heads, rows in beside(found)]
    if found.absent:
        parts.append("".join(f"Not measured: {name}: {why}\n" for name, why in sorted(found.absent.items())))
    return parts


def _row(found: Found, one: Gateway, kind: Kind) -> Sequence[str]:
    ours, seen = found.named(OURS).seen[kind], one.seen[kind]
    base = found.named(DIRECT).seen[kind].whole(0.5)
    first_base = found.named(DIRECT).seen[kind].first(0.5)
    added, ours_added = seen.whole(0.5) - base, ours.whole(0.5) - base
    return (
        _named(one),
        *(_ms(seen.whole(share) - base) for share in (0.5, 0.95, 0.99)),
        f"{added / ours_added:.2f}",
        _ms(seen.first(0.5) - first_base),
        f"{seen.cpu * 1e3:.2f}",
        f"{seen.cpu / ours.cpu:.2f}",
    )


def _store_row(found: Found, kind: Kind) -> Sequence[str]:
    times = found.store[kind.at_once]
    base = found.named(DIRECT).seen[kind].whole(0.5)
    ours_added = found.named(OURS).seen[kind].whole(0.5) - base
    middle = percentile(times, 0.5)
    return (
        "the store alone",
        *(_ms(percentile(times, share)) for share in (0.5, 0.95, 0.99)),
        f"{middle / ours_added:.2f}",
        "",
        "",
        "",
    )


def _named(one: Gateway) -> str:
    return f"**{one.name} {one.version}**" if one.name == OURS else f"{one.name} {one.version}".strip()


def _profile(profile: Profile) -> str:
    rows = [(part, f"{seconds * 1e3:.2f}", f"{share:.1%}") for part, seconds, share in profile.parts]
    told = f"## Where the CPU goes: {profile.name}\n\n{profile.seconds * 1e3:.2f} ms a call, of the gateway's code without sockets.\n\n"
    return told + _table(("part", "CPU ms", "share"), rows)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
