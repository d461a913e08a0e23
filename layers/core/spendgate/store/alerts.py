"""Marks of what was told, the outbox of what is to be told, and the record of what was.

    post     mark (must be absent) and outbox item, in one transaction
    claim    the outbox item is somebody's for a while
    sent     the outbox item goes, the record comes, in one transaction

Whoever dies between two of these leaves an item in the outbox, and it is told a little later: at least once, never not at all.
Gateways write to the same outbox. Every item's ``pk`` begins with ``ALERT#``, so that a role may write these and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from spendgate.core.alert import Alert
from spendgate.core.window import instant, parse_instant
from spendgate.store.items import RETENTION, Item, Key
from spendgate.store.reader import Reader
from spendgate.store.transact import ConditionsFailed, Timing, persist, transact
from spendgate.store.values import encode, encode_item
from spendgate.store.write import Step

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

OUTBOX: Final = "ALERT#OUTBOX"
# A claim is over after so long: longer than the function that made it can live.
LEASE: Final = timedelta(seconds=90)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An alert that was published, and when."""

    alert: Alert
    at: datetime


@dataclass(frozen=True, slots=True)
class AlertStore:
    """Alerts in the ledger's table; nothing here is money."""

    table: str
    client: DynamoDBClient
    timing: Timing

    def post(self, alert: Alert) -> bool:
        """Put an alert into the outbox unless its mark says that it was there before; LedgerUnavailable."""
        mark = {
            **mark_key(alert),
            "at": instant(alert.at),
            "rearms_at": None if alert.rearms_at is None else instant(alert.rearms_at),
            "expires_at": _expires_at(alert.at),
        }
        write: Any = {"Put": {"TableName": self.table, "Item": encode_item(mark), **_absent_or_rearmed(alert)}}
        try:
            self._transact([_step(write, alert), _step(self._put(_outbox_item(alert)), alert)])
        except ConditionsFailed:
            return False
        return True

    def unmarked(self, alerts: Iterable[Alert]) -> tuple[Alert, ...]:
        """Return those that were not posted yet, so that what stands for long costs reads and no writes."""
        wanted = {alert.name: alert for alert in alerts}
        found = self._reader.items_of([mark_key(alert) for alert in wanted.values()])
        marked = {(item["pk"], item["sk"]): item for item in found}
        return tuple(alert for alert in wanted.values() if not _stands(marked.get(_pair(mark_key(alert))), alert.at))

    def outbox(self) -> tuple[Alert, ...]:
        """Return what is to be told, the oldest first; claimed or not."""
        found = [_decode(item) for item in self._reader.items_at(OUTBOX)]
        return tuple(sorted(found, key=lambda alert: alert.at))

    def claim(self, alert: Alert, now: datetime) -> bool:
        """Make an alert of the outbox one's own for a while; False where somebody else has it, or has told it."""
        values = {":stale": encode(instant(now - LEASE))}
        condition = "attribute_exists(pk) AND (attribute_not_exists(claimed_at) OR claimed_at <= :stale)"
        return self._put_if({**_outbox_item(alert), "claimed_at": instant(now)}, condition, values)

    def let_go(self, alert: Alert, now: datetime) -> None:
        """End one's own claim: it could not be told, and the next run tries again."""
        self._put_if(_outbox_item(alert), "claimed_at = :mine", {":mine": encode(instant(now))})

    def sent(self, alert: Alert, now: datetime) -> None:
        """Take an alert that was told out of the outbox, and record it."""
        item = {
            "pk": f"ALERT#LOG#{now:%Y-%m-%d}",
            "sk": f"{instant(now)}#{alert.name}",
            **_content(alert),
            "told_at": instant(now),
            "expires_at": _expires_at(now),
        }
        gone: Any = {"Delete": {"TableName": self.table, "Key": encode_item(_outbox_key(alert))}}
        self._transact([_step(gone, alert), _step(self._put(item), alert)])

    def told(self, day: str) -> tuple[Told, ...]:
        """Return what was told on one UTC day, the newest first."""
        items = list(self._reader.items_at(f"ALERT#LOG#{day}"))
        return tuple(Told(alert=_decode(item), at=parse_instant(item["told_at"])) for item in reversed(items))

    @property
    def _reader(self) -> Reader:
        return Reader(self.table, self.client, self.timing)

    # -- within ------------------------------------------------------------------------------------------------------

    def _put(self, item: Item) -> Any:
        return {"Put": {"TableName": self.table, "Item": encode_item(item)}}

    def _transact(self, steps: list[Step]) -> None:
        transact(self.client, steps, name=self.timing.randomness(12).hex(), timing=self.timing)

    def _put_if(self, item: Item, condition: str, values: Mapping[str, Any]) -> bool:
        def put() -> bool:
            try:
                self.client.put_item(
                    TableName=self.table,
                    Item=encode_item(item),
                    ConditionExpression=condition,
                    ExpressionAttributeValues=values,
                )
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") == "ConditionalCheckFailedException":
                    return False
                raise
            return True

        return persist(put, self.timing)


def told_steps(table: str, alert: Alert) -> list[Step]:
    """Return the writes that put an alert into the outbox with what it tells of, in whose transaction they go."""
    mark = {**mark_key(alert), "at": instant(alert.at), "expires_at": _expires_at(alert.at)}
    items = (mark, _outbox_item(alert))
    puts: list[Any] = [{"Put": {"TableName": table, "Item": encode_item(item)}} for item in items]
    return [_step(put, alert) for put in puts]


def mark_key(alert: Alert) -> Key:
    """Return the key of an alert's mark."""
    return {"pk": f"ALERT#MARK#{alert.scope}", "sk": f"{alert.kind}#{alert.mark}"}


def _absent_or_rearmed(alert: Alert) -> dict[str, Any]:
    return {
        "ConditionExpression": "attribute_not_exists(pk) OR rearms_at <= :now",
        "ExpressionAttributeValues": {":now": encode(instant(alert.at))},
    }


def _stands(mark: Mapping[str, Any] | None, now: datetime) -> bool:
    return mark is not None and ("rearms_at" not in mark or mark["rearms_at"] > instant(now))


def _pair(key: Key) -> tuple[str, str]:
    return key["pk"], key["sk"]


def _outbox_key(alert: Alert) -> Key:
    return {"pk": OUTBOX, "sk": alert.name}


def _outbox_item(alert: Alert) -> Item:
    return {**_outbox_key(alert), **_content(alert), "expires_at": _expires_at(alert.at)}


def _content(alert: Alert) -> Item:
    return {
        "kind": alert.kind,
        "scope": alert.scope,
        "mark": alert.mark,
        "at": instant(alert.at),
        "severity": alert.severity,
        "facts": json.dumps(dict(alert.facts), separators=(",", ":")),
    }


def _decode(item: Mapping[str, Any]) -> Alert:
    return Alert(
        kind=item["kind"],
        scope=item["scope"],
        mark=item["mark"],
        at=parse_instant(item["at"]),
        severity=item["severity"],
        facts=json.loads(item["facts"]),
    )


def _expires_at(at: datetime) -> int:
    return int((at + RETENTION).timestamp())


def _step(write: Any, alert: Alert) -> Step:
    return Step(write=write, subject="event", name=alert.name)
