"""What is said of each kind of alert: what happened, the figures, what follows from it, and the command that helps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from spendgate.core.window import ACTIVE

# Words of others, such as the reason of a stop, are cut.
QUOTED_LENGTH_MAX: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """``headline`` becomes the subject; ``table`` are amounts and instants by their names; ``then`` is what follows from it.

    ``steps`` are sentences, each with a command where there is one.
    """

    headline: str
    said: str
    table: tuple[tuple[str, str], ...]
    then: str
    steps: tuple[tuple[str, str], ...]


# -- the words of each kind ----------------------------------------------------------------------------------------------


def _warn(scope: str, facts: Mapping[str, str]) -> Words:
    limit, end = _limit(facts), _until(facts)
    then = f"Nothing is refused yet. When the limit is used up, calls of {scope} and below are refused{end}."
    if facts["mode"] == "observe":
        then = f"{scope} only observes: calls go on, whatever it comes to."
    return Words(
        headline=f"{scope} has used {facts['percent']}% of its {limit}",
        said=f"Budget {scope} has used {_used(facts)} of its limit of {limit}: {facts['percent']}%, at or above your mark of "
        f"{facts['threshold']}%.",
        table=_window_table(facts),
        then=then,
        steps=(("See who spends:", f"spendgate status {scope}"), _raise_step(scope, facts)),
    )


def _exceeded(scope: str, facts: Mapping[str, str]) -> Words:
    limit, end = _limit(facts), _until(facts)
    if facts.get("asked"):
        headline = f"{scope} refuses calls: limit of {limit}"
        said = (
            f"Budget {scope} has refused a call: it may need {_amount(facts, 'asked')}, and "
            f"{_amount(facts, 'left')} are left of the limit of {limit}."
        )
        then = f"Calls that do not fit are refused{end}; smaller ones still pass. Of a window's refusals you are told of the first."
    else:
        headline = f"{scope} has used {facts['percent']}% of its {limit}"
        said = f"Budget {scope} has used {_used(facts)} of its limit of {limit}: {facts['percent']}%."
        then = f"Paid calls of {scope} and below are refused{end}."
        if facts["mode"] == "observe":
            then = f"{scope} only observes: calls go on, and its limit stops nothing."
    steps = [("See who spends:", f"spendgate status {scope}"), _raise_step(scope, facts)]
    if facts["mode"] != "observe":
        steps.append(_for_a_while("Or raise it for a while, which ends by itself:", scope, facts))
    else:
        steps.append((f"To have it refuse, set `mode: enforce` on {scope} in spendgate.yaml, then:", _APPLY))
    return Words(headline=headline, said=said, table=_window_table(facts), then=then, steps=tuple(steps))


def _run_exceeded(scope: str, facts: Mapping[str, str]) -> Words:
    limit = _limit(facts)
    return Words(
        headline=f"a run of {scope} is refused: limit of {limit}",
        said=f"Run {facts['run']} was refused a call that may need {_amount(facts, 'asked')}: {_amount(facts, 'left')} are left "
        f"of its limit of {limit}.",
        table=_window_table(facts),
        then=f"Other runs go on. You are told of the first run of {scope} a day, and of no other.",
        steps=(
            ("See what its runs have used:", f"spendgate status {scope}"),
            # The time that its calls take together is no limit that can be raised.
            *(
                [_for_a_while("If this one needs more, raise its limit for a while:", facts["run"], facts)]
                if facts["measure"] != ACTIVE
                else []
            ),
            (f"If runs need more, raise `runs: limits:` of {scope} in spendgate.yaml, then:", _APPLY),
        ),
    )


def _stopped(scope: str, facts: Mapping[str, str]) -> Words:
    reservation, run = facts["reservation"], facts.get("run")
    what = run or scope
    table = [("stopped", when(facts["since"])), ("by", facts["by"])]
    steps = [("See how it stands:", f"spendgate status {what}")]
    if reservation:
        table.append(("reservation", reservation))
        steps.insert(0, ("See the call that did it:", f"spendgate reservations show {reservation}"))
    return Words(
        headline=f"{'a run of ' if run else ''}{scope} is stopped",
        said=f"{'Run' if run else 'Budget'} {what} is stopped: {_quoted(facts['reason'])}.",
        table=tuple(table),
        then=f"No paid call of {what} or below it passes until somebody resumes it. Calls in flight finish and settle.",
        steps=(*steps, ("Once you know why, let calls through again:", f"spendgate resume {what} --reason TEXT")),
    )


def _bound_violated(scope: str, facts: Mapping[str, str]) -> Words:
    provider, model, feature = facts["provider"], facts["model"], facts["feature"]
    return Words(
        headline=f"{provider} billed more than the bound for {model}",
        said=f"Provider {provider} billed {facts['billed']} USD for a call of model {model}, which was bounded at "
        f"{facts['reserved']} USD.",
        table=(
            ("billed", f"{facts['billed']} USD, which is what was booked"),
            ("bound", f"{facts['reserved']} USD"),
            ("budget", scope),
            ("since", when(facts["since"])),
            ("reservation", facts["reservation"]),
        ),
        then=f"Budget {scope} is stopped, and {feature} of {model} at {provider} is refused to everybody until a person lifts it.",
        steps=(
            ("See the call, and compare its price rows with the provider's bill:",
             f"spendgate reservations show {facts['reservation']}"),
            ("Once the price or the bound is right, lift the block:",
             f"spendgate blocks lift {provider} {model} {feature} --reason TEXT"),
            ("Then resume the budget:", f"spendgate resume {scope} --reason TEXT"),
        ),
    )  # fmt: skip


def _unknown_money(scope: str, facts: Mapping[str, str]) -> Words:
    many = facts["count"] != "1"
    calls = f"{facts['count']} calls" if many else "a call"
    provider = facts["provider"]
    table = [
        ("held", f"{facts['amount']} USD for {calls}"),
        ("oldest", f"{facts['oldest']}, {facts['oldest_amount']} USD, since {when(facts['since'])}"),
    ]
    if provider:
        table.append(("provider", f"{provider} (of the oldest)"))
    return Words(
        headline=f"{facts['amount']} USD of {scope} are held for calls of unknown outcome",
        said=f"Budget {scope} has held {facts['amount']} USD for over an hour for {calls} whose outcome nobody knows: the request "
        "was sent, and no usable answer came.",
        table=tuple(table),
        then="The money stays reserved until somebody says what became of it; after the time that the stack is set to (72 hours "
        "unless changed) it is charged in full. You are told once a day while it lasts.",
        steps=(
            ("List them:", f"spendgate reservations list --budget {scope} --state unknown"),
            ("Ask the provider, where it keeps a record:", f"spendgate reconcile ask {facts['oldest']}"),
            ("Or say yourself what the provider's own page says it cost:",
             f"spendgate reconcile settle {facts['oldest']} --cost USD --evidence TEXT"),
        ),
    )  # fmt: skip


def _unpriced(scope: str, facts: Mapping[str, str]) -> Words:
    provider, model = facts["provider"], facts["model"]
    return Words(
        headline=f"calls of {scope} are refused: no price for {model}",
        said=f"A call of budget {scope} by route {facts['route']} was refused: no price is known of model {model} at provider "
        f"{provider}.",
        table=(("model", model), ("provider", provider), ("route", facts["route"])),
        then="Calls by this route are refused until there is a price. Nothing was sent. You are told once a day while it lasts.",
        steps=(
            ("See what is shipped for the provider:", f"spendgate prices list {provider} --all"),
            ("Add the price of the provider's page, in USD per million tokens:",
             f"spendgate prices add {provider} {model} --input USD --output USD --source URL"),
        ),
    )  # fmt: skip


def _provider_spend_limit(scope: str, facts: Mapping[str, str]) -> Words:
    del scope
    provider = facts["provider"]
    return Words(
        headline=f"{provider} refuses calls: your account's spend limit there",
        said=f"Provider {provider} refused a call for the spend limit of your own account there ({facts['limit']}). It is the "
        "provider's limit, and no budget of Spendgate's.",
        table=(("provider", provider), ("model", facts["model"]), ("first seen on", facts["budget"])),
        then=f"Every call to {provider} is likely to be refused there until the limit is raised or its month ends. Nothing was billed "
        "for it, and what was reserved is released.",
        steps=(
            (f"Raise the limit, or add credit, on the billing page of {provider}. No command of Spendgate's can.", ""),
        ),
    )


def _catalogue_stale(scope: str, facts: Mapping[str, str]) -> Words:
    del scope
    days = facts["age_days"]
    return Words(
        headline=f"the shipped prices were last checked {days} days ago",
        said=f"The prices that this version ships were last compared with the providers' pages {days} days ago.",
        table=(("shipped prices", facts["rows"]), ("not checked for 45 days", facts["stale"])),
        then="Calls go on at these prices. Where a provider has raised its own since, a bill can be higher than the bound.",
        steps=(
            ("Deploy a newer version of Spendgate; its prices are added, and none of yours is overwritten.", ""),
            ("Or compare what your routes reach:", "spendgate prices check"),
        ),
    )


WORDS: Final = {
    "warn": _warn,
    "exceeded": _exceeded,
    "run_exceeded": _run_exceeded,
    "stopped": _stopped,
    "bound_violated": _bound_violated,
    "unknown_money": _unknown_money,
    "unpriced": _unpriced,
    "provider_spend_limit": _provider_spend_limit,
    "catalogue_stale": _catalogue_stale,
}
_APPLY: Final = "spendgate apply -f spendgate.yaml"


# -- phrases ---------------------------------------------------------------------------------------------------------------


def _limit(facts: Mapping[str, str]) -> str:
    window = facts["window"]
    span = {"life": "in its lifetime", "hour": "an hour"}.get(window, f"a {window}")
    return f"{facts['maximum']} {_unit(facts)} {span}"


def _unit(facts: Mapping[str, str]) -> str:
    return "USD" if facts["measure"] == "usd" else facts["measure"].replace("_", " ")


def _amount(facts: Mapping[str, str], name: str) -> str:
    return f"{facts[name]} {_unit(facts)}"


def _used(facts: Mapping[str, str]) -> str:
    return _amount(facts, "used")


def _until(facts: Mapping[str, str]) -> str:
    return f" until {when(facts['resets_at'])}" if facts["resets_at"] else " until there is room again"


def _window_table(facts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    since = f", since {when(facts['since'])}" if facts["since"] else ""
    rows = [("settled" if facts["measure"] == "usd" else "used", f"{_used(facts)}{since}")]
    if facts["reserved"]:
        unknown = facts["unknown"]
        of_it = f", of it {unknown} USD of unknown outcome" if unknown not in ("", "0") else ""
        rows.append(("reserved", f"{facts['reserved']} USD{of_it}"))
    rows.append(("left", _amount(facts, "left")))
    if facts["resets_at"]:
        rows.append(("resets", when(facts["resets_at"])))
    return tuple(rows)


def _raise_step(scope: str, facts: Mapping[str, str]) -> tuple[str, str]:
    where = f"{facts['measure']}: {{{facts['window']}: ...}}"
    return f"If it needs more, set a higher limit ({where} of {scope}) in spendgate.yaml, then:", _APPLY


def _for_a_while(why: str, path: str, facts: Mapping[str, str]) -> tuple[str, str]:
    limit = f"{facts['window']}=USD" if facts["measure"] == "usd" else f"{facts['measure']}.{facts['window']}=NUMBER"
    return why, f"spendgate resume {path} --reason TEXT --limit {limit} --until 6h"


def when(text: str) -> str:
    """Return an instant for people: ``2026-11-30 02:14 UTC``."""
    return f"{text[:16].replace('T', ' ')} UTC"


def _quoted(text: str) -> str:
    """Return somebody's words on one line, cut."""
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split()).rstrip(".")
    return line if len(line) <= QUOTED_LENGTH_MAX else f"{line[:QUOTED_LENGTH_MAX]}..."
