"""The configuration that the gateway reads: keys, providers, routes and prices, in a table of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from spendgate.core.alert import DEFAULTS, AlertPolicy, CatalogueState
from spendgate.core.block import Block
from spendgate.core.budget import BudgetState, prefixes
from spendgate.core.event import Event
from spendgate.core.key import Key
from spendgate.core.price import PriceRow
from spendgate.core.route import Provider, Route
from spendgate.core.window import instant
from spendgate.errors import BudgetMissing, ConfigurationInvalid, Problem, RevisionConflict
from spendgate.store import events, items
from spendgate.store.config_items import (
    Priced,
    batches,
    decode_key,
    decode_provider,
    decode_route,
    key_attributes,
    price_steps,
    without_none,
)
from spendgate.store.price_items import decode_row
from spendgate.store.reader import Reader
from spendgate.store.transact import ConditionsFailed, Timing, persist, transact
from spendgate.store.transactions import raise_rev_step
from spendgate.store.values import decode_item, encode_item, may_be_key
from spendgate.store.write import Step, Update

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

# Of the data model, docs/data-model.md. It rises with what an older version of the code must not go on with, and with nothing else.
DATA_VERSION: Final = 1
_DATA: Final = {"pk": "META#data", "sk": "META"}
MANAGED: Final = {"pk": "META#managed", "sk": "META"}
_ALERTS: Final = {"pk": "META#alerts", "sk": "META"}
CATALOGUE: Final = {"pk": "META#catalogue", "sk": "META"}
# On an item that each version writes whole: the code that wrote it gives a run's usage record its place in the index.
PLACES_USAGE: Final = "places_usage"


@dataclass(frozen=True, slots=True)
class Config:
    """Keys, providers, routes and prices. ``ledger_table`` is where a key's budget is: both change in one transaction."""

    table: str
    ledger_table: str
    client: DynamoDBClient
    timing: Timing

    # -- keys --------------------------------------------------------------------------------------------------------

    def key(self, key_hash: str) -> Key | None:
        """Return a key's record by the hash of its secret, None if there is none."""
        item = self._get({"pk": f"KEY#{key_hash}", "sk": "KEY"})
        return None if item is None else decode_key(item)

    def key_and_path(self, key: Key) -> tuple[Key | None, tuple[BudgetState, ...]]:
        """Return a key and the budgets of its path as they stand at one instant.

        Of one instant, since a key that was read before a revocation must not meet a revision of after it.
        """
        gets: Any = [
            {"Get": {"TableName": self.table, "Key": encode_item({"pk": f"KEY#{key.hash}", "sk": "KEY"})}},
            *(
                {"Get": {"TableName": self.ledger_table, "Key": encode_item(items.budget_key(path))}}
                for path in prefixes(key.budget)
            ),
        ]
        answer = persist(lambda: self.client.transact_get_items(TransactItems=gets), self.timing)
        first, *rest = answer["Responses"]
        found = decode_key(decode_item(first["Item"])) if first.get("Item") else None
        return found, tuple(items.decode_budget(decode_item(one["Item"])) for one in rest if one.get("Item"))

    def keys(self) -> tuple[Key, ...]:
        """Return all keys, by name."""
        return tuple(sorted((decode_key(item) for item in self._all("KEY#")), key=lambda key: key.name))

    def put_key(self, key: Key, event: Event, *, known: Key | None = None) -> None:
        """Write a key, new or changed, and raise its budget's revision with it; BudgetMissing, RevisionConflict.

        A key that leaves another budget raises the revision of both. With ``known`` the key must still be this, so
        that a change which was made up before a revocation cannot undo it.
        """
        stored = known or self.key(key.hash)
        write = Update(self.table, {"pk": f"KEY#{key.hash}", "sk": "KEY"})
        if stored is None:
            write.absent()
        else:
            write.exists().equals("budget", stored.budget)
            if stored.revoked_at is None:
                write.absent("revoked_at")
            else:
                write.equals("revoked_at", instant(stored.revoked_at))
        write.set(key_attributes(key))
        budgets = {key.budget} if stored is None else {key.budget, stored.budget}
        self._with_budgets([Step(write=write.write(), subject="key", name=key.name)], budgets, event)

    def revoke_key(self, key: Key, now: datetime, event: Event) -> None:
        """Revoke a key and raise its budget's revision in one transaction, so that no cached key outlives it."""
        stored = self.key(key.hash) or key
        self.put_key(replace(stored, revoked_at=now), event)

    # -- providers, routes, prices -----------------------------------------------------------------------------------

    def provider(self, name: str) -> Provider | None:
        """Return a provider by name."""
        item = self._get({"pk": f"PROVIDER#{name}", "sk": "PROVIDER"})
        return None if item is None else decode_provider(item)

    def providers(self) -> tuple[Provider, ...]:
        """Return all providers, by name."""
        return tuple(sorted((decode_provider(item) for item in self._all("PROVIDER#")), key=lambda one: one.name))

    def put_provider(self, provider: Provider, event: Event) -> None:
        """Write a provider, new or changed."""
        listed = {"free_fields": list(provider.free_fields) or None, "free_betas": list(provider.free_betas) or None}
        self._put({"pk": f"PROVIDER#{provider.name}", "sk": "PROVIDER", **asdict(provider), **listed}, event)

    def route(self, name: str) -> Route | None:
        """Return a route by name."""
        item = self._get({"pk": f"ROUTE#{name}", "sk": "ROUTE"})
        return None if item is None else decode_route(item)

    def routes(self) -> tuple[Route, ...]:
        """Return all routes, by name."""
        return tuple(sorted((decode_route(item) for item in self._all("ROUTE#")), key=lambda one: one.name))

    def put_route(self, route: Route, event: Event) -> None:
        """Write a route, new or changed."""
        candidates = [{"provider": one.provider, "model": one.model} for one in route.candidates]
        item = {"pk": f"ROUTE#{route.name}", "sk": "ROUTE", "name": route.name, "candidates": candidates}
        self._put({**item, "allow": dict(route.allow) or None}, event)

    def delete_route(self, name: str, event: Event) -> None:
        """Remove a route; a name that is not there stays away."""
        delete: Any = {"Delete": {"TableName": self.table, "Key": encode_item({"pk": f"ROUTE#{name}", "sk": "ROUTE"})}}
        self._write([Step(write=delete, subject="event", name=name)], event)

    def prices(self, provider: str, model: str) -> tuple[PriceRow, ...]:
        """Return all price rows of exactly this (provider, model) or listed alias, the oldest first."""
        found = list(Reader(self.table, self.client, self.timing).items_at(f"PRICE#{provider}#{model}"))
        # Rows of the model itself outweigh those of another model that has its name as an alias.
        own = [item for item in found if "#" not in item["sk"]]
        rows = [decode_row(item["row"]) for item in own or found]
        return tuple(sorted(rows, key=lambda row: row.valid_from))

    def all_prices(self) -> tuple[PriceRow, ...]:
        """Return every price row, by provider, model and instant."""
        # A row stands under each of its names once; "#" is in the sort key of an alias only.
        rows = [decode_row(item["row"]) for item in self._all("PRICE#") if "#" not in item["sk"]]
        return tuple(sorted(rows, key=lambda row: (row.provider, row.model, row.valid_from)))

    def add_price(self, row: PriceRow, event: Event) -> bool:
        """Add a price row; False if one of this (provider, model, instant) exists, which stays as it is."""
        return self._add_batch([(row, price_steps(self.table, row))], lambda _: event) == 1

    def add_prices(self, rows: Sequence[PriceRow], event: Callable[[Sequence[PriceRow]], Event]) -> int:
        """Add the price rows that are absent, and return how many; what exists stays as it is.

        Many go into one transaction, with one event for those that it adds: what ends early can be done again.
        """
        added = 0
        for batch in batches([(row, price_steps(self.table, row)) for row in rows]):
            added += self._add_batch(batch, event)
        return added

    def _add_batch(self, batch: list[Priced], event: Callable[[Sequence[PriceRow]], Event]) -> int:
        # Each turn leaves out at least the row whose condition failed, so there are at most as many as rows.
        while batch:
            steps = [step for _, steps in batch for step in steps]
            try:
                self._write(steps, event([row for row, _ in batch]))
            except ConditionsFailed as conditions:
                present = {one.step.name for one in conditions.failed}
                absent = [(row, steps) for row, steps in batch if row.id not in present]
                if len(absent) == len(batch):
                    raise
                batch = absent
            else:
                break
        return len(batch)

    def blocks(self) -> tuple[Block, ...]:
        """Return what a broken bound has blocked. The ledger writes it, with the settlement that showed it."""
        return Reader(self.ledger_table, self.client, self.timing).blocks()

    # -- what the file manages ---------------------------------------------------------------------------------------

    def managed(self) -> frozenset[str]:
        """Return the names that an applied file made: ``key:<name>``, ``route:<name>``, ..."""
        item = self._get(MANAGED)
        return frozenset() if item is None else frozenset(item["names"])

    def put_managed(self, names: frozenset[str]) -> None:
        """Record the names that the applied file made."""
        item = encode_item({**MANAGED, "names": sorted(names)})
        persist(lambda: self.client.put_item(TableName=self.table, Item=item), self.timing)

    # -- what people are told ------------------------------------------------------------------------------------------

    def alerts(self) -> AlertPolicy:
        """Return at what to warn; the defaults where no file has said."""
        item = self._get(_ALERTS)
        return DEFAULTS if item is None else AlertPolicy(warn_at=tuple(item["warn_at"]), slack=item["slack"])

    def put_alerts(self, policy: AlertPolicy, event: Event) -> None:
        """Write at what to warn."""
        self._put({**_ALERTS, "warn_at": list(policy.warn_at), "slack": policy.slack}, event)

    def catalogue_state(self) -> CatalogueState | None:
        """Return how old the shipped prices are, None where no catalogue was loaded by a deployment."""
        item = self._get(CATALOGUE)
        return None if item is None else CatalogueState(**{n: item[n] for n in CatalogueState.__dataclass_fields__})

    def put_catalogue_state(self, state: CatalogueState) -> None:
        """Write how old the shipped prices are."""
        item = encode_item({**CATALOGUE, **asdict(state), PLACES_USAGE: True})
        persist(lambda: self.client.put_item(TableName=self.table, Item=item), self.timing)

    # -- the data model ----------------------------------------------------------------------------------------------

    def claim_data(self) -> None:
        """Record that this version of the data model is in use; ConfigurationInvalid where the tables hold a newer one."""
        item = self._get(_DATA)
        found = 0 if item is None else item["version"]
        if found > DATA_VERSION:
            raise ConfigurationInvalid(
                [
                    Problem(
                        "",
                        f"the tables hold version {found} of the data model, and this code knows {DATA_VERSION}: deploy a newer one",
                    )
                ]
            )
        if found < DATA_VERSION:
            stored = encode_item({**_DATA, "version": DATA_VERSION})
            persist(lambda: self.client.put_item(TableName=self.table, Item=stored), self.timing)

    # -- within ------------------------------------------------------------------------------------------------------

    def _with_budgets(self, steps: list[Step], budgets: set[str], event: Event) -> None:
        raised = [raise_rev_step(self.ledger_table, path) for path in sorted(budgets)]
        try:
            self._transact([*steps, *raised, self._event(event)])
        except ConditionsFailed as conditions:
            changed = [one.step.name for one in conditions.failed if one.step.subject == "key"]
            if changed:
                raise RevisionConflict(f"key {changed[0]} was changed by somebody else") from conditions
            missing = ", ".join(one.step.name for one in conditions.failed)
            raise BudgetMissing(f"there is no budget {missing}") from conditions

    def _put(self, item: Mapping[str, object], event: Event) -> None:
        put: Any = {"Put": {"TableName": self.table, "Item": encode_item(without_none(item))}}
        self._write([Step(write=put, subject="event", name=event.subject)], event)

    def _write(self, steps: list[Step], event: Event) -> None:
        self._transact([*steps, self._event(event)])

    def _event(self, event: Event) -> Step:
        return events.event_step(self.ledger_table, event, self.timing.randomness(10))

    def _transact(self, steps: Sequence[Step]) -> None:
        transact(self.client, steps, name=self.timing.randomness(12).hex(), timing=self.timing)

    def _get(self, key: Mapping[str, str]) -> dict[str, Any] | None:
        if not may_be_key(key):
            return None
        answer = persist(
            lambda: self.client.get_item(TableName=self.table, Key=encode_item(key), ConsistentRead=True), self.timing
        )
        item = answer.get("Item")
        return None if item is None else decode_item(item)

    def _all(self, prefix: str) -> Iterator[dict[str, Any]]:
        # This table holds configuration only, some hundreds of items: an operator's command may scan it.
        request: Any = {
            "TableName": self.table,
            "FilterExpression": "begins_with(#p, :p)",
            "ExpressionAttributeNames": {"#p": "pk"},
            "ExpressionAttributeValues": {":p": {"S": prefix}},
            "ConsistentRead": True,
        }
        while True:
            answer = persist(lambda: self.client.scan(**request), self.timing)
            yield from (decode_item(item) for item in answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
