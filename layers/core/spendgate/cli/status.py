"""The tree of budgets: every limited window with its bar, and stops with their reasons."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from spendgate.cli.render import (
    BAR_WIDTH,
    RESERVED,
    SETTLED,
    UNKNOWN,
    amount,
    bar,
    clean,
    flow,
    legend,
    until,
    when,
)
from spendgate.core.money import usd, usd_text

# Runs come by the hundreds; what is not shown is counted.
RUNS_SHOWN_MAX: Final = 5
_SHORT: Final = {"tool_calls": "tools"}

Budget = Mapping[str, Any]


def status(document: Mapping[str, Any], *, width: int, all_runs: bool = False) -> Text:
    """Return the answer of ``GET /admin/budgets`` as a tree of at most ``width`` columns."""
    budgets: list[Budget] = document["budgets"]
    if not budgets:
        return Text("No budgets yet: write a spendgate.yaml and run `spendgate apply -f spendgate.yaml`.")
    paths = {budget["path"] for budget in budgets}
    roots = [budget for budget in budgets if _parent(budget) not in paths]
    lines: list[Text] = []
    for root in roots:
        lines += _branch(root, root["path"], "", budgets, document["at"], width=width, all_runs=all_runs)
        lines.append(Text())
    if any("free" in window for budget in budgets for window in budget["windows"]):
        lines.append(legend())
    else:
        lines.pop()
    return Text("\n").join(lines)


def _branch(
    budget: Budget, title: str, prefix: str, budgets: Sequence[Budget], now: str, *, width: int, all_runs: bool
) -> Iterator[Text]:
    below = [one for one in budgets if _parent(one) == budget["path"]]
    runs = [one for one in below if "/run:" in one["path"]]
    hidden = [] if all_runs else runs[RUNS_SHOWN_MAX:]
    below = [one for one in below if one not in hidden]
    yield _head(budget, title, now)
    rail = prefix + ("│  " if below or hidden else "   ")
    for line in _details(budget, now, width=width - len(rail)):
        yield Text(rail, style="dim") + line
    for index, child in enumerate(below):
        last = index == len(below) - 1 and not hidden
        name = child["path"].rpartition("/")[2]
        lines = _branch(child, name, prefix + ("   " if last else "│  "), budgets, now, width=width, all_runs=all_runs)
        yield Text(prefix + ("└─ " if last else "├─ "), style="dim") + next(lines)
        yield from lines
    if hidden:
        yield Text(prefix + "└─ ", style="dim") + Text(
            f"and {len(hidden)} more runs: spendgate status {budget['path']}"
        )


def _head(budget: Budget, title: str, now: str) -> Text:
    head = Text(clean(title), style="bold")
    notes = []
    if budget["mode"] == "observe":
        notes.append("observes: counts, never refuses")
    if budget["unbudgeted"]:
        notes.append("unbudgeted")
    if budget["expires_at"] is not None:
        over = budget["expires_at"] <= now
        notes.append("expired" if over else f"expires in {until(budget['expires_at'], now)}")
    if notes:
        head.append(f"  ({'; '.join(notes)})", style="not bold")
    return head


def _details(budget: Budget, now: str, *, width: int) -> Iterator[Text]:
    if budget["stop"] is not None:
        yield from _stop(budget["stop"], width=width)
    for window in budget["windows"]:
        yield from _window(window, now, width=width)
    counted = {f"{window['measure']}.{window['window']}" for window in budget["windows"]}
    spent = [
        f"{amount('usd', text)} {label}"
        for label, name, text in (
            ("today", "day", budget["committed"]["day"]),
            ("this month", "month", budget["committed"]["month"]),
            ("in all", "life", budget["committed"]["life"]),
        )
        if text != "0" and f"usd.{name}" not in counted
    ]
    if spent and not any(name.startswith("usd.") and name != "usd.request" for name in counted):
        yield from flow(Text("no USD limit of its own:"), spent, width=width, hang=Text("  "))
        held = [(name, budget[name]) for name in ("reserved", "unknown") if budget[name] != "0"]
        if held:
            yield from flow(
                Text("held:"), [f"{amount('usd', text)} {name}" for name, text in held], width=width, hang=Text("  ")
            )


def _stop(stop: Mapping[str, Any], *, width: int) -> Iterator[Text]:
    said = f"STOPPED by {clean(stop['by'])} at {when(stop['at'])}: {clean(stop['reason'])}"
    if stop["reservation"] is not None:
        said += f" (reservation {clean(stop['reservation'])})"
    words = said.split()
    lines = [Text("■", style="bold red")]
    for word in words:
        if lines[-1].cell_len + 1 + len(word) > width and lines[-1].cell_len > 1:
            lines.append(Text(" "))
        lines[-1].append(f" {word}", style="bold red")
    yield from lines


def _window(window: Mapping[str, Any], now: str, *, width: int) -> Iterator[Text]:
    measure = window["measure"]
    label = f"{_SHORT.get(measure, measure)}/{window['window']}"
    first = Text(f"{label:<15} ")
    if "free" not in window:
        yield first + Text(f"at most {amount(measure, window['maximum'])}")
        return
    in_flight = _minus(window["reserved"], window["unknown"])
    parts = [(SETTLED, window["settled"]), (RESERVED, in_flight), (UNKNOWN, window["unknown"])]
    first.append_text(bar(parts, window["maximum"]))
    said = [
        f"{amount('usd', window['committed'])} of {amount('usd', window['maximum'])}"
        if measure == "usd"
        else f"{window['committed']} of {window['maximum']}"
    ]
    if window["reserved"] != "0":
        said.append(f"{amount(measure, window['settled'])} settled")
        if in_flight != "0":
            said.append(f"{amount(measure, in_flight)} in flight")
    if window["unknown"] != "0":
        said.append(f"{amount(measure, window['unknown'])} unknown")
    said.append(f"{amount('usd', window['free']) if measure == 'usd' else window['free']} free")
    if window["resets_at"] is not None and window["committed"] != "0":
        moves = "rolls on in" if window["window"] == "hour" else "resets in"
        said.append(f"{moves} {until(window['resets_at'], now)}")
    yield from flow(first, said, width=width, hang=Text(" " * min(16 + BAR_WIDTH, max(width - 30, 2))))


def _minus(one: str, other: str) -> str:
    """Return the difference of two exact USD texts, exactly."""
    return usd_text(usd(one) - usd(other))


def _parent(budget: Budget) -> str:
    path: str = budget["path"]
    # A run's id may hold a colon but never a slash, so its parent is what stands before the last one.
    return path.rpartition("/")[0]
