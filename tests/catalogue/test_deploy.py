"""The catalogue in a deployed stack: loaded by the deployment and by the schedule alike, and its address always answered."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from spendgate.catalogue import no_catalogue
from spendgate.catalogue_deploy import Stored, deploy
from spendgate.catalogue_files import all_rows, catalogue_in
from spendgate.core.event import Event
from spendgate.core.route import Provider
from spendgate.custom_resource import REASON_LENGTH_MAX, answer, is_request
from spendgate.errors import ConfigurationInvalid
from spendgate.store.config import Config
from tests.catalogue.shipped import PRICES
from tests.fakes import Lines

NOW = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
REQUEST = {
    "RequestType": "Create",
    "ResponseURL": "https://answers.example.com/1",
    "StackId": "stack",
    "RequestId": "request",
    "LogicalResourceId": "Catalogue",
}


def answered(event: dict[str, Any], work: Any) -> tuple[dict[str, Any], str, dict[str, Any]]:
    """Return what is returned, and what was put where."""
    sent: list[tuple[str, dict[str, Any]]] = []
    got = answer(
        event, work, resource_id="catalogue", put=lambda url, body: sent.append((url, json.loads(body))), log=Lines()
    )
    ((url, body),) = sent
    return got, url, body


def test_a_deployment_loads_everything_once_and_tells_how_much(config: Config) -> None:
    config.put_provider(
        Provider(name="house", dialect="anthropic", base_url="https://example.com", prices="anthropic"),
        Event(kind="provider_changed", subject="house", at=NOW, by="ana"),
    )
    shipped = all_rows(PRICES)
    own = [row for row in shipped if row.provider == "anthropic"]

    first = deploy(config, shipped, catalogue_in(PRICES), now=NOW, log=Lines())
    again = deploy(config, shipped, catalogue_in(PRICES), now=NOW, log=Lines())

    # A provider of another name has its rows under that name as well.
    assert first == Stored(
        rows=len(shipped) + len(own), added=len(shipped) + len(own), stale=0, age_days=first.age_days
    )
    assert again == Stored(rows=first.rows, added=0, stale=0, age_days=first.age_days)
    assert first.age_days < 45


def test_an_empty_catalogue_fails_the_deployment(config: Config) -> None:
    with pytest.raises(ConfigurationInvalid, match="empty"):
        deploy(config, (), no_catalogue, now=NOW, log=Lines())


def test_a_catalogue_whose_every_price_is_yet_to_come_fails_the_deployment(config: Config) -> None:
    shipped = all_rows(PRICES)[:3]

    with pytest.raises(ConfigurationInvalid, match="no price is in force"):
        deploy(config, shipped, no_catalogue, now=datetime(1960, 1, 1, tzinfo=UTC), log=Lines())


def test_what_a_load_found_is_counted_and_becomes_the_attributes_of_the_resource() -> None:
    counted: dict[str, float] = {}

    found = Stored(rows=7, added=2, stale=1, age_days=3).counted(
        lambda *, name, unit, value: counted.update({name: value})
    )

    assert counted == {"CatalogueRows": 7, "CatalogueStaleRows": 1, "CatalogueAgeDays": 3}
    assert found == {"Rows": "7", "Added": "2", "StaleRows": "1"}


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_an_event_of_a_stack_is_answered_with_the_attributes(kind: str) -> None:
    got, url, body = answered(REQUEST | {"RequestType": kind}, lambda: {"Rows": "7"})

    assert url == REQUEST["ResponseURL"]
    assert got == body
    assert (body["Status"], body["Data"], body["PhysicalResourceId"]) == ("SUCCESS", {"Rows": "7"}, "catalogue")
    assert {name: body[name] for name in ("StackId", "RequestId", "LogicalResourceId")} == {
        name: REQUEST[name] for name in ("StackId", "RequestId", "LogicalResourceId")
    }


def test_a_failure_is_answered_with_its_reason_and_no_more_than_fits() -> None:
    def work() -> dict[str, str]:
        raise ValueError("too much " * 1000)

    _, _, body = answered(REQUEST, work)

    assert body["Status"] == "FAILED"
    assert body["Reason"].startswith("ValueError: too much")
    assert len(body["Reason"]) == REASON_LENGTH_MAX


def test_a_deletion_is_answered_and_deletes_nothing() -> None:
    def work() -> dict[str, str]:
        raise AssertionError("nothing is to be done")

    _, _, body = answered(REQUEST | {"RequestType": "Delete", "PhysicalResourceId": "catalogue-1"}, work)

    assert (body["Status"], body["PhysicalResourceId"]) == ("SUCCESS", "catalogue-1")


def test_an_answer_that_is_not_taken_is_an_error_of_the_function_so_that_lambda_tries_again() -> None:
    def put(url: str, body: bytes) -> None:
        raise ConnectionError(url)

    with pytest.raises(ConnectionError):
        answer(REQUEST, dict, resource_id="catalogue", put=put, log=Lines())


def test_a_schedule_is_not_a_custom_resource() -> None:
    assert is_request(REQUEST)
    assert not is_request({"version": "0", "source": "aws.scheduler"})
