"""The events of ``events/``, one a trigger, are what the functions take."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSEvent

from spendgate import custom_resource
from spendgate.admin_resolver import admin_path, caller
from spendgate.errors import ReservationMissing
from spendgate.settlements import settle_message
from spendgate.store.ledger import Ledger
from spendgate.store.queue import decode
from tests.operators import Clock

EVENTS: Final = Path(__file__).parents[1] / "events"


class Log:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, message: str, /, **fields: Any) -> None:
        self.lines.append(message)

    def exception(self, message: str, /, **fields: Any) -> None:
        self.lines.append(message)


def event(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))


def test_there_is_one_event_for_each_trigger() -> None:
    assert {path.stem for path in EVENTS.iterdir()} == {
        "admin-budgets",
        "admin-stop",
        "alerts-schedule",
        "catalogue-deployment",
        "catalogue-schedule",
        "settlement-queue",
        "sweeper-schedule",
    }


@pytest.mark.parametrize("name", ["admin-budgets", "admin-stop"])
def test_an_operators_event_says_who_asks_and_for_what(name: str) -> None:
    given = event(name)

    assert admin_path(given) == given["path"]
    assert caller(given["requestContext"]) == "arn:aws:sts::123456789012:assumed-role/Operators/alice"


def test_a_deployment_is_answered_at_its_address_and_a_schedule_has_none() -> None:
    given, sent = event("catalogue-deployment"), []

    custom_resource.answer(
        given, lambda: {"Rows": "7"}, resource_id="catalogue", put=lambda *one: sent.append(one), log=Log()
    )

    ((url, body),) = sent
    assert url == given["ResponseURL"]
    assert (json.loads(body)["Status"], json.loads(body)["Data"]) == ("SUCCESS", {"Rows": "7"})
    for name in ("alerts-schedule", "catalogue-schedule", "sweeper-schedule"):
        assert not custom_resource.is_request(event(name))
        assert "Records" not in event(name)


def test_a_message_of_the_queue_is_a_settlement_and_comes_again_where_its_reservation_is_not_there_yet(
    ledger: Ledger,
) -> None:
    (record,) = SQSEvent(event("settlement-queue")).records

    reservation_id, resolution = decode(record.body)

    assert (len(reservation_id), resolution.state) == (26, "settled")
    with pytest.raises(ReservationMissing, match=reservation_id):
        settle_message(ledger, record.body, record.attributes.approximate_receive_count, now=Clock()(), log=Log())
