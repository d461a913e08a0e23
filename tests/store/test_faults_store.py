"""The ledger when its table conflicts, throttles, fails, is gone, or answers into the void."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from botocore.exceptions import EndpointConnectionError

from spendgate.core.budget import BudgetPolicy
from spendgate.core.reservation import Resolution
from spendgate.errors import LedgerUnavailable, RevisionConflict
from spendgate.store import config as store_config
from spendgate.store.ledger import Ledger, NotAdmitted, PolicyStale
from spendgate.store.tables import open_tables
from spendgate.store.transact import Timing, persist
from tests.store.builders import (
    CHARGED,
    NOW,
    RELEASED,
    UNKNOWN,
    a_policy,
    a_reservation,
    a_row,
    a_stop,
    an_event,
    assert_conserved,
    counters,
    opened,
    path_of,
    rows,
    settled,
    usd_limits,
)
from tests.store.faults import (
    CONFLICT,
    DENIED,
    IN_PROGRESS,
    MIXED_CONFLICT,
    OVER_CAPACITY,
    SERVER_ERROR,
    THROTTLED,
    THROTTLED_STEP,
    FakeTime,
    Fault,
    Faults,
    cancelled,
    faults,
    passing,
    unreachable,
)

PASSING = {
    "conflict": CONFLICT,
    "failed condition and conflict": MIXED_CONFLICT,
    "conflict and failed condition": cancelled("TransactionConflict", "ConditionalCheckFailed"),
    "throttled step": THROTTLED_STEP,
    "failed condition and throttled step": cancelled("ConditionalCheckFailed", "ThrottlingError"),
    "capacity of a step": cancelled(None, "ProvisionedThroughputExceeded"),
    "throttled": THROTTLED,
    "over capacity": OVER_CAPACITY,
    "in progress": IN_PROGRESS,
    "server error": SERVER_ERROR,
    "unreachable": unreachable,
}
passing_faults = pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())


@pytest.fixture
def clock() -> FakeTime:
    """Time that only sleeping moves."""
    return FakeTime()


@pytest.fixture
def patient(ledger: Ledger, clock: FakeTime) -> Ledger:
    """A ledger whose waiting is fake."""
    timing = Timing(
        monotonic=clock.monotonic,
        sleep=clock.sleep,
        random=clock.random,
        randomness=ledger.timing.randomness,
        deadline_seconds=2.0,
    )
    return Ledger(ledger.table, ledger.client, timing)


@pytest.fixture
def layer(ledger: Ledger, path: tuple[BudgetPolicy, ...]) -> Iterator[Faults]:
    """The fault layer, from after the budgets are written."""
    with faults(ledger.client) as made:
        yield made


@pytest.fixture
def path(ledger: Ledger) -> tuple[BudgetPolicy, ...]:
    """A path of two, with room for two calls of 40."""
    return opened(ledger, a_policy("acme", limits=usd_limits(day=100)), a_policy("acme/b", limits=usd_limits(hour=100)))


@passing_faults
def test_what_passes_is_tried_again_with_the_same_token_and_is_no_denial(
    patient: Ledger, layer: Faults, path: tuple[BudgetPolicy, ...], fault: Fault
) -> None:
    layer.meet(fault, fault, fault)

    patient.reserve(a_reservation(path), path, NOW)

    assert len(layer.tokens) == 4
    assert len(set(layer.tokens)) == 1
    assert len(layer.tokens[0]) <= 36
    assert counters(patient, "acme")["reserved"] == 40
    assert_conserved(patient)


@passing_faults
def test_what_does_not_pass_until_the_deadline_is_an_unavailable_ledger_and_reserves_nothing(
    patient: Ledger, layer: Faults, clock: FakeTime, path: tuple[BudgetPolicy, ...], fault: Fault
) -> None:
    before = rows(patient)
    layer.always = fault

    with pytest.raises(LedgerUnavailable) as unavailable:
        patient.reserve(a_reservation(path), path, NOW)

    assert unavailable.value.status == 503
    assert unavailable.value.retry_after_seconds == 1
    assert 1.7 < clock.now < 2.0
    assert len(set(layer.tokens)) == 1
    assert rows(patient) == before


def test_pauses_are_a_random_part_of_a_doubling_time_with_a_ceiling(
    patient: Ledger, layer: Faults, clock: FakeTime, path: tuple[BudgetPolicy, ...]
) -> None:
    layer.meet(*[CONFLICT] * 8)

    patient.reserve(a_reservation(path), path, NOW)

    assert clock.sleeps == pytest.approx([0.01, 0.02, 0.04, 0.08, 0.16, 0.3, 0.3, 0.3])
    assert clock.asked == 8


def test_jitter_is_full_and_bears_any_number_of_tries(patient: Ledger, clock: FakeTime) -> None:
    clock.fraction = 0.0
    failures = iter([EndpointConnectionError(endpoint_url="the store")] * 1100)

    def call() -> str:
        for failure in failures:
            raise failure
        return "answered"

    assert persist(call, patient.timing) == "answered"
    assert clock.sleeps == [0.0] * 1100


def test_a_ledger_that_forbids_the_gateway_is_unavailable_at_once(
    patient: Ledger, layer: Faults, clock: FakeTime, path: tuple[BudgetPolicy, ...]
) -> None:
    layer.always = DENIED

    with pytest.raises(LedgerUnavailable, match="AccessDenied"):
        patient.reserve(a_reservation(path), path, NOW)

    assert (len(layer.requests), clock.sleeps) == (1, [])


def test_a_reason_that_is_neither_condition_nor_passing_denies_nobody(
    patient: Ledger, layer: Faults, path: tuple[BudgetPolicy, ...]
) -> None:
    layer.always = cancelled("ConditionalCheckFailed", "ValidationError")

    with pytest.raises(LedgerUnavailable):
        patient.reserve(a_reservation(path), path, NOW)


def test_a_conflict_before_a_real_denial_ends_in_the_denial(
    patient: Ledger, layer: Faults, path: tuple[BudgetPolicy, ...]
) -> None:
    patient.reserve(a_reservation(path, usd=70), path, NOW)
    layer.meet(MIXED_CONFLICT, CONFLICT)

    with pytest.raises(NotAdmitted):
        patient.reserve(a_reservation(path, usd=70), path, NOW)


@pytest.mark.parametrize("lost", [1, 3])
def test_a_reserve_whose_answer_is_lost_is_one_reservation(
    patient: Ledger, layer: Faults, path: tuple[BudgetPolicy, ...], lost: int
) -> None:
    for number in range(lost):
        layer.lose_answer(after=number)
    reservation = a_reservation(path, idempotency_key="k")

    patient.reserve(reservation, path, NOW)

    assert len(layer.requests) == lost + 1
    assert len(set(layer.tokens)) == 1
    assert counters(patient, "acme")["reserved"] == 40
    assert patient.reservation(reservation.id) == reservation
    assert_conserved(patient)


def test_a_store_that_forgot_the_token_still_holds_one_reservation_even_where_a_second_would_not_fit(
    patient: Ledger, path: tuple[BudgetPolicy, ...]
) -> None:
    reservation = a_reservation(path, usd=90, idempotency_key="k")
    patient.reserve(reservation, path, NOW)
    before = rows(patient)

    # Another token for the same reservation: what a store sees that keeps none.
    patient.reserve(replace(reservation, route="other"), path, NOW)

    assert rows(patient) == before


def test_a_reserve_that_was_applied_and_never_answered_is_unavailable_and_its_money_stays_held(
    patient: Ledger, layer: Faults, path: tuple[BudgetPolicy, ...]
) -> None:
    layer.lose_answer()
    layer.meet(passing)
    layer.always = unreachable
    reservation = a_reservation(path)

    with pytest.raises(LedgerUnavailable):
        patient.reserve(reservation, path, NOW)

    layer.always = None
    assert patient.overdue(reservation.deadline, limit=9) == (reservation.id,)
    assert counters(patient, "acme")["reserved"] == 40
    assert_conserved(patient)


RESOLUTIONS = [settled(25), settled(70), RELEASED, CHARGED, UNKNOWN]
resolutions = pytest.mark.parametrize(
    "resolution", RESOLUTIONS, ids=["settled", "above the bound", "released", "charged", "unknown"]
)


@resolutions
@pytest.mark.parametrize("operator", [False, True], ids=["gateway", "operator"])
def test_a_resolution_whose_answer_is_lost_is_one_resolution(
    patient: Ledger, layer: Faults, path: tuple[BudgetPolicy, ...], resolution: Resolution, operator: bool
) -> None:
    reservation = a_reservation(path)
    patient.reserve(reservation, path, NOW)
    layer.lose_answer()
    event = an_event("reservation_settled", reservation.id) if operator else None

    returned = patient.resolve(reservation.id, resolution, NOW, event=event)

    assert layer.tokens[-1] == layer.tokens[-2]
    assert patient.reservation(reservation.id) == returned
    assert len(patient.events("2026-11-29")) == int(operator)
    assert_conserved(patient)


@resolutions
def test_a_resolution_that_may_have_happened_and_is_repeated_later_is_one(
    patient: Ledger, layer: Faults, path: tuple[BudgetPolicy, ...], resolution: Resolution
) -> None:
    reservation = a_reservation(path)
    patient.reserve(reservation, path, NOW)
    layer.lose_answer()
    layer.meet(passing)
    layer.always = unreachable
    with pytest.raises(LedgerUnavailable):
        patient.resolve(reservation.id, resolution, NOW, known=reservation)
    layer.always = None
    before = rows(patient)

    # From a queue, at another time, by another function: another token.
    patient.resolve(reservation.id, resolution, NOW.replace(minute=59), known=reservation)

    assert rows(patient) == before
    assert_conserved(patient)


@resolutions
def test_a_settlement_that_cannot_reach_the_ledger_leaves_the_money_held(
    patient: Ledger, layer: Faults, path: tuple[BudgetPolicy, ...], resolution: Resolution
) -> None:
    reservation = a_reservation(path)
    patient.reserve(reservation, path, NOW)
    before = rows(patient)
    layer.always = unreachable

    with pytest.raises(LedgerUnavailable):
        patient.resolve(reservation.id, resolution, NOW, known=reservation)

    layer.always = None
    assert rows(patient) == before
    patient.resolve(reservation.id, resolution, NOW)
    assert_conserved(patient)


def test_an_eviction_whose_answer_is_lost_takes_the_buckets_off_once(
    patient: Ledger, layer: Faults, path: tuple[BudgetPolicy, ...]
) -> None:
    at = NOW.replace(hour=20)
    old = a_reservation(path, usd=80, now=at)
    patient.reserve(old, path, at)
    patient.resolve(old.id, settled(80), at)
    (root, leaf) = path
    patient.put_budget(replace(root, limits=()), expected_rev=root.rev, now=NOW)
    path = path_of(patient, leaf.path)
    layer.lose_answer(after=1)

    patient.reserve(a_reservation(path, usd=40), path, NOW)

    assert layer.tokens[-1] == layer.tokens[-2] != layer.tokens[-3]
    assert counters(patient, "acme/b")["usd.hour"] == 40
    assert_conserved(patient)


def test_operators_changes_whose_answers_are_lost_happen_once(
    patient: Ledger, layer: Faults, path: tuple[BudgetPolicy, ...]
) -> None:
    for number in (0, 2, 4):
        layer.lose_answer(after=number)

    patient.stop("acme", a_stop(), an_event("budget_stopped"))
    patient.resume("acme", an_event("budget_resumed"))
    patient.put_budget(path_of(patient, "acme")[0], expected_rev=3, now=NOW, event=an_event())

    assert path_of(patient, "acme")[0].rev == 4
    assert [event.kind for event in patient.events("2026-11-29")] != []
    assert len(patient.events("2026-11-29")) == 3


def test_a_trim_whose_answer_is_lost_happens_once(
    patient: Ledger, layer: Faults, path: tuple[BudgetPolicy, ...]
) -> None:
    at = NOW.replace(hour=20)
    old = a_reservation(path, usd=80, now=at)
    patient.reserve(old, path, at)
    patient.resolve(old.id, settled(80), at)
    state = patient.budget("acme/b")
    assert state is not None
    layer.lose_answer()

    assert patient.trim(state, NOW)

    assert counters(patient, "acme/b").get("usd.hour", 0) == 0
    assert_conserved(patient)


@pytest.mark.parametrize("operation", ["GetItem", "TransactGetItems", "Query", "BatchGetItem"])
def test_a_read_waits_for_what_passes_and_then_says_that_the_ledger_is_unavailable(
    patient: Ledger, clock: FakeTime, path: tuple[BudgetPolicy, ...], operation: str
) -> None:
    def read() -> object:
        return (
            patient.budget("acme"),
            patient.budgets_on(("acme", "acme/b")),
            patient.budgets(),
        )

    with faults(patient.client, operation) as layer:
        layer.meet(THROTTLED, unreachable, SERVER_ERROR)
        read()
        layer.always = THROTTLED
        with pytest.raises(LedgerUnavailable):
            read()
    assert clock.now < 4


def test_a_price_that_was_added_and_whose_answer_was_lost_counts_as_added(
    patient: Ledger, path: tuple[BudgetPolicy, ...]
) -> None:
    configuration = store_config.Config(f"{patient.table}-config", patient.table, patient.client, patient.timing)
    with faults(patient.client) as layer:
        layer.lose_answer()
        assert configuration.add_price(a_row(), an_event("price_added"))
        assert len(layer.requests) == 2
        layer.lose_answer()
        assert not configuration.add_price(a_row(), an_event("price_added"))
    assert len(patient.events("2026-11-29")) == 1


def test_a_budget_that_moves_at_every_try_ends_in_unavailable_and_not_in_a_denial(
    patient: Ledger, path: tuple[BudgetPolicy, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def always_evictable(self: Ledger, *args: object) -> Iterator[tuple[str, dict[str, int]]]:
        return iter([("acme/b", {"usd.hour.2026-11-29T20:00Z": 1})])

    monkeypatch.setattr(Ledger, "_read_failure", always_evictable)
    patient.reserve(a_reservation(path, usd=90), path, NOW)

    with pytest.raises(LedgerUnavailable, match="faster than"):
        patient.reserve(a_reservation(path, usd=90), path, NOW)


def test_a_stale_policy_behind_a_conflict_is_told(
    patient: Ledger, layer: Faults, path: tuple[BudgetPolicy, ...]
) -> None:
    patient.stop("acme", a_stop())
    layer.meet(MIXED_CONFLICT)

    with pytest.raises(PolicyStale):
        patient.reserve(a_reservation(path), path, NOW)


def test_a_revision_that_moved_behind_a_conflict_is_told(
    patient: Ledger, layer: Faults, path: tuple[BudgetPolicy, ...]
) -> None:
    layer.meet(cancelled("TransactionConflict"))

    with pytest.raises(RevisionConflict):
        patient.put_budget(path[0], expected_rev=9, now=NOW)


def test_the_tables_are_made_in_a_store_whose_first_answer_takes_longer_than_a_call_may_wait(
    patient: Ledger, clock: FakeTime
) -> None:
    name = f"{patient.table}-late"
    with faults(patient.client, "CreateTable") as made:
        made.meet(*[unreachable] * 10)
        # It was made, and nobody was told.
        made.lose_answer(after=10)
        open_tables(patient.client, ledger=name, config=f"{name}-config", timing=patient.timing)

    assert clock.now > patient.timing.deadline_seconds
    for table in (name, f"{name}-config"):
        assert patient.client.describe_table(TableName=table)["Table"]["TableStatus"] == "ACTIVE"
