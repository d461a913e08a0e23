"""Merged prices as rows in the syntax of ``prices:``, with our own overlay on top."""

from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from spendgate.configuration_yaml import Findings, read
from tools.catalogue.merge import usd
from tools.catalogue.offer import BUCKETS, STANDARD, Card, Offer, Report, Windows

OVERLAY: Final = Path(__file__).with_name("overlay")
ALWAYS: Final = "1970-01-01"

Row = dict[str, Any]
_MERGED: Final = ("fees", "factors", "service")


def rows(provider: str, groups: Iterable[tuple[list[str], Windows]], report: Report) -> list[Row]:
    """Return a provider's rows, by model and instant."""
    found = [
        _row(names, start, offer, f"{provider}: {names[0]}", report)
        for names, windows in groups
        for start, offer in windows
    ]
    for entry in _overlay(provider):
        found = list(_overlaid(found, entry, provider, report))
    return sorted(found, key=lambda row: (row["model"], row["from"]))


def _row(names: list[str], start: date | None, offer: Offer, subject: str, report: Report) -> Row:
    row: Row = {"model": names[0], "from": start.isoformat() if start else ALWAYS}
    row.update(_card(offer.cards[STANDARD], subject, report))
    service = {tier: _card(card, subject, report) for tier, card in offer.cards.items() if tier != STANDARD}
    if service:
        row["service"] = dict(sorted(service.items()))
    factors: dict[str, dict[str, str]] = {}
    for (kind, value), factor in sorted(offer.factors.items()):
        factors.setdefault(kind, {})[value] = decimal_text(factor)
    if factors:
        row["factors"] = factors
    if offer.fees:
        row["fees"] = {kind: decimal_text(fee) for kind, fee in sorted(offer.fees.items())}
    if offer.context:
        row["context_tokens"] = offer.context
    if offer.output_max:
        row["output_tokens_max"] = offer.output_max
    if names[1:]:
        row["aliases"] = sorted(names[1:])
    return row


def _card(card: Card, subject: str, report: Report) -> Row:
    whole = _rates(card[0], subject, report)
    tiers = [{**_threshold(first), **_rates(rates, subject, report)} for first, rates in sorted(card.items()) if first]
    if tiers:
        whole["tiers"] = tiers
    return whole


def _threshold(first: int) -> Row:
    # "From 200,000 on" and "above 272,000" are each written as the provider says it.
    return {"above": first, "inclusive": True} if first % 1000 == 0 else {"above": first - 1}


def _rates(rates: dict[str, Fraction], subject: str, report: Report) -> Row:
    return {bucket: _rate(rates[bucket], f"{subject}: {bucket}", report) for bucket in BUCKETS if bucket in rates}


def _rate(rate: Fraction, subject: str, report: Report) -> str:
    whole = -(-rate.numerator // rate.denominator)
    if whole != rate:
        report.add("Rates rounded up to a whole picodollar a token", f"{subject} {usd(rate)} to {usd(Fraction(whole))}")
    return usd(Fraction(whole))


def decimal_text(value: Decimal) -> str:
    """Return a decimal as it is written in a file."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _overlay(provider: str) -> list[Row]:
    file = OVERLAY / f"{provider}.yaml"
    if not file.exists():
        return []
    findings = Findings()
    entries: list[Row] = read(file.read_text(encoding="utf-8"), findings)["overlay"]
    findings.raise_any()
    return entries


def _overlaid(found: list[Row], entry: Row, provider: str, report: Report) -> Iterator[Row]:
    """Lay one entry over the rows of its models; one that is ``new`` is a row of its own."""
    given = {
        name: value for name, value in entry.items() if name not in ("models", "why", "new", "drop", "drop_aliases")
    }
    if "new" in entry:
        yield from found
        yield {"model": entry["models"][0], **given}
        report.add(
            "Overlay", f"{provider}: {entry['models'][0]} from {given['from']}: a row of our own ({entry['why']})"
        )
        return
    missed = set(entry["models"]) - {row["model"] for row in found}
    if missed:
        raise ValueError(f"overlay/{provider}.yaml names {', '.join(sorted(missed))}, which no source has")
    for row in found:
        if row["model"] in entry["models"] and "drop" in entry:
            continue
        if row["model"] in entry["models"] and entry.get("from", row["from"]) == row["from"]:
            yield _without_aliases(_laid(row, given), entry.get("drop_aliases", []))
        else:
            yield row
    report.add("Overlay", f"{provider}: {', '.join(entry['models'])}: {entry['why']}")


def _laid(row: Row, given: Row) -> Row:
    laid = {**row, **given}
    for name in _MERGED:
        if name in row and name in given:
            laid[name] = {**row[name], **given[name]}
    return laid


def _without_aliases(row: Row, dropped: list[str]) -> Row:
    aliases = [alias for alias in row.get("aliases", []) if alias not in dropped]
    return {
        **{name: value for name, value in row.items() if name != "aliases"},
        **({"aliases": aliases} if aliases else {}),
    }
