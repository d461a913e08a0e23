"""The tree of budgets: every limited window with its bar, and stops with their reasons."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from spendgate.cli.render import (
    RESERVED,
    SETTLED,
    UNKNOWN,
    amount,
    bar,
    clean,
    flow,
    legend,
    limits_of,
    until,
    when,
)
from spendgate.core.money import usd, usd_text

# Runs come by the hundreds; what is not shown is counted.
RUNS_SHOWN_MAX: Final = 5
# Where a tree is so deep that little is left, later lines begin further to the left: an amount is never broken.
_PIECE_WIDTH: Final = 44
_SHORT: Final = {"tool_calls": "tools"}

Budget = Mapping[str, Any]


def status(document: Mapping[str, Any], *, width: int, all_runs: bool = False) -> Text:
    """Return the answer of ``GET /admin/budgets`` as a tree of at most ``width`` columns."""
    budgets: list[Budget] = document["budgets"]
    if not budgets:
        return Text("No budgets yet: write a spendgate.yaml and run `spendgate apply -f spendgate.yaml`.")
    paths = {budget["path"] for budget in budgets}
    roots = [budget for budget in budgets if _parent(budget) not in paths]
    # A gateway of before this version does not say what is blocked.
    lines: list[Text] = [line for block in document.get("blocks", ()) for line in _block(block, width=width)]
    for root in roots:
        lines += _branch(root, root["path"], "", budgets, document["at"], width=width, all_runs=all_runs)
        lines.append(Text())
    if any("free" in window for budget in budgets for window in budget["windows"]):
        lines += legend(width=width)
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
    # A gateway of before this version has no such field.
    if budget.get("temporary") is not None:
        yield from _temporary(budget, now, width=width)
    label_width = max((len(_label(window)) for window in budget["windows"]), default=0)
    for window in budget["windows"]:
        yield from _window(window, now, label_width=label_width, width=width)
    if any(window["measure"] == "usd" and window["window"] != "request" for window in budget["windows"]):
        return
    spent = [f"{amount('usd', budget['committed'][period])} this {period}" for period in ("day", "month")]
    if budget["reserved"] != "0":
        spent.append(f"{amount('usd', budget['reserved'])} of it reserved")
    if budget["unknown"] != "0":
        spent.append(f"{amount('usd', budget['unknown'])} of that unknown")
    yield from flow(Text("no USD limit here"), spent, width=width, hang=Text(" "))


def _stop(stop: Mapping[str, Any], *, width: int) -> Iterator[Text]:
    said = f"STOPPED by {clean(stop['by'])} at {when(stop['at'])}: {clean(stop['reason'])}"
    if stop["reservation"] is not None:
        said += f" (reservation {clean(stop['reservation'])})"
    yield from _folded("■", said, style="bold red", width=width)


def _temporary(budget: Budget, now: str, *, width: int) -> Iterator[Text]:
    temporary, own = budget["temporary"], budget["policy"].get("limits", {})
    raised = {
        measure: {window: own[measure][window] for window in windows if window in own.get(measure, {})}
        for measure, windows in temporary["limits"].items()
    }
    said = (
        f"RAISED by {clean(temporary['by'])} until {when(temporary['until'])} (in {until(temporary['until'], now)}) to "
        f"{', '.join(limits_of(temporary['limits']))}, instead of {', '.join(limits_of(raised))}: {clean(temporary['reason'])}"
    )
    yield from _folded("▲", said, style="bold yellow", width=width)


def _block(block: Mapping[str, Any], *, width: int) -> Iterator[Text]:
    names = " ".join(clean(block[name]) for name in ("provider", "model", "feature"))
    said = (
        f"BLOCKED for every budget since {when(block['at'])}: {clean(block['feature'])} of {clean(block['model'])} at "
        f"{clean(block['provider'])}, which billed ${block['billed']} for a call that was bounded at ${block['reserved']} "
        f"(reservation {clean(block['reservation'])}). Once you know why: spendgate blocks lift {names} --reason TEXT"
    )
    yield from _folded("■", said, style="bold red", width=width)
    yield Text()


def _folded(mark: str, said: str, *, style: str, width: int) -> Iterator[Text]:
    lines = [Text(mark, style=style)]
    for word in said.split():
        if lines[-1].cell_len + 1 + len(word) > width and lines[-1].cell_len > 1:
            lines.append(Text(" "))
        lines[-1].append(f" {word}", style=style)
    yield from lines


def _window(window: Mapping[str, Any], now: str, *, label_width: int, width: int) -> Iterator[Text]:
    measure, money = window["measure"], window["measure"] == "usd"
    first = Text(f"{_label(window):<{label_width}}  ")
    if "free" not in window:
        yield first + Text(f"at most {amount(measure, window['maximum'])}")
        return
    in_flight = _minus(window["reserved"], window["unknown"])
    parts = [(SETTLED, window["settled"]), (RESERVED, in_flight), (UNKNOWN, window["unknown"])]
    unit = "$" if money else ""
    said = [f"{unit}{window['committed']} of {unit}{window['maximum']}", f"{unit}{window['free']} free"]
    held = [
        f"{amount(measure, text)} {name}"
        for name, text in (("settled", window["settled"]), ("in flight", in_flight), ("unknown", window["unknown"]))
        if text != "0" and window["reserved"] != "0"
    ]
    if window["resets_at"] is not None and window["committed"] != "0":
        moves = "next room in" if window["window"] == "hour" else "resets in"
        (held or said).append(f"{moves} {until(window['resets_at'], now)}")
    hang = Text(" " * max(min(first.cell_len - 2, width - _PIECE_WIDTH), 1))
    yield from flow(first + bar(parts, window["maximum"]), said, width=width, hang=hang)
    if held:
        yield from flow(hang, held, width=width, hang=hang)


def _label(window: Mapping[str, Any]) -> str:
    return f"{_SHORT.get(window['measure'], window['measure'])}/{window['window']}"


def _minus(one: str, other: str) -> str:
    """Return the difference of two exact USD texts, exactly."""
    return usd_text(usd(one) - usd(other))


def _parent(budget: Budget) -> str:
    path: str = budget["path"]
    # A run's id may hold a colon but never a slash, so its parent is what stands before the last one.
    return path.rpartition("/")[0]
