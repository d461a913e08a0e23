"""The settlement queue: what is deferred comes back as it was, as often as it takes, and resolves once."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws
from moto.backends import get_backend

from spendgate.core.budget import Amounts
from spendgate.core.reservation import STATES, Reservation, Resolution
from spendgate.core.usage import BUCKETS, Usage
from spendgate.errors import LedgerUnavailable, ReservationMissing
from spendgate.settlements import MISSING_RECEIVES_MAX, QueuedFallback, settle_message
from spendgate.store.client import dynamodb
from spendgate.store.ledger import Ledger
from spendgate.store.queue import SettlementQueue, decode, encode
from tests.conftest import a_timing
from tests.fakes import Lines
from tests.store.builders import NOW, a_policy, a_reservation, opened

ID = "01M8N6E99MVKD2ANNST5RWH4AW"
SETTLED = Resolution(
    state="settled",
    reason="answered",
    actual=Amounts(usd=7, requests=1, tokens=3),
    usage=Usage(input_uncached=2, output=1, fees=(("web_search", 1),)),
    provider="openai",
    model="house-model",
    response_id="chatcmpl-1",
)

UNWRITTEN = a_reservation((a_policy(),))

counts = st.integers(min_value=0, max_value=2**53 - 1)
usages = st.builds(
    Usage,
    **dict.fromkeys(BUCKETS, counts),
    fees=st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), counts), unique_by=lambda fee: fee[0]).map(tuple),
)
texts = st.none() | st.text(min_size=1, max_size=20)
resolutions = st.builds(
    Resolution,
    state=st.sampled_from(STATES),
    reason=st.text(max_size=40),
    actual=st.none()
    | st.builds(Amounts, usd=st.integers(0, 10**37), requests=counts, tokens=counts, tool_calls=counts),
    usage=st.none() | usages,
    provider=texts,
    model=texts,
    response_model=texts,
    response_id=texts,
    evidence=texts,
    by=texts,
)


@given(resolution=resolutions)
def test_a_resolution_comes_back_as_it_went(resolution: Resolution) -> None:
    reservation, found = decode(encode(ID, resolution))

    assert reservation == ID
    assert found == resolution


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", "7", "{}", "{not json", json.dumps({"version": 2, "reservation": ID, "state": "settled", "reason": ""}),
        json.dumps({"version": 1, "reservation": "other", "state": "settled", "reason": ""}),
        json.dumps({"version": 1, "reservation": ID, "state": "free", "reason": ""}),
        json.dumps({"version": 1, "reservation": ID, "state": "settled", "reason": "", "actual": {"gold": 1}}),
        json.dumps({"version": 1, "reservation": ID, "state": "settled", "reason": "", "usage": {"output": -1}}),
    ],
)  # fmt: skip
def test_what_no_gateway_sent_is_not_a_settlement(text: str) -> None:
    with pytest.raises(ValueError, match=r"settlement|Expecting|version|negative"):
        decode(text)


@pytest.fixture
def queue() -> Iterator[tuple[str, Any]]:
    """A queue of moto's, and its client."""
    with mock_aws():
        # Inside another mock (the store tests have one for a session) moto keeps what earlier tests made.
        get_backend("sqs").reset()
        client = boto3.client("sqs", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")
        yield client.create_queue(QueueName="settlements")["QueueUrl"], client


def test_a_deferred_settlement_is_on_the_queue_without_a_word_of_what_was_said(queue: tuple[str, Any]) -> None:
    url, client = queue
    log = Lines()

    QueuedFallback(SettlementQueue(url, lambda: client), log).defer(UNWRITTEN, SETTLED)

    (message,) = client.receive_message(QueueUrl=url)["Messages"]
    assert decode(message["Body"]) == (UNWRITTEN.id, SETTLED)
    assert [line for line, _ in log.lines] == ["settlement deferred"]


def test_where_the_queue_takes_nothing_either_the_log_says_what_is_missing_and_nobody_fails() -> None:
    class Away:
        def send_message(self, **_: Any) -> None:
            raise EndpointConnectionError(endpoint_url="https://sqs.example.com")

    log = Lines()

    QueuedFallback(SettlementQueue("https://sqs.example.com/q", Away), log).defer(UNWRITTEN, SETTLED)  # type: ignore[arg-type]

    ((line, fields),) = log.lines
    assert line == "settlement lost, the money stays held"
    assert fields["actual"] == 7


def reserved(ledger: Ledger) -> Reservation:
    """Reserve on a budget and return the reservation."""
    path = opened(ledger, a_policy())
    reservation = a_reservation(path)
    ledger.reserve(reservation, path, NOW)
    return reservation


def test_a_message_settles_once_however_often_it_comes(ledger: Ledger) -> None:
    reservation = reserved(ledger)
    body = encode(reservation.id, SETTLED)

    for receives in (1, 2, 3):
        settle_message(ledger, body, receives, now=NOW, log=Lines())

    found = ledger.reservation(reservation.id)
    budget = ledger.budget(reservation.path)
    assert found is not None
    assert budget is not None
    assert (found.state, found.actual) == ("settled", SETTLED.actual)
    assert (budget.reserved, budget.policy.stop) == (0, None)


def test_a_message_that_says_something_else_stops_the_budget_and_does_not_come_again(ledger: Ledger) -> None:
    reservation = reserved(ledger)
    log = Lines()
    settle_message(ledger, encode(reservation.id, SETTLED), 1, now=NOW, log=log)

    other = replace(SETTLED, actual=Amounts(usd=8, requests=1, tokens=3))
    settle_message(ledger, encode(reservation.id, other), 1, now=NOW, log=log)

    found, budget = ledger.reservation(reservation.id), ledger.budget(reservation.path)
    assert found is not None
    assert budget is not None
    assert budget.policy.stop is not None
    assert found.actual == SETTLED.actual
    assert [line for line, _ in log.lines] == ["a deferred settlement is refused"]


def test_a_release_without_a_reservation_comes_again_a_few_times_and_then_rests(ledger: Ledger) -> None:
    body = encode(ID, Resolution(state="released", reason="nothing was sent"))
    log = Lines()

    for receives in range(1, MISSING_RECEIVES_MAX):
        with pytest.raises(ReservationMissing):
            settle_message(ledger, body, receives, now=NOW, log=log)
    settle_message(ledger, body, MISSING_RECEIVES_MAX, now=NOW, log=log)

    assert [line for line, _ in log.lines] == ["a deferred release found no reservation"]


def test_a_settlement_without_a_reservation_goes_to_the_dead_letters(ledger: Ledger) -> None:
    with pytest.raises(ReservationMissing):
        settle_message(ledger, encode(ID, SETTLED), 19, now=NOW, log=Lines())


def test_a_ledger_that_is_away_brings_the_message_again(ledger: Ledger) -> None:
    reservation = reserved(ledger)
    client = dynamodb(region="us-east-1", endpoint_url="http://127.0.0.1:9")
    away = Ledger(ledger.table, client, a_timing(deadline_seconds=0.1))

    with pytest.raises(LedgerUnavailable):
        settle_message(away, encode(reservation.id, SETTLED), 1, now=NOW, log=Lines())
