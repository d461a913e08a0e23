"""The result as a page: a table of every gateway, every reason, and where another is better than the first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from spendgate.core.money import usd_text
from spendgate.local.conformance.case import GROUPS, Case
from spendgate.local.conformance.run import Report, Result
from spendgate.local.conformance.verdict import Kind

_HEAD: Final = """\
# Conformance

What a gateway that says its budgets hold has to stand: {count} attempts to spend more than a limit, or to make the books say
less than was billed. Black box, over HTTP, with a provider of the suite's own that counts what arrives and bills the worst that
the wire protocol lets it mean. **This page is written by the command below; nothing in it is written by hand.**

```sh
{command}
```

{machine}

A cell is the verdict, then billed / limit, ledger / billed and the USD held at the end. The ledger is what is settled and what is
still reserved, as the gateway itself shows it (`-`: it does not). Billed / limit is rounded up and ledger / billed down.

| verdict | meaning |
|---|---|
| holds | billed <= limit, and the ledger has all that was billed |
| overspent | billed > limit |
| under-booked | within the limit, and billed > what the ledger has |
| unexplained | money is held, and no record says why |
| missed | the money is right, and something else that the case looks for is not |
| unsupported | the gateway, or its driver, cannot do what the case needs |

`spendgate conformance --target URL --token TOKEN` plays it against a Spendgate that runs already and has nothing else to do. For
another gateway write a driver: `spendgate.local.conformance.driver` has the protocol, and `at_hardcap`, `at_inferrail` and
`at_governer` beside it are three examples.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """How a page came about."""

    command: str
    machine: str


def page(reports: Sequence[Report], origin: Origin) -> str:
    """Return the page."""
    count = max(len(report.results) for report in reports)
    parts = [
        _HEAD.format(count=count, command=origin.command, machine=origin.machine),
        "## The gateways\n",
        *_gateways(reports),
        "\n## The cases\n",
        *_cases(reports),
        "\n## Reasons\n",
        *_reasons(reports),
        "\n## Held at the end, and why\n",
        *_held(reports),
        "\n## Remarks\n",
        *_remarks(reports),
        f"\n## Where another is better than {reports[0].name}\n",
        *_better_lines(reports),
        "",
    ]
    return "\n".join(parts)


def better(ours: Result, theirs: Result) -> tuple[str, ...]:
    """Return in what another's result is the better one; a case that either cannot play compares nothing."""
    if theirs.verdict.kind != Kind.HOLDS or theirs.figures is None:
        return ()
    if ours.verdict.kind != Kind.HOLDS or ours.figures is None:
        return (f"holds, where this one is {ours.verdict.kind}",)
    found: list[str] = []
    if theirs.figures.answered > ours.figures.answered:
        found.append(f"{theirs.figures.answered} calls answered within the limit, not {ours.figures.answered}")
    our_books, their_books = ours.figures.books, theirs.figures.books
    if (
        our_books is not None
        and their_books is not None
        and our_books.held is not None
        and their_books.held is not None
    ):
        settled = their_books.booked - their_books.held
        # Less held is better only where what was billed is booked instead.
        if their_books.held < our_books.held and settled + their_books.resolution >= theirs.figures.billed:
            found.append(f"{usd_text(their_books.held)} USD held at the end, not {usd_text(our_books.held)}")
    if ours.milliseconds is not None and theirs.milliseconds is not None and theirs.milliseconds < ours.milliseconds:
        found.append(f"a refusal takes {theirs.milliseconds:.1f} ms (p50), not {ours.milliseconds:.1f}")
    return tuple(found)


def line(result: Result) -> str:
    """Return a result in one line, for whoever watches."""
    figures, verdict = result.figures, result.verdict
    shown = f"{verdict.kind:<12} {result.case.group}: {result.case.name}"
    if figures is not None:
        shown += (
            f"  [billed/limit {figures.of_limit}, ledger/billed {figures.of_billed}, held {figures.held},"
            f" answered {figures.answered} of {figures.made}]"
        )
    return f"{shown}  {verdict.reason}".rstrip()


def _gateways(reports: Sequence[Report]) -> Iterator[str]:
    kinds = [kind for kind in Kind if any(one.verdict.kind == kind for report in reports for one in report.results)]
    yield f"| gateway | version | started by | played | {' | '.join(kinds)} |"
    yield "|---|---|---|---|" + "---|" * len(kinds)
    for report in reports:
        counts = [sum(one.verdict.kind == kind for one in report.results) for kind in kinds]
        cells = " | ".join(str(count) for count in counts)
        yield f"| {report.name} | {report.version} | `{report.command}` | {len(report.results)} | {cells} |"


def _cases(reports: Sequence[Report]) -> Iterator[str]:
    found = _by_case(reports)
    for group in GROUPS:
        members = [(case, results) for case, results in found if case.group == group]
        if not members:
            continue
        yield f"### {group.capitalize()}\n"
        yield f"| case | {' | '.join(report.name for report in reports)} |"
        yield "|---|" + "---|" * len(reports)
        for case, results in members:
            yield f"| **{case.name}**: {case.title} | {' | '.join(_cell(one) for one in results)} |"
        yield ""


def _cell(result: Result | None) -> str:
    if result is None:
        return "not played"
    if result.figures is None:
        return str(result.verdict.kind)
    figures = result.figures
    return f"{result.verdict.kind} {figures.of_limit} {figures.of_billed} {figures.held}"


def _by_case(reports: Sequence[Report]) -> list[tuple[Case, list[Result | None]]]:
    cases = {one.case.name: one.case for report in reports for one in report.results}
    played = [{one.case.name: one for one in report.results} for report in reports]
    return [(case, [results.get(name) for results in played]) for name, case in cases.items()]


def _reasons(reports: Sequence[Report]) -> Iterator[str]:
    yield "| gateway | case | verdict | reason | answered |"
    yield "|---|---|---|---|---|"
    for report in reports:
        for one in report.results:
            if one.verdict.kind != Kind.HOLDS:
                yield (
                    f"| {report.name} | {one.case.name} | {one.verdict.kind} | {_quoted(one.verdict.reason)} "
                    f"| {_answered(one)} |"
                )


def _held(reports: Sequence[Report]) -> Iterator[str]:
    yield "| gateway | case | USD | its records say |"
    yield "|---|---|---|---|"
    for report in reports:
        for one in report.results:
            books = None if one.figures is None else one.figures.books
            if books is not None and books.held:
                why = ", ".join(dict.fromkeys(_quoted(reason) for reason in one.held_because[:3]))
                more = f", and {len(one.held_because) - 3} more" if len(one.held_because) > 3 else ""
                yield f"| {report.name} | {one.case.name} | {usd_text(books.held)} | {why or 'nothing'}{more} |"


def _remarks(reports: Sequence[Report]) -> Iterator[str]:
    yield "| case | gateway | |"
    yield "|---|---|---|"
    for case, results in _by_case(reports):
        for report, one in zip(reports, results, strict=True):
            for remark in () if one is None else one.remarks:
                yield f"| {case.name} | {report.name} | {_quoted(remark)} |"


def _better_lines(reports: Sequence[Report]) -> Iterator[str]:
    first, *others = reports
    ours = {one.case.name: one for one in first.results}
    rows = [
        f"| {theirs.case.name} | {other.name} | {how} |"
        for other in others
        for theirs in other.results
        if theirs.case.name in ours
        for how in better(ours[theirs.case.name], theirs)
    ]
    if not rows:
        yield "Nowhere in these cases." if others else "No other was played."
        return
    yield "| case | gateway | how |"
    yield "|---|---|---|"
    yield from rows


def _answered(result: Result) -> str:
    return "" if result.figures is None else f"{result.figures.answered} of {result.figures.made}"


def _quoted(text: str) -> str:
    """Return another's words as code, so that they are nobody else's and break no table."""
    if not text:
        return ""
    return "`" + text.replace("`", "'").replace("|", "/").replace("\n", " ") + "`"
