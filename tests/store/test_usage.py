"""Usage records read by day: own ones and those of runs, in parts, on both emulators; and from when on none is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from benchmarks.write_units import index_writes
from spendgate.core.alert import CatalogueState
from spendgate.core.budget import RunPolicy, new_run
from spendgate.core.report import UsageRecord
from spendgate.core.reservation import Resolution
from spendgate.store import items
from spendgate.store import usage as usage_store
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.usage import Part, Place, UsageReader, claim_usage, usage_since
from spendgate.store.values import encode_item
from tests.store.builders import NOW, a_policy, a_reservation, opened, path_of, settled

DAY = NOW.date()
LOADED = CatalogueState(rows=3, stale=1, age_days=0)
RUNS = RunPolicy(expire_after=timedelta(hours=1))
PATHS = ("acme", "acme-b", "acme/run", "acme/run-a", "acme/run/deep", "acme/runner")


def a_call(ledger: Ledger, leaf: str, resolution: Resolution, *, now: datetime = NOW) -> None:
    """Reserve and resolve one call of a budget, or of a run that may not be there yet."""
    path = path_of(ledger, leaf)
    if path[-1].path != leaf:
        path = (*path, new_run(path[-1], leaf, now))
    reservation = a_reservation(path, now=now)
    ledger.reserve(reservation, path, now)
    ledger.resolve(reservation.id, resolution, now)


def config_of(ledger: Ledger) -> Config:
    """The configuration beside a ledger."""
    return Config(f"{ledger.table}-config", ledger.table, ledger.client, ledger.timing)


def a_reader(ledger: Ledger, budget: str | None = None, *, first: date = DAY, last: date = DAY) -> UsageReader:
    return UsageReader(reader=ledger, budget=budget, first=first, last=last)


def parts(reader: UsageReader) -> Iterator[Part]:
    part = reader.part(None)
    yield part
    while part.next is not None:
        assert reader.admits(part.next)
        part = reader.part(part.next)
        yield part


def costs(reader: UsageReader) -> dict[str, int]:
    """Return the cost of each budget and run, over all parts."""
    found = Counter[str]()
    for part in parts(reader):
        for record in part.records:
            found[record.budget] += record.sums["cost"]
    return dict(found)


def a_tree(ledger: Ledger) -> None:
    """Budgets whose names sort between and around their runs, each with a record of its own and of two runs."""
    written = []
    for number, path in enumerate(PATHS, start=1):
        written.append({**items.budget_key(path), **items.policy_attributes(a_policy(path))})
        for run, cost in (("", number), ("/run:1", 10 * number), ("/run:Z/run:a", 100 * number)):
            key = {"pk": items.usage_partition(f"{path}{run}"), "sk": f"{DAY:%Y-%m-%d}#openai#house#-"}
            written.append({**key, **items.usage_place(key), "calls": 1, "cost": cost})
    puts: Any = [{"PutRequest": {"Item": encode_item(item)}} for item in written]
    for start in range(0, len(puts), 25):
        ledger.client.batch_write_item(RequestItems={ledger.table: puts[start : start + 25]})


def test_every_record_is_read_once_and_no_run_is_asked(either: Ledger) -> None:
    a_tree(either)

    assert costs(a_reader(either)) == {
        f"{path}{run}": cost * number
        for number, path in enumerate(PATHS, start=1)
        for run, cost in (("", 1), ("/run:1", 10), ("/run:Z/run:a", 100))
    }


def test_a_budget_has_all_below_it_and_nothing_beside_it(on_ministack: Ledger) -> None:
    a_tree(on_ministack)

    assert {path.partition("/run:")[0] for path in costs(a_reader(on_ministack, "acme/run"))} == {
        "acme/run",
        "acme/run/deep",
    }


def test_parts_of_any_size_have_together_what_one_has(on_ministack: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    a_tree(on_ministack)
    whole = costs(a_reader(on_ministack))

    for steps, records, each in ((1, 1000, 2), (1000, 3, 100)):
        monkeypatch.setattr(usage_store, "STEPS_MAX", steps)
        monkeypatch.setattr(usage_store, "RECORDS_MAX", records)
        monkeypatch.setattr(usage_store, "STEP_RECORDS", each)
        reader = a_reader(on_ministack)
        assert all(len(part.records) < records + each for part in parts(reader))
        assert costs(reader) == whole


def test_a_run_that_is_asked_for_has_its_own_and_what_is_below_it(on_ministack: Ledger) -> None:
    opened(on_ministack, a_policy("acme", runs=RUNS))
    a_call(on_ministack, "acme", settled(1))
    a_call(on_ministack, "acme/run:1", settled(10))
    a_call(on_ministack, "acme/run:12", settled(20))
    path = path_of(on_ministack, "acme/run:1")
    below = replace(a_policy("acme/run:1/run:2"), rev=0)
    reservation = a_reservation((*path, below))
    on_ministack.reserve(reservation, (*path, below), NOW)
    on_ministack.resolve(reservation.id, settled(40), NOW)

    assert costs(a_reader(on_ministack, "acme/run:1")) == {"acme/run:1": 10, "acme/run:1/run:2": 40}
    assert sum(costs(a_reader(on_ministack)).values()) == 71


def test_only_the_days_that_are_asked_for_are_read(on_ministack: Ledger) -> None:
    opened(on_ministack, a_policy("acme", runs=RUNS), now=NOW - timedelta(days=3))
    for day, cost in enumerate((1, 5, 25)):
        for leaf in ("acme", f"acme/run:{day}"):
            a_call(on_ministack, leaf, settled(cost), now=NOW - timedelta(days=day))

    assert sum(costs(a_reader(on_ministack, first=DAY - timedelta(days=1))).values()) == 12
    assert sum(costs(a_reader(on_ministack, last=DAY - timedelta(days=1), first=date(2026, 1, 1))).values()) == 60


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("house#openai#house#2026-01-01T00:00:00Z", "house"),
        ("house-latest#openai#house#2026-01-01T00:00:00Z", "house-latest"),
        ("a#b#openai#a#b#2026-01-01T00:00:00Z", "a#b"),
        ("a#b#-", "a#b"),
        ("-#-", None),
    ],
)
def test_a_record_names_its_model_whatever_the_name(on_ministack: Ledger, text: str, model: str | None) -> None:
    opened(on_ministack, a_policy("acme"))
    record = {"pk": "USAGE#acme", "sk": f"{DAY:%Y-%m-%d}#{'openai' if model else '-'}#{text}", "calls": 1, "cost": 7}
    on_ministack.client.put_item(TableName=on_ministack.table, Item=encode_item(record))

    (part,) = parts(a_reader(on_ministack))

    assert part.records == (
        UsageRecord(
            day=f"{DAY:%Y-%m-%d}",
            budget="acme",
            provider="openai" if model else None,
            model=model,
            sums={"calls": 1, "cost": 7},
        ),
    )


@pytest.mark.parametrize(
    "place",
    [
        Place(budget="acme-b"),
        Place(budget="acm"),
        Place(budget="acme/a", after="2026-11-28#"),
        Place(budget="acme/a", after="2026-11-29$"),
        Place(budget="acme/a", stage="below", after="2026-11-29#x"),
    ],
)
def test_a_place_of_another_budget_or_day_is_none(on_ministack: Ledger, place: Place) -> None:
    reader = a_reader(on_ministack, "acme")

    assert not reader.admits(place)
    assert reader.admits(Place(budget="acme/a", stage="runs", after="2026-11-29#x"))


def test_a_second_settlement_of_a_run_writes_no_index(on_ministack: Ledger) -> None:
    opened(on_ministack, a_policy("acme", runs=RUNS))
    records = []
    for _ in range(2):
        a_call(on_ministack, "acme/run:1", settled(10))
        pages = on_ministack.client.scan(TableName=on_ministack.table)["Items"]
        (record,) = [item for item in pages if item["pk"]["S"] == "USAGE#acme/run:1"]
        records.append(record)
    a_call(on_ministack, "acme", settled(1))

    assert index_writes({}, records[0]) == 1
    assert index_writes(*records) == 0
    assert "tree_pk" not in on_ministack.usage_records("acme")[0]


# --- two versions


def test_of_new_tables_nothing_is_missing(on_ministack: Ledger) -> None:
    config = config_of(on_ministack)
    for _ in range(2):
        claim_usage(config, NOW)
        config.put_catalogue_state(LOADED)
        config.put_managed(frozenset({"key:a"}))

    assert usage_since(config) is None


def test_after_an_upgrade_and_after_a_rollback_it_is_known_from_when_on_nothing_is_missing(
    on_ministack: Ledger,
) -> None:
    config = config_of(on_ministack)
    config.put_managed(frozenset({"key:a"}))
    upgraded, rolled_back = NOW, NOW + timedelta(days=3)
    claim_usage(config, upgraded)
    claim_usage(config, NOW + timedelta(days=1))
    assert usage_since(config) == upgraded + timedelta(hours=1)

    # An older version writes the item whole, as it knows it.
    older = {"pk": "META#catalogue", "sk": "META", "rows": 3, "stale": 1, "age_days": 0}
    config.client.put_item(TableName=config.table, Item=encode_item(older))
    claim_usage(config, rolled_back)
    config.put_catalogue_state(LOADED)
    claim_usage(config, NOW + timedelta(days=4))

    assert usage_since(config) == rolled_back + timedelta(hours=1)


def test_a_record_of_before_is_found_as_soon_as_it_is_added_to(on_ministack: Ledger) -> None:
    opened(on_ministack, a_policy("acme", runs=RUNS))
    a_call(on_ministack, "acme/run:1", settled(10))
    (record,) = on_ministack.usage_records("acme/run:1")
    older = {name: value for name, value in record.items() if not name.startswith("tree_")}
    on_ministack.client.put_item(TableName=on_ministack.table, Item=encode_item(older))
    assert costs(a_reader(on_ministack)) == {}

    a_call(on_ministack, "acme/run:1", settled(1))

    assert costs(a_reader(on_ministack)) == {"acme/run:1": 11}
