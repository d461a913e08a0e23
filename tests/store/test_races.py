"""The ledger under threads and processes at once, on MiniStack: what the conditions alone must hold.

While calls race, a watcher reads; no instant it sees is above a limit. Afterwards every counter is proven.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from spendgate.core.budget import BudgetPolicy
from spendgate.core.policy import Guard
from spendgate.core.reservation import Reservation
from spendgate.errors import LedgerError, LedgerUnavailable, Refused
from spendgate.store import transactions, write
from spendgate.store.ledger import Ledger, NotAdmitted, PolicyStale
from tests.store.builders import (
    CHARGED,
    NOW,
    RELEASED,
    UNKNOWN,
    a_policy,
    a_reservation,
    a_stop,
    an_event,
    assert_conserved,
    counters,
    opened,
    path_of,
    settled,
    usd_limits,
)

DAY = "usd.day.2026-11-29"
CALLERS = 20


def at_once(*calls: Callable[[], object]) -> list[object]:
    """Make all calls at one moment; return what each returned or raised of the errors that are the ledger's own."""
    barrier = threading.Barrier(len(calls))

    def one(call: Callable[[], object]) -> object:
        barrier.wait(timeout=60)
        try:
            return call()
        except (Refused, LedgerError) as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(one, calls))


def kinds(results: Sequence[object]) -> Counter[str]:
    """How often each kind of result came."""
    return Counter("done" if result is None else type(result).__name__ for result in results)


def reserving(ledger: Ledger, path: tuple[BudgetPolicy, ...], usd: int = 40) -> Callable[[], None]:
    """A call that reserves."""
    reservation = a_reservation(path, usd=usd)
    return lambda: ledger.reserve(reservation, path, NOW)


@contextmanager
def watched(ledger: Ledger, path: Sequence[BudgetPolicy]) -> Iterator[list[str]]:
    """Watch the budgets while the block lasts; what is seen above a limit is in the list."""
    above: list[str] = []
    names = [policy.path for policy in path]
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            for state in ledger.budgets_on(names):
                for limit in state.policy.limits:
                    counter = {"hour": "usd.hour", "day": DAY, "life": "usd.life"}[limit.window]
                    if state.counters.get(counter, 0) > limit.maximum or state.reserved > limit.maximum:
                        above.append(f"{state.policy.path} {counter}")

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield above
    finally:
        over.set()
        watcher.join(timeout=60)


def a_path(ledger: Ledger, *maximums: int, window: str = "day") -> tuple[BudgetPolicy, ...]:
    """A path of budgets with these limits, from the root down."""
    names = ["acme", "acme/b", "acme/b/c", "acme/b/c/d"]
    return opened(
        ledger,
        *(
            a_policy(name, limits=usd_limits(**{window: maximum}))
            for name, maximum in zip(names, maximums, strict=False)
        ),
    )


@pytest.mark.parametrize("admitted", [1, 7])
def test_of_twenty_calls_at_once_exactly_those_are_admitted_that_fit(ledger: Ledger, admitted: int) -> None:
    path = a_path(ledger, 40 * admitted)

    with watched(ledger, path) as above:
        results = at_once(*(reserving(ledger, path) for _ in range(CALLERS)))

    assert kinds(results) == {"done": admitted, "NotAdmitted": CALLERS - admitted}
    assert counters(ledger, "acme")["reserved"] == 40 * admitted
    assert above == []
    assert_conserved(ledger)


@pytest.mark.parametrize("tight", [0, 1, 2, 3])
def test_on_a_path_of_four_the_tightest_budget_decides_for_all(ledger: Ledger, tight: int) -> None:
    path = a_path(ledger, *(40 * 5 if level == tight else 40 * 50 for level in range(4)))

    with watched(ledger, path) as above:
        results = at_once(*(reserving(ledger, path) for _ in range(CALLERS)))

    assert kinds(results) == {"done": 5, "NotAdmitted": CALLERS - 5}
    assert [counters(ledger, policy.path)["reserved"] for policy in path] == [200] * 4
    assert above == []
    assert_conserved(ledger)


def test_leaves_that_share_a_parent_share_its_limit(ledger: Ledger) -> None:
    opened(ledger, a_policy("acme", limits=usd_limits(day=200)))
    paths = [opened(ledger, a_policy(f"acme/{number}")) for number in range(4)]

    with watched(ledger, paths[0]) as above:
        results = at_once(*(reserving(ledger, paths[number % 4]) for number in range(CALLERS)))

    assert kinds(results) == {"done": 5, "NotAdmitted": CALLERS - 5}
    assert above == []
    assert_conserved(ledger)


WORKER = """
import json, random, secrets, sys, time
from spendgate.store.client import dynamodb
from spendgate.store.ledger import Ledger, NotAdmitted
from spendgate.store.transact import Timing
from tests.store.builders import NOW, a_reservation, path_of, settled

url, table, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
timing = Timing(monotonic=time.monotonic, sleep=time.sleep, random=random.random, randomness=secrets.token_bytes,
                deadline_seconds=30)
ledger = Ledger(table, dynamodb(region="us-east-1", endpoint_url=url), timing)
path = path_of(ledger, "acme/b")
print("ready", flush=True)
sys.stdin.readline()
admitted = 0
for _ in range(calls):
    # Ids of processes must differ as those of functions do.
    reservation = a_reservation(path, usd=40, id=secrets.token_hex(13).upper())
    try:
        ledger.reserve(reservation, path, NOW)
    except NotAdmitted:
        continue
    admitted += 1
    if admitted % 2:
        ledger.resolve(reservation.id, settled(40), NOW, known=reservation)
print(json.dumps(admitted), flush=True)
"""


def test_processes_share_a_limit_as_threads_do(ledger: Ledger, store_url: str) -> None:
    path = a_path(ledger, 40 * 9, 40 * 50)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, store_url, ledger.table, "6"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        with watched(ledger, path) as above:
            for worker in workers:
                assert worker.stdin is not None
                worker.stdin.write("go\n")
                worker.stdin.flush()
            admitted = [json.loads(worker.communicate(timeout=120)[0]) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()

    assert sum(admitted) == 9
    assert counters(ledger, "acme")[DAY] == 360
    assert above == []
    assert_conserved(ledger)


def a_held(ledger: Ledger, path: tuple[BudgetPolicy, ...], usd: int = 40) -> Reservation:
    reservation = a_reservation(path, usd=usd)
    ledger.reserve(reservation, path, NOW)
    return reservation


def test_the_same_settlement_from_everywhere_at_once_is_one(ledger: Ledger) -> None:
    path = a_path(ledger, 100, 100)
    held = a_held(ledger, path)

    results = at_once(
        *(
            lambda at=NOW + timedelta(seconds=number): ledger.resolve(held.id, settled(25), at, known=held)
            for number in range(10)
        )
    )

    assert kinds(results) == {"Reservation": 10}
    assert counters(ledger, "acme")[DAY] == 25
    assert path_of(ledger, "acme/b")[1].stop is None
    assert_conserved(ledger)


def test_of_different_settlements_at_once_one_holds_and_each_other_is_a_conflict(ledger: Ledger) -> None:
    path = a_path(ledger, 100, 100)
    held = a_held(ledger, path)

    results = at_once(
        *(lambda usd=usd: ledger.resolve(held.id, settled(usd), NOW, known=held) for usd in range(20, 28))
    )

    assert kinds(results) == {"Reservation": 1, "SettlementConflict": 7}
    (winner,) = [result for result in results if isinstance(result, Reservation)]
    assert winner.actual is not None
    assert counters(ledger, "acme")[DAY] == winner.actual.usd
    assert path_of(ledger, "acme/b")[1].stop is not None
    assert_conserved(ledger)


def test_every_end_of_a_call_at_once_is_one_end(ledger: Ledger) -> None:
    path = a_path(ledger, 100, 100)
    held = a_held(ledger, path)

    results = at_once(
        *(
            lambda end=end: ledger.resolve(held.id, end, NOW, known=held)
            for end in (settled(25), RELEASED, CHARGED, UNKNOWN, UNKNOWN)
        )
    )

    ended = [result for result in results if isinstance(result, Reservation) and result.state != "unknown"]
    assert len({one.state for one in ended}) == 1
    record = ledger.reservation(held.id)
    assert record is not None
    assert record.state == ended[0].state
    assert_conserved(ledger)


def test_a_stop_lets_no_call_in_after_it(ledger: Ledger) -> None:
    path = a_path(ledger, 40 * 50, 40 * 50)
    order: list[str] = []

    def stop() -> None:
        ledger.stop("acme", a_stop())
        order.append("stopped")

    results = at_once(stop, *(reserving(ledger, path) for _ in range(10)))
    after = at_once(*(reserving(ledger, path) for _ in range(5)))

    assert set(kinds(results)) <= {"done", "PolicyStale"}
    assert kinds(after) == {"PolicyStale": 5}
    assert counters(ledger, "acme").get("reserved", 0) == 40 * (kinds(results)["done"] - 1)
    assert_conserved(ledger)


def test_a_limit_that_shrinks_while_calls_race_holds_for_each_that_comes_after(ledger: Ledger) -> None:
    path = a_path(ledger, 40 * 50)

    def shrink() -> None:
        ledger.put_budget(replace(path[0], limits=usd_limits(day=0)), expected_rev=1, now=NOW)

    results = at_once(shrink, *(reserving(ledger, path) for _ in range(10)))

    assert set(kinds(results)) <= {"done", "PolicyStale"}
    with pytest.raises(PolicyStale):
        reserving(ledger, path)()
    with pytest.raises(NotAdmitted):
        reserving(ledger, path_of(ledger, "acme"))()
    assert_conserved(ledger)


def test_of_two_operators_at_once_one_is_told_of_the_other(ledger: Ledger) -> None:
    path = a_path(ledger, 100)

    results = at_once(
        *(
            lambda day=day: ledger.put_budget(
                replace(path[0], limits=usd_limits(day=day)), expected_rev=1, now=NOW, event=an_event()
            )
            for day in range(5)
        )
    )

    assert kinds(results) == {"done": 1, "RevisionConflict": 4}
    assert len(ledger.events("2026-11-29")) == 1


def test_a_run_that_many_calls_begin_at_once_is_made_once(ledger: Ledger) -> None:
    (above,) = opened(ledger, a_policy("acme"))
    path = (above, a_policy("acme/run:1", limits=usd_limits(life=1000)))

    results = at_once(*(reserving(ledger, path) for _ in range(8)))

    assert kinds(results) == {"done": 1, "PolicyStale": 7}
    for result in results:
        if isinstance(result, PolicyStale):
            assert [state.policy for state in result.states] == [replace(path[1], rev=1)]
    assert_conserved(ledger)


def test_one_idempotency_key_from_everywhere_at_once_is_one_reservation(ledger: Ledger) -> None:
    path = a_path(ledger, 40 * 50)
    reservations = [a_reservation(path, idempotency_key="k") for _ in range(8)]

    results = at_once(*(lambda one=one: ledger.reserve(one, path, NOW) for one in reservations))

    assert kinds(results) == {"done": 1, "DuplicateRequest": 7}
    assert counters(ledger, "acme")["reserved"] == 40
    assert_conserved(ledger)


def with_old_hour(ledger: Ledger) -> tuple[tuple[BudgetPolicy, ...], list[Reservation]]:
    """A path whose hour is full of what is long over, and calls of then that are still open."""
    path = a_path(ledger, 400, 400, window="hour")
    then = NOW - timedelta(hours=3)
    for number in range(4):
        at = then + timedelta(minutes=5 * number)
        spent = a_reservation(path, usd=60, now=at)
        ledger.reserve(spent, path, at)
        ledger.resolve(spent.id, settled(60), at)
    late = [a_reservation(path, usd=40, now=then) for _ in range(4)]
    for one in late:
        ledger.reserve(one, path, then)
    return path, late


def test_evictions_trims_and_late_settlements_at_once_lose_nothing(ledger: Ledger) -> None:
    path, late = with_old_hour(ledger)

    def trim() -> None:
        for state in ledger.budgets():
            ledger.trim(state, NOW)

    with watched(ledger, path) as above:
        results = at_once(
            *(reserving(ledger, path) for _ in range(10)),
            *(lambda one=one: ledger.resolve(one.id, settled(40), NOW, known=one) for one in late),
            trim,
            trim,
        )

    # 160 of the late calls stay held or land in buckets that may go: the hour has room for six calls at least.
    assert not any(isinstance(result, LedgerUnavailable) for result in results)
    assert 6 <= kinds(results)["done"] - 2 <= 10
    assert above == []
    assert_conserved(ledger)


def test_reserves_and_settlements_mixed_end_with_what_was_spent(ledger: Ledger) -> None:
    path = a_path(ledger, 40 * 4, 40 * 50)

    def call() -> int:
        spent = 0
        for _ in range(3):
            reservation = a_reservation(path, usd=40)
            try:
                ledger.reserve(reservation, path, NOW)
            except NotAdmitted:
                continue
            ledger.resolve(reservation.id, settled(13), NOW, known=reservation)
            spent += 13
        return spent

    with watched(ledger, path) as above:
        results = at_once(*(call for _ in range(8)))

    spent = sum(result for result in results if isinstance(result, int))
    assert counters(ledger, "acme") == {DAY: spent, "usd.month.2026-11": spent, "usd.life": spent}
    assert above == []
    assert_conserved(ledger)


# -- the tests can fail: a guard less, and each of these notices ---------------------------------------------------


def test_without_the_guards_more_calls_would_be_admitted_than_fit(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_guards(*_: object) -> tuple[Guard, ...]:
        return ()

    monkeypatch.setattr(transactions, "guards", no_guards)
    path = a_path(ledger, 40)

    with watched(ledger, path) as above:
        results = at_once(*(reserving(ledger, path) for _ in range(5)))
        # The watcher reads at its own pace: give it what stands to read.
        while not above:
            threading.Event().wait(0.01)

    assert kinds(results)["done"] == 5


def test_without_the_state_in_the_condition_a_settlement_would_count_twice(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    equals = write.Update.equals

    def without_state(self: write.Update, attribute: str, value: object) -> write.Update:
        return self if attribute == "state" else equals(self, attribute, value)

    path = a_path(ledger, 100)
    held = a_held(ledger, path)
    monkeypatch.setattr(write.Update, "equals", without_state)

    at_once(*(lambda usd=usd: ledger.resolve(held.id, settled(usd), NOW, known=held) for usd in (20, 21)))

    with pytest.raises(AssertionError):
        assert_conserved(ledger)


def test_without_the_values_of_the_buckets_an_eviction_would_lose_a_settlement(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    equals = write.Update.equals

    def without_buckets(self: write.Update, attribute: str, value: object) -> write.Update:
        return self if attribute.startswith("usd.hour.") else equals(self, attribute, value)

    _, late = with_old_hour(ledger)
    read = ledger.budgets()
    ledger.resolve(late[0].id, settled(30), NOW)
    monkeypatch.setattr(write.Update, "equals", without_buckets)

    for state in read:
        assert ledger.trim(state, NOW)

    with pytest.raises(AssertionError):
        assert_conserved(ledger)
