"""Each fault, met by one request and by the loop that sends it again."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

import pytest
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError, ReadTimeoutError

from spendgate.core.key import Key
from spendgate.core.route import Route
from spendgate.errors import LedgerUnavailable
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.tables import create_tables
from spendgate.store.transact import Timing
from tests.simulation.faulty_store import FaultyStore, Plan
from tests.simulation.memory_store import MemoryStore
from tests.simulation.store_faults import FAULTS, Fault
from tests.simulation.virtual import Killed
from tests.store.builders import (
    NOW,
    a_policy,
    a_reservation,
    a_row,
    a_stop,
    an_event,
    assert_conserved,
    counters,
    opened,
    path_of,
    settled,
    usd_limits,
)
from tests.store.faults import FakeTime

KEY: Final = {"pk": {"S": "p"}, "sk": {"S": "s"}}
REQUEST: Final[dict[str, Any]] = {
    "TransactItems": [
        {
            "Update": {
                "TableName": "ledger",
                "Key": KEY,
                "UpdateExpression": "ADD #n :a",
                "ExpressionAttributeNames": {"#n": "n"},
                "ExpressionAttributeValues": {":a": {"N": "1"}},
            }
        }
    ],
    "ClientRequestToken": "token",
}


def a_store() -> MemoryStore:
    store = MemoryStore(lambda: datetime(2026, 11, 29, tzinfo=UTC))
    create_tables(store.client, ledger="ledger", config="config")
    return store


def meeting(store: MemoryStore, *faults: Fault) -> FaultyStore:
    """A client whose first requests meet these; the others none."""
    left = list(faults)
    return FaultyStore(store, lambda _: left.pop(0) if left else "none")


def writing(store: MemoryStore, *faults: Fault) -> FaultyStore:
    """A client whose first transactions meet these; the others, and whatever is read, none."""
    left = list(faults)
    return FaultyStore(store, lambda name: left.pop(0) if left and name == "transact_write_items" else "none")


def counted(store: MemoryStore) -> int:
    item = store.items("ledger").get(("p", "s"))
    return 0 if item is None else int(item["n"]["N"])


@pytest.mark.parametrize(
    ("fault", "error", "applied"),
    [
        ("conflict", ClientError, 0),
        ("mixed", ClientError, 0),
        ("throttled step", ClientError, 0),
        ("throttled", ClientError, 0),
        ("over capacity", ClientError, 0),
        ("in progress", ClientError, 0),
        ("server error", ClientError, 0),
        ("unreachable", EndpointConnectionError, 0),
        ("lost", ReadTimeoutError, 1),
        ("forgotten", ReadTimeoutError, 1),
        ("killed before", Killed, 0),
        ("killed after", Killed, 1),
    ],
)
def test_a_fault_is_met_before_or_after_the_write(fault: Fault, error: type[BaseException], applied: int) -> None:
    store = a_store()

    with pytest.raises(error):
        meeting(store, fault).client.transact_write_items(**REQUEST)

    assert counted(store) == applied


@pytest.mark.parametrize(("fault", "applied"), [("none", 1), ("repeated", 1), ("lost", 1), ("forgotten", 2)])
def test_a_token_makes_a_repetition_harmless_while_it_is_known(fault: Fault, applied: int) -> None:
    store = a_store()
    client = meeting(store, fault).client

    for _ in range(2):
        try:
            client.transact_write_items(**REQUEST)
        except BotoCoreError:
            continue

    assert counted(store) == applied


def test_a_batch_is_answered_in_part_and_asked_for_again() -> None:
    store = a_store()
    keys = [{"pk": {"S": "p"}, "sk": {"S": str(number)}} for number in range(5)]
    for key in keys:
        store.put_item(TableName="ledger", Item=key)

    answer = meeting(store, "partial").client.batch_get_item(
        RequestItems={"ledger": {"Keys": keys, "ConsistentRead": True}, "config": {"Keys": keys[:1]}}
    )

    assert len(answer["Responses"]["ledger"]) == 3
    assert answer["UnprocessedKeys"] == {"ledger": {"Keys": keys[3:], "ConsistentRead": True}}


def a_ledger(client: Any) -> Ledger:
    time = FakeTime()
    timing = Timing(monotonic=time.monotonic, sleep=time.sleep, random=time.random, randomness=secrets.token_bytes)
    return Ledger("ledger", client, timing)


def survived(names: Iterable[Fault]) -> list[Fault]:
    return sorted({name for name in names if not name.startswith("killed")})


@pytest.mark.parametrize("fault", survived(FAULTS["transact_write_items"]))
def test_the_ledger_counts_once_whatever_a_request_meets(fault: Fault) -> None:
    store = a_store()
    calm = a_ledger(store.client)
    path = opened(calm, a_policy("a", limits=usd_limits(day=100)), a_policy("a/b"))
    reservation = a_reservation(path, usd=40)

    a_ledger(meeting(store, fault, fault).client).reserve(reservation, path, NOW)
    a_ledger(meeting(store, fault, fault).client).resolve(reservation.id, settled(30), NOW, known=reservation)

    assert counters(calm, "a")["usd.life"] == 30
    assert_conserved(calm)


OPERATIONS: Final[Mapping[str, Callable[[Ledger, Config], object]]] = {
    "a new budget": lambda ledger, _: ledger.put_budget(a_policy("b"), expected_rev=None, now=NOW, event=an_event()),
    "other limits": lambda ledger, _: ledger.put_budget(a_policy("a"), expected_rev=1, now=NOW, event=an_event()),
    "a stop": lambda ledger, _: ledger.stop("a", a_stop(), an_event()),
    "a new key": lambda _, config: config.put_key(Key(hash="f" * 64, name="triage", budget="a"), an_event()),
    "a route": lambda _, config: config.put_route(Route(name="r", candidates=()), an_event()),
    "a route that goes": lambda _, config: config.delete_route("r", an_event()),
    "a price": lambda _, config: config.add_price(a_row(), an_event()),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("fault", ["lost", "forgotten", "repeated"])
def test_what_an_operator_does_is_done_once_and_told_once_whatever_becomes_of_the_answer(
    name: str, fault: Fault
) -> None:
    tables = []
    for faults in ([], [fault]):
        store = a_store()
        calm = a_ledger(store.client)
        opened(calm, a_policy("a"))

        client = writing(store, *faults).client
        ledger = a_ledger(client)
        answer = OPERATIONS[name](ledger, Config("config", "ledger", client, ledger.timing))

        assert len(calm.events("2026-11-29")) == 1
        kept = {key: item for key, item in store.items("ledger").items() if not key[0].startswith("EVENT#")}
        tables.append((answer, kept, store.items("config")))

    assert tables[0] == tables[1]


def test_a_store_that_is_away_for_long_is_said_to_be() -> None:
    store = a_store()
    path = opened(a_ledger(store.client), a_policy("a"))

    with pytest.raises(LedgerUnavailable):
        a_ledger(FaultyStore(store, lambda _: "unreachable").client).reserve(a_reservation(path), path, NOW)

    assert path_of(a_ledger(store.client), "a") == path


def test_a_plan_is_the_same_for_the_same_seed_and_meets_every_fault() -> None:
    def drawn(seed: int) -> list[Fault]:
        plan = Plan(Random(seed), 500)  # noqa: S311 - it is to be repeated
        return [plan(operation) for _ in range(500) for operation in (*FAULTS, "query")]

    assert drawn(1) == drawn(1) != drawn(2)
    assert set(drawn(1)) == {"none"}.union(*FAULTS.values())
