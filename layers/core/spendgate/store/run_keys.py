"""Keys that keys have minted: in the ledger's table, beside the run that each belongs to.

The gateway may write the ledger and only read the configuration, so a key that a caller makes stands here. It names every
key above it; what is read of them and of the budgets is of one instant, and whoever revokes one of them raises the
revision of its budget, which is on the path of every call below: so a minted key is dead from the next call on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from spendgate.core.budget import BudgetPolicy, BudgetState, prefixes
from spendgate.core.event import Event
from spendgate.core.key import Key
from spendgate.core.run import KEYS_PER_HOUR_MAX
from spendgate.core.window import instant, parse_instant
from spendgate.errors import RevisionConflict
from spendgate.store import events, items
from spendgate.store.config import Config
from spendgate.store.config_items import decode_key
from spendgate.store.transact import ConditionsFailed, persist, transact
from spendgate.store.values import decode_item, encode_item
from spendgate.store.write import Step, Update, put_new

# A key that has expired is told so for a while, and is then gone.
KEEP_EXPIRED: Final = timedelta(days=7)
_HOUR: Final = timedelta(hours=1)


class TooManyKeys(Exception):
    """So many keys were minted below a budget in this hour that there may be no more."""


@dataclass(frozen=True, slots=True)
class RunKeys:
    """Reads and writes minted keys, in the tables of ``config``."""

    config: Config

    def key(self, key_hash: str) -> Key | None:
        """Return a minted key by the hash of its secret, None if there is none."""
        config = self.config
        answer = persist(
            lambda: config.client.get_item(
                TableName=config.ledger_table, Key=encode_item(_key(key_hash)), ConsistentRead=True
            ),
            config.timing,
        )
        item = answer.get("Item")
        return None if item is None else _decode(decode_item(item))

    def keys_and_path(self, key: Key) -> tuple[tuple[Key, ...], tuple[BudgetState, ...]]:
        """Return a minted key after all above it, and the budgets of its path, as they stand at one instant."""
        config = self.config
        (first, _), *rest = key.minted_by
        tables = [
            (config.table, first),
            *((config.ledger_table, one) for one, _ in rest),
            (config.ledger_table, key.hash),
        ]
        wanted = [(table, _key(key_hash)) for table, key_hash in tables]
        wanted += [(config.ledger_table, items.budget_key(path)) for path in prefixes(key.budget)]
        gets: Any = [{"Get": {"TableName": table, "Key": encode_item(one)}} for table, one in wanted]
        answer = persist(lambda: config.client.transact_get_items(TransactItems=gets), config.timing)
        found = [decode_item(one["Item"]) if one.get("Item") else None for one in answer["Responses"]]
        keys = tuple(_decode(item) for item in found[: len(tables)] if item is not None)
        return keys, tuple(items.decode_budget(item) for item in found[len(tables) :] if item is not None)

    def mint(self, key: Key, run: BudgetPolicy, above: str, now: datetime, event: Event) -> None:
        """Write a run, the key for it and the event, all or none; RevisionConflict where there is such a run, TooManyKeys."""
        config = self.config
        steps = mint_steps(config.ledger_table, key, run, above, now)
        steps.append(events.event_step(config.ledger_table, event, config.timing.randomness(10)))
        try:
            transact(
                config.client,
                steps,
                name=config.timing.randomness(12).hex(),
                timing=config.timing,
            )
        except ConditionsFailed as conditions:
            if any(one.step.subject == "key" and one.item is not None for one in conditions.failed):
                # The secret is random: what is there is what this very call has written before its answer was lost.
                return
            if any(one.step.subject == "budget" for one in conditions.failed):
                raise RevisionConflict(f"there is a run {run.path} already") from conditions
            raise TooManyKeys from conditions


def mint_steps(table: str, key: Key, run: BudgetPolicy, above: str, now: datetime) -> list[Step]:
    """Return the writes of a run that nothing is counted on yet, of its key, and of how many there were this hour.

    No budget that others share is touched: that a key or a budget above has changed is seen by the first call.
    """
    attributes = {name: value for name, value in items.policy_attributes(run).items() if value is not None}
    budget = {**items.budget_key(run.path), **attributes, "rev": run.rev, "created_at": instant(now)}
    hour = now.replace(minute=0, second=0, microsecond=0)
    count = Update(table, {"pk": f"MINTED#{above}", "sk": f"{hour:%Y-%m-%dT%HZ}"})
    count.add({"keys": 1}).at_most("keys", KEYS_PER_HOUR_MAX - 1)
    count.set({"expires_at": int((hour + 2 * _HOUR).timestamp())})
    return [
        Step(write=put_new(table, budget), subject="budget", name=run.path),
        Step(write=put_new(table, _encode(key, now)), subject="key", name=key.name),
        Step(write=count.write(), subject="event", name=above),
    ]


def _key(key_hash: str) -> dict[str, str]:
    return {"pk": f"KEY#{key_hash}", "sk": "KEY"}


def _encode(key: Key, now: datetime) -> dict[str, object]:
    if key.expires_at is None:
        raise ValueError("a minted key expires")
    return {
        **_key(key.hash),
        "hash": key.hash,
        "name": key.name,
        "budget": key.budget,
        "models": list(key.models),
        # Not "expires_at", which is the tables' time to live.
        "key_expires_at": instant(key.expires_at),
        "expires_at": int((key.expires_at + KEEP_EXPIRED).timestamp()),
        "minted_by": [list(pair) for pair in key.minted_by],
        "created_at": instant(now),
    }


def _decode(item: Mapping[str, Any]) -> Key:
    if "minted_by" not in item:
        return decode_key(item)
    return Key(
        hash=item["hash"],
        name=item["name"],
        budget=item["budget"],
        models=tuple(item["models"]),
        expires_at=parse_instant(item["key_expires_at"]),
        minted_by=tuple((key_hash, budget) for key_hash, budget in item["minted_by"]),
    )
