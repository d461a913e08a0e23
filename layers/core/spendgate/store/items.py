"""What stands in the tables: keys and attributes of each item, from and to the core's values.

docs/data-model.md shows an example of each. Nested records that nothing queries (holds, pinned prices) are one
JSON text: smaller, and cheaper to write than a map.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final

from spendgate.core.block import PLAIN, Block, Shape
from spendgate.core.budget import (
    Amounts,
    BudgetPolicy,
    BudgetState,
    Limit,
    RunPolicy,
    Stop,
    TemporaryLimits,
    owner,
    parent,
)
from spendgate.core.counters import RESERVED, UNKNOWN, Hold
from spendgate.core.reservation import UNRESOLVED, Reservation
from spendgate.core.route import Candidate
from spendgate.core.usage import BUCKETS, Usage
from spendgate.core.window import COUNTED, counter_window, day, instant, parse_instant
from spendgate.store.price_items import decode_quote, quote_text

TREE_ROOT: Final = "/"
OPEN_SHARDS: Final = 16
BLOCKS: Final = "BLOCK"
# Resolved reservations are kept so long that every counter but a lifetime's can be proven from them.
RETENTION: Final = timedelta(days=400)
# Calls go on while temporary limits stand, and each transaction pays for the size of the item that they stand in.
TEMPORARY_REASON_LENGTH_MAX: Final = 200
_DIGEST_LENGTH: Final = 32

Item = dict[str, Any]
Key = dict[str, str]


def budget_key(path: str) -> Key:
    """Return the key of a budget's item."""
    return {"pk": f"BUDGET#{path}", "sk": "BUDGET"}


def reservation_key(reservation_id: str) -> Key:
    """Return the key of a reservation's item."""
    return {"pk": f"RES#{reservation_id}", "sk": "RES"}


def idempotency_key(path: str, key: str) -> Key:
    """Return the key of the item that makes an idempotency key unique below a leaf budget."""
    return {"pk": f"IDEM#{path}#{key}", "sk": "IDEM"}


def usage_key(reservation: Reservation, provider: str, model: str, row_id: str) -> Key:
    """Return the key of the leaf's usage record of the reservation's day."""
    sort_key = f"{day(reservation.created_at)}#{provider}#{model}#{row_id}"
    return {"pk": usage_partition(reservation.path), "sk": sort_key}


def usage_partition(path: str) -> str:
    """Return the partition of a budget's usage records: in the table its own, in index ``tree`` those of its runs."""
    return f"USAGE#{path}"


def usage_place(key: Key) -> Key:
    """Return where index ``tree`` has the usage record of a run: below the budget that it belongs to, by day.

    Runs come by the thousands and are over: nobody could ask each of them. Any other budget's records are under its own
    path, and stand in no index. The place never changes, so that only a record's first write is written there, too.
    """
    path = key["pk"].removeprefix("USAGE#")
    if owner(path) == path:
        return {}
    # A digest: of one length whatever the names, and no two records have the same, so that reading can go on after any.
    digest = sha256(f"{path}#{key['sk']}".encode()).hexdigest()[:_DIGEST_LENGTH]
    return {"tree_pk": usage_partition(owner(path)), "tree_sk": f"{key['sk'].partition('#')[0]}#{digest}"}


def block_key(candidate: Candidate, feature: str) -> Key:
    """Return the key of a block. There are few, and all are in one partition: one query reads them."""
    return {"pk": BLOCKS, "sk": f"{candidate.provider}#{candidate.model}#{feature}"}


def leaf_day(path: str, utc_day: str) -> str:
    """Return the partition of index ``by_budget``: a leaf budget and the UTC day of the reservation."""
    return f"{path}#{utc_day}"


def open_shard(reservation_id: str) -> str:
    """Return the partition of index ``open``: sixteen of them, so that no single one is hot."""
    return f"OPEN#{sum(reservation_id.encode()) % OPEN_SHARDS}"


def policy_attributes(policy: BudgetPolicy) -> Item:
    """Return the policy part of a budget's item, without ``rev``, ``stop`` and ``temporary``."""
    return {
        "limits": _limits(policy.limits),
        "mode": policy.mode,
        "unbudgeted": policy.unbudgeted or None,
        "default_output_tokens": policy.default_output_tokens,
        "failover": policy.failover or None,
        "runs": None if policy.runs is None else _runs(policy.runs),
        "stop_on_unknown": policy.stop_on_unknown or None,
        "allow": dict(policy.allow) or None,
        "warn_at": None if policy.warn_at is None else list(policy.warn_at),
        # Not "expires_at", which is the tables' time to live: an expired run keeps its record.
        "run_expires_at": None if policy.expires_at is None else instant(policy.expires_at),
        "elapsed_max_seconds": None if policy.elapsed_max is None else int(policy.elapsed_max.total_seconds()),
        "stop_on_refusal": policy.stop_on_refusal or None,
        "tree_pk": parent(policy.path) or TREE_ROOT,
        "tree_sk": policy.path,
    }


def stop_attribute(stop: Stop) -> Item:
    """Return the latch as it stands in a budget's item."""
    record = {"reason": stop.reason, "at": instant(stop.at), "by": stop.by}
    return record if stop.reservation is None else {**record, "reservation": stop.reservation}


def temporary_attribute(temporary: TemporaryLimits) -> Item:
    """Return temporary limits as they stand in a budget's item. Of a long reason the trail has the rest."""
    return {
        "limits": _limits(temporary.limits),
        "until": instant(temporary.until),
        "at": instant(temporary.at),
        "by": temporary.by,
        "reason": temporary.reason[:TEMPORARY_REASON_LENGTH_MAX],
    }


def decode_budget(item: Mapping[str, Any]) -> BudgetState:
    """Return a budget's state from its item (plain values)."""
    stop, runs, temporary = item.get("stop"), item.get("runs"), item.get("temporary")
    policy = BudgetPolicy(
        path=item["pk"].removeprefix("BUDGET#"),
        rev=item["rev"],
        limits=_decode_limits(item["limits"]),
        mode=item["mode"],
        unbudgeted=item.get("unbudgeted", False),
        default_output_tokens=item.get("default_output_tokens"),
        failover=item.get("failover", False),
        runs=None
        if runs is None
        else RunPolicy(
            limits=_decode_limits(runs["limits"]),
            expire_after=timedelta(seconds=runs["expire_after_seconds"]) if "expire_after_seconds" in runs else None,
            stop_on_unknown=runs.get("stop_on_unknown", False),
            elapsed_max=_seconds(runs.get("elapsed_max_seconds")),
            stop_on_refusal=runs.get("stop_on_refusal", False),
            delegate=runs.get("delegate", 0),
        ),
        stop_on_unknown=item.get("stop_on_unknown", False),
        allow=tuple(sorted(item.get("allow", {}).items())),
        warn_at=tuple(item["warn_at"]) if "warn_at" in item else None,
        expires_at=parse_instant(item["run_expires_at"]) if "run_expires_at" in item else None,
        elapsed_max=_seconds(item.get("elapsed_max_seconds")),
        stop_on_refusal=item.get("stop_on_refusal", False),
        stop=None
        if stop is None
        else Stop(
            reason=stop["reason"], at=parse_instant(stop["at"]), by=stop["by"], reservation=stop.get("reservation")
        ),
        temporary=None
        if temporary is None
        else TemporaryLimits(
            limits=_decode_limits(temporary["limits"]),
            until=parse_instant(temporary["until"]),
            at=parse_instant(temporary["at"]),
            by=temporary["by"],
            reason=temporary["reason"],
        ),
    )
    return BudgetState(
        policy=policy,
        reserved=item.get(RESERVED, 0),
        unknown=item.get(UNKNOWN, 0),
        counters={name: value for name, value in item.items() if is_counter(name)},
        created_at=parse_instant(item["created_at"]) if "created_at" in item else None,
        started_at=parse_instant(item["started_at"]) if "started_at" in item else None,
    )


def is_counter(name: str) -> bool:
    """Tell a counter's attribute from the others."""
    return name.partition(".")[0] in COUNTED and "." in name


def encode_reservation(reservation: Reservation) -> Item:
    """Return a reservation's item (plain values; None is left out when it is written)."""
    is_open = reservation.state in UNRESOLVED
    return {
        **reservation_key(reservation.id),
        "id": reservation.id,
        "state": reservation.state,
        "path": reservation.path,
        "key_name": reservation.key_name,
        "route": reservation.route,
        "dialect": reservation.dialect,
        "fingerprint": reservation.fingerprint,
        "asked": encode_amounts(reservation.asked),
        "holds": json.dumps([[h.budget, h.counters, h.buckets] for h in reservation.holds], separators=(",", ":")),
        "quotes": "[" + ",".join(quote_text(quote) for quote in reservation.quotes) + "]",
        "created_at": instant(reservation.created_at),
        "deadline": instant(reservation.deadline),
        "bound_tokens": [reservation.input_tokens_max, reservation.output_tokens_max, reservation.output_cap],
        "stamped": reservation.stamped or None,
        "unpriced": reservation.unpriced or None,
        "shape": encode_shape(reservation.shape) or None,
        "idempotency_key": reservation.idempotency_key,
        "stops_on_unknown": list(reservation.stops_on_unknown) or None,
        "actual": None if reservation.actual is None else encode_amounts(reservation.actual),
        "usage": None if reservation.usage is None else encode_usage(reservation.usage),
        "provider": reservation.provider,
        "model": reservation.model,
        "response_model": reservation.response_model,
        "response_id": reservation.response_id,
        "resolved_at": None if reservation.resolved_at is None else instant(reservation.resolved_at),
        "reason": reservation.reason,
        "evidence": reservation.evidence,
        "resolved_by": reservation.by,
        "leaf_day": leaf_day(reservation.path, day(reservation.created_at)),
        "open_pk": open_shard(reservation.id) if is_open else None,
        "open_sk": instant(reservation.deadline) if is_open else None,
    }


def decode_reservation(item: Mapping[str, Any]) -> Reservation:
    """Return a reservation from its item (plain values)."""
    input_tokens, output_tokens, cap = item["bound_tokens"]
    return Reservation(
        id=item["id"],
        state=item["state"],
        path=item["path"],
        key_name=item["key_name"],
        route=item["route"],
        dialect=item["dialect"],
        fingerprint=item["fingerprint"],
        asked=Amounts(**item["asked"]),
        holds=tuple(
            Hold(budget=budget, counters=tuple(counters), buckets=tuple(buckets))
            for budget, counters, buckets in json.loads(item["holds"])
        ),
        quotes=tuple(decode_quote(quote) for quote in json.loads(item["quotes"])),
        created_at=parse_instant(item["created_at"]),
        deadline=parse_instant(item["deadline"]),
        input_tokens_max=input_tokens,
        output_tokens_max=output_tokens,
        output_cap=cap,
        stamped=item.get("stamped", False),
        unpriced=item.get("unpriced", False),
        shape=_decode_shape(item.get("shape", {})),
        idempotency_key=item.get("idempotency_key"),
        stops_on_unknown=tuple(item.get("stops_on_unknown", ())),
        actual=Amounts(**item["actual"]) if "actual" in item else None,
        usage=decode_usage(item["usage"]) if "usage" in item else None,
        provider=item.get("provider"),
        model=item.get("model"),
        response_model=item.get("response_model"),
        response_id=item.get("response_id"),
        resolved_at=parse_instant(item["resolved_at"]) if "resolved_at" in item else None,
        reason=item.get("reason"),
        evidence=item.get("evidence"),
        by=item.get("resolved_by"),
    )


def encode_shape(shape: Shape) -> Item:
    """Return what of a shape is not that of a plain request."""
    if shape == PLAIN:
        return {}
    plain = asdict(PLAIN)
    return {
        name: list(value) if name == "features" else value
        for name, value in asdict(shape).items()
        if value != plain[name]
    }


def decode_block(item: Mapping[str, Any]) -> Block:
    """Return a block from its item (plain values)."""
    return Block(
        candidate=Candidate(provider=item["provider"], model=item["model"]),
        feature=item["feature"],
        reservation=item["reservation"],
        budget=item["budget"],
        dialect=item["dialect"],
        at=parse_instant(item["at"]),
        reserved=item["reserved"],
        billed=item["billed"],
        shape=_decode_shape(item["shape"]),
        violations=item["violations"],
    )


def encode_usage(usage: Usage) -> Item:
    """Return the buckets that are not empty, and fees as ``fee:<kind>``."""
    record = {bucket: count for bucket in BUCKETS if (count := getattr(usage, bucket))}
    return {**record, **{f"fee:{kind}": units for kind, units in usage.fees}}


def decode_usage(record: Mapping[str, int]) -> Usage:
    """Return the usage that ``encode_usage`` wrote."""
    fees = tuple((name.removeprefix("fee:"), units) for name, units in record.items() if name.startswith("fee:"))
    return Usage(**{name: count for name, count in record.items() if name in BUCKETS}, fees=fees)


def _decode_shape(record: Mapping[str, Any]) -> Shape:
    return Shape(**{**record, **({"features": tuple(record["features"])} if "features" in record else {})})


def _limits(limits: tuple[Limit, ...]) -> Item:
    return {f"{limit.measure}.{limit.window}": limit.maximum for limit in limits}


def _decode_limits(record: Mapping[str, int]) -> tuple[Limit, ...]:
    # The map has no order; the order of a refusal must not depend on it.
    pairs = ((counter_window(name), maximum) for name, maximum in sorted(record.items()))
    return tuple(Limit(measure=measure, window=window, maximum=maximum) for (measure, window), maximum in pairs)


def _runs(runs: RunPolicy) -> Item:
    record: Item = {"limits": _limits(runs.limits)}
    if runs.expire_after is not None:
        record["expire_after_seconds"] = int(runs.expire_after.total_seconds())
    if runs.elapsed_max is not None:
        record["elapsed_max_seconds"] = int(runs.elapsed_max.total_seconds())
    for name in ("stop_on_unknown", "stop_on_refusal", "delegate"):
        if value := getattr(runs, name):
            record[name] = value
    return record


def _seconds(count: int | None) -> timedelta | None:
    return None if count is None else timedelta(seconds=count)


def encode_amounts(amounts: Amounts) -> Item:
    """Return the amounts that are not zero, by measure."""
    return {measure: value for measure in COUNTED if (value := amounts.of(measure))}
