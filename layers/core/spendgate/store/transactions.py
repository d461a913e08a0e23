"""The ledger's writes, as data.

Each ``*_steps`` function returns the steps of one TransactWriteItems call and performs no I/O: a test can read
them, and ``ledger.py`` sends them. A condition compares and never adds: a guard holds ``limit - asked``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from spendgate.core.block import Block
from spendgate.core.budget import Amounts, BudgetPolicy, Stop, TemporaryLimits
from spendgate.core.counters import RESERVED, Hold, on_reserve, on_resolve, on_unknown
from spendgate.core.policy import guards
from spendgate.core.reservation import Reservation, Resolution, State
from spendgate.core.route import Candidate
from spendgate.core.usage import BUCKETS
from spendgate.core.window import COUNTED, instant
from spendgate.store import items
from spendgate.store.values import encode, encode_item
from spendgate.store.write import Step, Update, put_new

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef as Write

# DynamoDB's own limit: docs.aws.amazon.com/amazondynamodb TransactWriteItems, "up to 100 action requests".
STEPS_MAX: Final = 100
# A bucket costs a condition two operators and some twenty characters, of DynamoDB's 300 operators and 4 KB an expression.
EVICTIONS_MAX: Final = 64


def reserve_steps(
    table: str,
    reservation: Reservation,
    path: Sequence[BudgetPolicy],
    *,
    evictions: Mapping[str, Mapping[str, int]],
) -> list[Step]:
    """Reserve on every budget of the path, or on none; ValueError where a limit would watch what nothing counts.

    The limits are those of the windows that contain the reservation's own instant, since these are what it moves.
    ``evictions`` names, for a budget whose hour is in the way, the old buckets and the values they must still have.
    """
    _demand_not_negative(reservation.asked)
    put = put_new(table, items.encode_reservation(reservation))
    steps = [Step(write=put, subject="reservation", name=reservation.id)]
    if reservation.idempotency_key is not None:
        steps.append(_claim_step(table, reservation, reservation.idempotency_key))
    for policy, hold in zip(path, reservation.holds, strict=True):
        evicted = evictions.get(policy.path, {})
        update = _reserve_update(table, policy, hold, reservation.asked, reservation.created_at, evicted)
        steps.append(Step(write=update.write(), subject="budget", name=policy.path))
    return _checked(steps)


def unknown_steps(table: str, reservation: Reservation, resolution: Resolution, now: datetime) -> list[Step]:
    """Mark a call in flight as of unknown outcome: nothing is freed, and what asks for it stops."""
    record = _record_update(table, reservation, resolution, "in_flight", now)
    steps = [Step(write=record.write(), subject="reservation", name=reservation.id)]
    for hold in reservation.holds:
        update = Update(table, items.budget_key(hold.budget)).add(on_unknown(reservation.asked)).exists()
        if hold.budget in reservation.stops_on_unknown:
            _latch(update, "the outcome of a call is unknown", reservation.id, now)
        if update.writes:
            steps.append(Step(write=update.write(), subject="budget", name=hold.budget))
    return _checked(steps)


def shown_step(table: str, reservation: Reservation, candidate: Candidate, response_id: str) -> Step:
    """Write down which answer a call in flight is getting; whatever ends the call has the last word of it."""
    update = Update(table, items.reservation_key(reservation.id)).equals("state", "in_flight")
    update.set({"response_id": response_id, "provider": candidate.provider, "model": candidate.model})
    return Step(write=update.write(), subject="reservation", name=reservation.id)


def put_off_step(table: str, reservation_id: str, until: datetime, now: datetime) -> Step:
    """Let nobody look at an unknown reservation before ``until``, unless another has put it off already."""
    update = Update(table, items.reservation_key(reservation_id)).equals("state", "unknown")
    update.at_most("open_sk", instant(now)).set({"open_sk": instant(until)})
    return Step(write=update.write(), subject="reservation", name=reservation_id)


def resolve_steps(
    table: str, reservation: Reservation, resolution: Resolution, now: datetime, *, expected: State
) -> list[Step]:
    """End a reservation that is in state ``expected``: the record, every budget, and the leaf's usage record.

    What is settled above the reservation is booked as it is, stops the leaf budget, and blocks what was bounded wrongly:
    in this very transaction, so that no block is ever lost.
    """
    actual = resolved_amounts(reservation, resolution)
    record = _record_update(table, reservation, resolution, expected, now)
    steps = [Step(write=record.write(), subject="reservation", name=reservation.id)]
    for hold in reservation.holds:
        changes = on_resolve(hold, reservation.asked, actual, was_unknown=expected == "unknown")
        update = Update(table, items.budget_key(hold.budget)).add(changes).exists()
        if hold.budget == reservation.path and broke_bound(reservation, actual):
            _latch(update, "a provider billed more than the bound of a call", reservation.id, now)
        if update.writes:
            steps.append(Step(write=update.write(), subject="budget", name=hold.budget))
    usage = _usage_update(table, reservation, resolution, actual)
    steps.append(Step(write=usage.write(), subject="usage", name=reservation.path))
    if broke_bound(reservation, actual):
        steps += _block_steps(table, reservation, resolution, actual, now)
    return _checked(steps)


def broke_bound(reservation: Reservation, actual: Amounts) -> bool:
    """Tell whether a call cost more than was promised of it; of a call without a price nothing was."""
    return actual.usd > reservation.asked.usd and not reservation.unpriced


def lift_steps(table: str, block: Block) -> list[Step]:
    """Take a block away, if nothing has happened since it was read."""
    delete: Write = {
        "Delete": {
            "TableName": table,
            "Key": encode_item(items.block_key(block.candidate, block.feature)),
            "ConditionExpression": "#v = :v",
            "ExpressionAttributeNames": {"#v": "violations"},
            "ExpressionAttributeValues": {":v": encode(block.violations)},
        }
    }
    return [Step(write=delete, subject="block", name=block.feature)]


def resolved_amounts(reservation: Reservation, resolution: Resolution) -> Amounts:
    """Return what a resolution comes to. A call that was admitted counts as a request whatever became of it."""
    asked = reservation.asked
    match resolution.state:
        case "settled":
            if resolution.actual is None:
                raise ValueError("a settlement names its amounts")
            _demand_not_negative(resolution.actual)
            return _with_time(reservation, resolution.actual)
        case "released":
            return Amounts(requests=asked.requests)
        case "charged":
            return _with_time(reservation, replace(asked, active_milliseconds=0))
        case _:
            raise ValueError(f"{resolution.state} does not end a reservation")


def _with_time(reservation: Reservation, actual: Amounts) -> Amounts:
    """Return the amounts with all the time that a call may have taken, where time counts and nobody measured it."""
    if not reservation.asked.active_milliseconds or actual.active_milliseconds:
        return actual
    longest = (reservation.deadline - reservation.created_at) // timedelta(milliseconds=1)
    return replace(actual, active_milliseconds=longest)


def stop_steps(table: str, path: str, stop: Stop, now: datetime) -> list[Step]:
    """Latch a budget, unless it is stopped already."""
    update = Update(table, items.budget_key(path)).exists()
    _latch(update, stop.reason, stop.reservation, now, by=stop.by)
    return [Step(write=update.write(), subject="budget", name=path)]


def latch_step(table: str, path: str, stop: Stop) -> Step:
    """Latch a budget that is not stopped yet; whoever comes second changes nothing."""
    update = Update(table, items.budget_key(path)).exists().absent("stop")
    _latch(update, stop.reason, stop.reservation, stop.at, by=stop.by)
    return Step(write=update.write(), subject="budget", name=path)


def resume_steps(table: str, path: str, rev: int, temporary: TemporaryLimits | None = None) -> list[Step]:
    """Let a budget go on, with these temporary limits or with none, if nobody changed it since it was read."""
    update = Update(table, items.budget_key(path)).exists().equals("rev", rev).set({"stop": None, "rev": rev + 1})
    update.set({"temporary": None if temporary is None else items.temporary_attribute(temporary)})
    return [Step(write=update.write(), subject="budget", name=path)]


def policy_steps(table: str, policy: BudgetPolicy, now: datetime, *, expected_rev: int | None) -> list[Step]:
    """Write the policy part of a budget: a new one (None), or over a revision; counters and stop stay."""
    update = Update(table, items.budget_key(policy.path)).set(items.policy_attributes(policy))
    update.set({"temporary": None if policy.temporary is None else items.temporary_attribute(policy.temporary)})
    if expected_rev is None:
        update.absent().set({"rev": 1, "created_at": instant(now)})
    else:
        update.equals("rev", expected_rev).set({"rev": expected_rev + 1})
    return [Step(write=update.write(), subject="budget", name=policy.path)]


def raise_rev_step(table: str, path: str) -> Step:
    """Raise a budget's revision: every function that holds an older policy, or key, reads again."""
    update = Update(table, items.budget_key(path)).exists().add({"rev": 1})
    return Step(write=update.write(), subject="budget", name=path)


def trim_steps(
    table: str,
    path: str,
    hour: Mapping[str, Mapping[str, int]],
    past: Sequence[str],
    *,
    ended_at_rev: int | None = None,
) -> list[Step]:
    """Take old buckets off their hour, and remove the counters of periods that are over.

    ``hour`` gives, for each rolling counter (``usd.hour``), the buckets to evict with the values they must still have.
    ``ended_at_rev`` is the revision at which temporary limits were read that are over: they go, too.
    """
    update = Update(table, items.budget_key(path)).remove(*past)
    if ended_at_rev is not None:
        # Nothing is decided by it, so no gateway needs to read again; but newer ones, of another revision, must stay.
        update.remove("temporary").equals("rev", ended_at_rev)
    for total, buckets in hour.items():
        update.add({total: -sum(buckets.values())}).remove(*buckets)
        for name, value in buckets.items():
            update.equals(name, value)
    return [Step(write=update.exists().write(), subject="budget", name=path)]


def _reserve_update(
    table: str, policy: BudgetPolicy, hold: Hold, asked: Amounts, at: datetime, evicted: Mapping[str, int]
) -> Update:
    update = Update(table, items.budget_key(policy.path))
    changes = dict(on_reserve(hold, asked))
    for name, value in evicted.items():
        changes[_total_of(name)] -= value
        # The bucket must be as it was read: a settlement that came since would be lost.
        update.equals(name, value).remove(name)
    update.add(changes)
    if not update.writes:
        # A call that costs nothing is recorded too, and conditions need a write to stand on.
        update.touch(RESERVED)
    allowed = guards(policy, asked, at)
    if hold.budget != policy.path or not {guard.counter for guard in allowed} <= set(hold.counters):
        raise ValueError(f"reservation does not count what limits budget {policy.path}")
    if any(guard.at_most < 0 for guard in allowed):
        # A counter that has not begun would pass such a guard.
        raise ValueError(f"more is asked than budget {policy.path} ever allows")
    if policy.elapsed_max is not None:
        update.set_once("started_at", instant(at))
    if policy.rev == 0:
        # The first call of a run makes its budget; whoever comes second reads it from this condition's item.
        attributes = {name: value for name, value in items.policy_attributes(policy).items() if value is not None}
        return update.absent().set({**attributes, "rev": 1, "created_at": instant(at)})
    update.equals("rev", policy.rev).absent("stop")
    if policy.elapsed_max is not None:
        update.later_than("started_at", instant(at - policy.elapsed_max))
    for guard in allowed:
        update.at_most(
            guard.counter, guard.at_most + sum(v for n, v in evicted.items() if _total_of(n) == guard.counter)
        )
    return update


def _demand_not_negative(amounts: Amounts) -> None:
    if any(amounts.of(measure) < 0 for measure in COUNTED):
        raise ValueError("an amount is not negative")


def _total_of(bucket: str) -> str:
    return bucket.rpartition(".")[0]


def _claim_step(table: str, reservation: Reservation, key: str) -> Step:
    claim = {
        **items.idempotency_key(reservation.path, key),
        "reservation": reservation.id,
        "fingerprint": reservation.fingerprint,
        "expires_at": int((reservation.created_at + items.RETENTION).timestamp()),
    }
    return Step(write=put_new(table, claim), subject="idempotency", name=key)


def _block_steps(
    table: str, reservation: Reservation, resolution: Resolution, actual: Amounts, now: datetime
) -> list[Step]:
    """Block the feature at the candidate that served, or at each that may have; a block keeps its first cause."""
    provider, model = resolution.provider or reservation.provider, resolution.model or reservation.model
    feature = reservation.shape.features[0]
    cause: dict[str, object] = {
        "feature": feature,
        "reservation": reservation.id,
        "budget": reservation.path,
        "dialect": reservation.dialect,
        "at": instant(now),
        "reserved": reservation.asked.usd,
        "billed": actual.usd,
        "shape": items.encode_shape(reservation.shape),
    }
    candidates = dict.fromkeys(quote.candidate for quote in reservation.quotes)
    if provider is not None and model is not None:
        candidates = {Candidate(provider=provider, model=model): None}
    steps = []
    for one in candidates:
        update = Update(table, items.block_key(one, feature)).add({"violations": 1})
        for name, value in {"provider": one.provider, "model": one.model, **cause}.items():
            update.set_once(name, value)
        steps.append(Step(write=update.write(), subject="block", name=feature))
    return steps


def _record_update(
    table: str, reservation: Reservation, resolution: Resolution, expected: State, now: datetime
) -> Update:
    update = Update(table, items.reservation_key(reservation.id)).equals("state", expected)
    attributes: dict[str, object] = {
        "state": resolution.state,
        "reason": resolution.reason,
        "usage": None if resolution.usage is None else items.encode_usage(resolution.usage),
        "provider": resolution.provider,
        "model": resolution.model,
        "response_model": resolution.response_model,
        "response_id": resolution.response_id,
        "evidence": resolution.evidence,
        "resolved_by": resolution.by,
    }
    update.set({name: value for name, value in attributes.items() if value is not None})
    if resolution.state == "unknown":
        return update
    actual = resolved_amounts(reservation, resolution)
    update.set({"actual": items.encode_amounts(actual), "resolved_at": instant(now)})
    update.set({"expires_at": int((now + items.RETENTION).timestamp())})
    return update.remove("open_pk", "open_sk")


def _usage_update(table: str, reservation: Reservation, resolution: Resolution, actual: Amounts) -> Update:
    provider, model = resolution.provider or "-", resolution.model or "-"
    served = Candidate(provider=provider, model=model)
    row_id = next((quote.rows[-1].id for quote in reservation.quotes if quote.candidate == served and quote.rows), "-")
    changes = {"calls": 1, f"calls_{resolution.state}": 1, "cost": actual.usd, "tokens": actual.tokens}
    if resolution.usage is not None and resolution.state == "settled":
        changes.update({bucket: getattr(resolution.usage, bucket) for bucket in BUCKETS})
        changes.update({f"fee:{kind}": units for kind, units in resolution.usage.fees})
    key = items.usage_key(reservation, provider, model, row_id)
    return Update(table, key).add(changes).set(items.usage_place(key))


def _latch(update: Update, reason: str, reservation: str | None, now: datetime, *, by: str = "spendgate") -> None:
    stop = Stop(reason=reason, at=now, by=by, reservation=reservation)
    update.set_once("stop", items.stop_attribute(stop)).add({"rev": 1})


def _checked(steps: list[Step]) -> list[Step]:
    if len(steps) > STEPS_MAX:
        raise ValueError(f"a transaction has at most {STEPS_MAX} steps")
    return steps
