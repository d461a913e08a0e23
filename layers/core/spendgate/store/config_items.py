"""The items of the configuration table, and the writes of a price row, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spendgate.core.key import Key
from spendgate.core.price import PriceRow
from spendgate.core.route import Candidate, Framing, Provider, Route
from spendgate.core.window import instant, parse_instant
from spendgate.store.price_items import row_text
from spendgate.store.transactions import STEPS_MAX
from spendgate.store.values import encode_item
from spendgate.store.write import Step, put_new

# A price row with its writes.
Priced = tuple[PriceRow, list[Step]]


def price_steps(table: str, row: PriceRow) -> list[Step]:
    """Return the writes of a price row under each of its names."""
    item = {
        "pk": f"PRICE#{row.provider}#{row.model}",
        "sk": instant(row.valid_from),
        "row": row_text(row),
    }
    steps = [Step(write=put_new(table, item), subject="event", name=row.id)]
    for alias in row.aliases:
        # The same row under another exact name; what the name is an alias of stands in the row.
        named = {**item, "pk": f"PRICE#{row.provider}#{alias}", "sk": f"{item['sk']}#{row.model}"}
        put: Any = {"Put": {"TableName": table, "Item": encode_item(named)}}
        steps.append(Step(write=put, subject="event", name=alias))
    return steps


def batches(rows: Sequence[Priced]) -> Iterator[list[Priced]]:
    """Yield the rows in groups whose steps, with one for the event, fit into a transaction."""
    batch: list[Priced] = []
    size = 1
    for row, steps in rows:
        if batch and size + len(steps) > STEPS_MAX:
            yield batch
            batch, size = [], 1
        batch.append((row, steps))
        size += len(steps)
    if batch:
        yield batch


def without_none(item: Mapping[str, object]) -> dict[str, object]:
    """Return an item without what is left out."""
    return {name: value for name, value in item.items() if value is not None}


def key_attributes(key: Key) -> dict[str, object]:
    """Return a key's attributes, None for those that it is without."""
    return {
        "hash": key.hash,
        "name": key.name,
        "budget": key.budget,
        "models": list(key.models),
        "expires_at": None if key.expires_at is None else instant(key.expires_at),
        "revoked_at": None if key.revoked_at is None else instant(key.revoked_at),
    }


def decode_key(item: Mapping[str, Any]) -> Key:
    """Return a key from its item (plain values)."""
    return Key(
        hash=item["hash"],
        name=item["name"],
        budget=item["budget"],
        models=tuple(item["models"]),
        expires_at=parse_instant(item["expires_at"]) if "expires_at" in item else None,
        revoked_at=parse_instant(item["revoked_at"]) if "revoked_at" in item else None,
    )


def decode_provider(item: Mapping[str, Any]) -> Provider:
    """Return a provider from its item (plain values)."""
    fields = {name: value for name, value in item.items() if name in Provider.__dataclass_fields__}
    for name in ("free_fields", "free_betas"):
        fields[name] = tuple(item.get(name, ()))
    return Provider(**{**fields, "framing": Framing(**item["framing"])})


def decode_route(item: Mapping[str, Any]) -> Route:
    """Return a route from its item (plain values)."""
    return Route(
        name=item["name"],
        candidates=tuple(Candidate(**one) for one in item["candidates"]),
        allow=tuple(sorted(item.get("allow", {}).items())),
    )
