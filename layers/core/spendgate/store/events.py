"""Operators' events in the ledger: appended in the transaction of what they tell, and never changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from spendgate.core.event import Event
from spendgate.core.reservation import new_id
from spendgate.core.window import instant, parse_instant
from spendgate.store.write import Step, put_new

# What agents' keys do, of which there may be thousands a day: apart, so that nobody reads them who looks for the others.
KINDS_OF_KEYS: Final = frozenset({"run_key_minted", "run_ended"})


def partition(day: str, *, keys: bool) -> str:
    """Return where the events of a UTC day stand: those of keys, or all others."""
    return f"EVENT#{day}#KEYS" if keys else f"EVENT#{day}"


def event_step(table: str, event: Event, randomness: bytes) -> Step:
    """Return the write of an event; ten random bytes make it one of its own."""
    item = {
        "pk": partition(f"{event.at:%Y-%m-%d}", keys=event.kind in KINDS_OF_KEYS),
        "sk": new_id(event.at, randomness),
        "kind": event.kind,
        "subject": event.subject,
        "at": instant(event.at),
        "by": event.by,
        "reason": event.reason,
        "before": None if event.before is None else json.dumps(event.before, default=str),
        "after": None if event.after is None else json.dumps(event.after, default=str),
    }
    return Step(write=put_new(table, item), subject="event", name=event.subject, own=True)


def decode_event(item: Mapping[str, Any]) -> Event:
    """Return an event from its item (plain values)."""
    return Event(
        kind=item["kind"],
        subject=item["subject"],
        at=parse_instant(item["at"]),
        by=item["by"],
        reason=item.get("reason"),
        before=json.loads(item["before"]) if "before" in item else None,
        after=json.loads(item["after"]) if "after" in item else None,
    )
