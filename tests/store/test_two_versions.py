"""Two versions of the code on the same tables, as while an upgrade is under way: each reads what the other wrote and goes on with it.

``golden_items`` holds what older versions wrote; that the newest one's items serve an older reader is that they have all that the
older one wrote, and that what a version does not know it neither minds nor removes.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spendgate.core.budget import Amounts
from spendgate.core.reservation import Resolution
from spendgate.errors import ConfigurationInvalid, DuplicateRequest
from spendgate.store.config import DATA_VERSION, Config
from spendgate.store.ledger import Ledger, NotAdmitted
from spendgate.store.values import encode_item
from spendgate.sweep import sweep
from tests.store import story
from tests.store.builders import a_reservation, assert_conserved, path_of
from tests.store.story import IDS, KEY_HASH, NOW, RUN

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

GOLDEN = sorted(Path(__file__).with_name("golden_items").glob("*.json"))
# Attributes that came since, by the kind of item: an older version does without them.
ADDED = {("PROVIDER", "private_network")}
LATER = {"later": 1, "later_map": {"part": "x"}, "later_list": ["x"], "later_flag": True}

Items = Mapping[str, list[dict[str, Any]]]


@pytest.fixture(params=GOLDEN, ids=[one.stem for one in GOLDEN])
def golden(request: pytest.FixtureRequest) -> Items:
    found: Items = json.loads(request.param.read_text(encoding="utf-8"))
    return found


def tables(client: DynamoDBClient) -> tuple[Ledger, Config]:
    return story.create(client, f"versions-{secrets.token_hex(6)}")


def loaded(client: DynamoDBClient, items: Items, *, more: Mapping[str, object] | None = None) -> tuple[Ledger, Config]:
    """Return tables with these items in them, each with more attributes."""
    ledger, config = tables(client)
    for table, name in ((ledger.table, "ledger"), (config.table, "config")):
        for item in items[name]:
            client.put_item(TableName=table, Item=encode_item({**item, **(more or {})}))
    return ledger, config


def read(ledger: Ledger, config: Config) -> dict[str, object]:
    """Return everything that the code can read of both tables."""
    return {
        "budgets": ledger.budgets(),
        "reservations": [ledger.reservation(one) for one in IDS.values()],
        "keys": config.keys(),
        "providers": config.providers(),
        "routes": config.routes(),
        "prices": config.all_prices(),
        "managed": config.managed(),
    }


def go_on(ledger: Ledger) -> None:
    """Do with the story's reservations what comes next, and hold that the books are right."""
    actual = Amounts(usd=99, requests=1, tokens=3)
    settled = Resolution(state="settled", reason="answered", actual=actual, provider="openai", model="house-model")
    for _ in range(2):
        assert ledger.resolve(IDS["in_flight"], settled, NOW).state == "settled"
    assert ledger.resolve(IDS["unknown"], Resolution(state="charged", reason="a person"), NOW).state == "charged"
    path = path_of(ledger, "acme/triage")
    with pytest.raises(DuplicateRequest):
        ledger.reserve(
            a_reservation(path, now=NOW, idempotency_key="step-settled", fingerprint="60d413b1" * 8), path, NOW
        )
    stopped = path_of(ledger, "acme/stopped")
    with pytest.raises(NotAdmitted):
        ledger.reserve(a_reservation(stopped, now=NOW), stopped, NOW)
    run = path_of(ledger, RUN)
    another = a_reservation(run, now=NOW)
    ledger.reserve(another, run, NOW)
    later = NOW + timedelta(hours=1)
    assert sweep(ledger, later).unknown == 2
    # What an unknown outcome does to this run was said when it was reserved.
    assert path_of(ledger, RUN)[-1].stop is not None
    assert_conserved(ledger, later)


def test_what_an_older_version_wrote_is_read_as_what_this_one_writes(
    store_client: DynamoDBClient, golden: Items
) -> None:
    here = tables(store_client)
    story.tell(*here)

    assert read(*loaded(store_client, golden)) == read(*here)


def test_this_version_goes_on_with_what_an_older_one_left(store_client: DynamoDBClient, golden: Items) -> None:
    ledger, config = loaded(store_client, golden)
    key = config.key(KEY_HASH)

    assert key is not None
    assert_conserved(ledger, NOW)
    go_on(ledger)


def test_an_older_version_finds_in_this_ones_items_all_that_it_wrote_itself(
    store_client: DynamoDBClient, golden: Items
) -> None:
    ledger, config = tables(store_client)
    story.tell(ledger, config)
    for table, name in ((ledger.table, "ledger"), (config.table, "config")):
        written = {_name(item): item for item in story.written(store_client, table)}
        for old in golden[name]:
            new = written[_name(old)]
            assert {attribute: new.get(attribute) for attribute in old} == old | {"sk": new["sk"]}
            assert {(old["pk"].partition("#")[0], attribute) for attribute in set(new) - set(old)} <= ADDED


def test_attributes_of_a_later_version_change_nothing_and_stay(store_client: DynamoDBClient, golden: Items) -> None:
    ledger, config = loaded(store_client, golden, more=LATER)
    here = tables(store_client)
    story.tell(*here)

    assert read(ledger, config) == read(*here)
    go_on(ledger)
    (policy,) = path_of(ledger, "acme")
    ledger.put_budget(policy, expected_rev=policy.rev, now=NOW)
    for item in golden["ledger"]:
        kept = ledger.client.get_item(
            TableName=ledger.table, Key=encode_item({"pk": item["pk"], "sk": item["sk"]}), ConsistentRead=True
        )["Item"]
        assert encode_item(LATER).items() <= kept.items(), item["pk"]


def test_tables_say_which_data_model_is_theirs_and_code_that_knows_only_an_older_one_ends(
    store_client: DynamoDBClient,
) -> None:
    _, config = tables(store_client)
    for _ in range(2):
        config.claim_data()
    newer = {"pk": "META#data", "sk": "META", "version": DATA_VERSION + 1}

    assert newer | {"version": DATA_VERSION} in story.written(store_client, config.table)
    store_client.put_item(TableName=config.table, Item=encode_item(newer))
    with pytest.raises(ConfigurationInvalid, match="deploy a newer one"):
        config.claim_data()
    assert newer in story.written(store_client, config.table)


def _name(item: Mapping[str, Any]) -> tuple[str, str]:
    """What an item is; an event's own name is the chance of its time."""
    event = item["pk"].startswith("EVENT#")
    return item["pk"], f"{item['kind']} {item['subject']}" if event else item["sk"]
