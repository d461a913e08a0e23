"""Budgets, reservations and resolutions for tests of the store, and what stands in the table for them."""

import itertools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from spendgate.core.budget import Amounts, BudgetPolicy, Limit, Stop, prefixes
from spendgate.core.counters import hold_of
from spendgate.core.event import Event
from spendgate.core.price import PriceRow, RateCard, Rates
from spendgate.core.reservation import Reservation, Resolution, new_id
from spendgate.core.window import Measure, Window
from spendgate.store.audit import AuditReport, audit
from spendgate.store.ledger import Ledger
from spendgate.store.values import decode_item, encode, encode_item

NOW = datetime(2026, 11, 29, 23, 14, 30, tzinfo=UTC)

_numbers = itertools.count(1)


def usd_limits(**maximums: int) -> tuple[Limit, ...]:
    """Limits of money by window, in picodollars: ``usd_limits(day=100)``; sorted as the ledger returns them."""
    limits = (limit_of("usd", window, maximum) for window, maximum in maximums.items())
    return tuple(sorted(limits, key=lambda limit: limit.window))


def limit_of(measure: Measure, window: str, maximum: int) -> Limit:
    """One limit; the window as text, so that it can be a keyword's name."""
    windows: dict[str, Window] = {
        "request": "request",
        "minute": "minute",
        "hour": "hour",
        "day": "day",
        "month": "month",
        "life": "life",
    }
    return Limit(measure=measure, window=windows[window], maximum=maximum)


def a_policy(path: str = "acme", *, limits: Sequence[Limit] = (), rev: int = 0, **rest: Any) -> BudgetPolicy:
    """A budget's policy; ``rev`` is what a written one has."""
    return BudgetPolicy(path=path, rev=rev, limits=tuple(limits), **rest)


def opened(ledger: Ledger, *policies: BudgetPolicy, now: datetime = NOW) -> tuple[BudgetPolicy, ...]:
    """Write budgets, and return their policies as the ledger then holds them."""
    for policy in policies:
        ledger.put_budget(policy, expected_rev=None, now=now)
    return path_of(ledger, policies[-1].path)


def path_of(ledger: Ledger, leaf: str) -> tuple[BudgetPolicy, ...]:
    """The policies on a leaf's path as they stand."""
    return tuple(state.policy for state in ledger.budgets_on(prefixes(leaf)))


def a_reservation(
    path: Sequence[BudgetPolicy], *, usd: int = 40, now: datetime = NOW, asked: Amounts | None = None, **rest: Any
) -> Reservation:
    """A reservation on these budgets. Each has an id of its own."""
    attributes: dict[str, Any] = {
        "id": new_id(now, next(_numbers).to_bytes(10)),
        "state": "in_flight",
        "path": path[-1].path,
        "key_name": "triage",
        "route": "agent-model",
        "dialect": "openai",
        "fingerprint": "f" * 64,
        "asked": asked or Amounts(usd=usd, requests=1, tokens=10, tool_calls=2),
        "holds": tuple(hold_of(policy, now) for policy in path),
        "quotes": (),
        "created_at": now,
        "deadline": now + timedelta(minutes=15),
        "stops_on_unknown": tuple(policy.path for policy in path if policy.stop_on_unknown),
    }
    return Reservation(**{**attributes, **rest})


def settled(usd: int, **rest: Any) -> Resolution:
    """A settlement of so many picodollars."""
    amounts = Amounts(usd=usd, requests=1, tokens=rest.pop("tokens", 7), tool_calls=rest.pop("tool_calls", 2))
    return Resolution(
        state="settled", reason="usage", actual=amounts, **{"provider": "openai", "model": "house", **rest}
    )


RELEASED = Resolution(state="released", reason="never connected")
CHARGED = Resolution(state="charged", reason="unknown for too long")
UNKNOWN = Resolution(state="unknown", reason="the stream was cut")


def an_event(kind: str = "budget_updated", subject: str = "acme", *, at: datetime = NOW) -> Event:
    """An operator's event."""
    return Event(kind=kind, subject=subject, at=at, by="ops", reason="because", before={"day": "1"}, after={"day": "2"})


def a_stop(reason: str = "enough", *, at: datetime = NOW) -> Stop:
    """A stop by an operator."""
    return Stop(reason=reason, at=at, by="ops")


def counters(ledger: Ledger, path: str) -> dict[str, int]:
    """All counters of a budget, those that are zero left out."""
    state = ledger.budget(path)
    assert state is not None
    found = {"reserved": state.reserved, "unknown": state.unknown, **state.counters}
    return {name: value for name, value in found.items() if value}


def audited(ledger: Ledger, now: datetime = NOW) -> AuditReport:
    """The audit of a table at rest."""
    return audit(ledger, now, pause=lambda: None)


def assert_conserved(ledger: Ledger, now: datetime = NOW) -> None:
    """G9: every counter is the sum over its reservations."""
    assert audited(ledger, now).differences == ()


def rows(ledger: Ledger) -> dict[str, dict[str, Any]]:
    """Everything in the ledger's table, by key: to see that nothing changed."""
    pages = ledger.client.get_paginator("scan").paginate(TableName=ledger.table, ConsistentRead=True)
    items = (decode_item(item) for page in pages for item in page["Items"])
    return {f"{item['pk']}|{item['sk']}": item for item in items}


def tamper(ledger: Ledger, key: Mapping[str, str], attributes: Mapping[str, object]) -> None:
    """Write past the ledger."""
    names = {f"#{number}": name for number, name in enumerate(attributes)}
    ledger.client.update_item(
        TableName=ledger.table,
        Key=encode_item(key),
        UpdateExpression="SET " + ", ".join(f"{name} = :{name[1:]}" for name in names),
        ExpressionAttributeNames=names,
        ExpressionAttributeValues={f":{name[1:]}": encode(attributes[names[name]]) for name in names},
    )


def a_row(model: str = "house", *, valid_from: datetime = NOW, rate: int = 1) -> PriceRow:
    """A price row of one rate for everything."""
    rates = Rates(input=rate, cache_read=rate, cache_write=rate, cache_write_long=rate, output=rate)
    return PriceRow(provider="openai", model=model, valid_from=valid_from, card=RateCard(rates=rates))
