"""What other functions of the stack have the gateway do: nobody gets there by HTTP, and no secret comes back."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from spendgate.asgi import create_app
from spendgate.asking_gateway import read, through_gateway, told
from spendgate.core.reservation import Reservation
from spendgate.core.usage import Usage, UsageReport
from spendgate.errands import BODY_BYTES_MAX, PATH, errand_routes
from spendgate.errors import LedgerUnavailable
from spendgate.observability import JsonLog
from spendgate.providers.recovery import Recovered
from spendgate.settings import Settings
from spendgate.wiring import wire
from tests.builders import a_provider, a_reservation

SECRET = "sk-CANARY-errand"
PASSED_THROUGH = {"x-amzn-request-context": "null", "x-amzn-lambda-context": '{"deadline": 4102444800000}'}
LOST = replace(a_reservation(), state="unknown", provider="demo", response_id="resp_1")
SETTLED = replace(LOST, id=LOST.id[:-1] + "Z", state="settled")
USAGE = Usage(input_uncached=6, cache_read=4, output=5, fees=(("web_search", 1),))
REPORT = UsageReport(
    usage=USAGE, finished=True, model="m", service_tier="flex", response_id="resp_1", charge=150_000_000_000_000_000_001
)
SETTINGS = Settings(
    ledger_table="ledger", config_table="config", region="us-east-1", deadline_header="x-amzn-lambda-context"
)


class Gateway:
    """A gateway's application as the function makes it, which asks a provider that this plays."""

    def __init__(self, *, adapter: bool = True) -> None:
        self.asked: list[str] = []
        self.fails = False
        self.log = io.StringIO()
        log = JsonLog(stream=self.log)
        wired = wire(SETTINGS, environ={}, log=log)
        known = {one.id: one for one in (LOST, SETTLED)}
        providers = {"demo": a_provider(name="demo", secret="env:K")}
        routes = errand_routes(known.get, providers.get, self.recover, log) if adapter else ()
        app = create_app(wired.gateway, settings=SETTINGS, log=log, routes=routes)
        self.client = TestClient(app, raise_server_exceptions=False)

    def recover(self, _: Any, reservation: Reservation) -> Recovered:
        self.asked.append(reservation.id)
        if self.fails:
            raise LedgerUnavailable("secret env:K cannot be read")
        return Recovered(report=REPORT, said="the provider's own record")

    def posted(self, headers: dict[str, str], document: Any = None, *, path: str = PATH) -> Any:
        return self.client.post(path, json=document or {"reservation": LOST.id}, headers=headers)


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    made = Gateway()
    yield made
    assert SECRET not in made.log.getvalue()


def test_an_event_that_the_adapter_passes_through_is_answered_with_what_the_provider_says(gateway: Gateway) -> None:
    answer = gateway.posted(PASSED_THROUGH)

    assert answer.status_code == 200
    assert read(answer.json()) == Recovered(report=REPORT, said="the provider's own record")
    assert gateway.asked == [LOST.id]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-amzn-request-context": ""},
        {"x-amzn-request-context": "{}"},
        {"x-amzn-request-context": "[null]"},
        {"x-amzn-request-context": '"null"'},
        {"x-amzn-request-context": "NULL"},
        {"x_amzn_request_context": "null"},
        {"x-forwarded-request-context": "null"},
        # As the adapter writes it over what a caller sent.
        {"x-amzn-request-context": '{"requestId":"a","resourcePath":"/v1/{proxy+}","path":"/v/events"}'},
    ],
)
def test_a_request_finds_nothing_there_whatever_its_headers_say(gateway: Gateway, headers: dict[str, str]) -> None:
    answer, nowhere = gateway.posted(headers), gateway.posted(headers, path="/events/none")

    assert answer.status_code == nowhere.status_code == 404
    assert answer.json()["error"]["code"] == nowhere.json()["error"]["code"] == "not_found"
    assert gateway.asked == []


def test_two_contexts_are_refused_before_anything_reads_one(gateway: Gateway) -> None:
    headers = [("x-amzn-request-context", '{"requestId":"a"}'), ("x-amzn-request-context", "null")]
    answer = gateway.client.post(PATH, json={"reservation": LOST.id}, headers=headers)

    assert answer.status_code == 400
    assert gateway.asked == []


def test_without_an_adapter_before_it_no_gateway_has_the_path() -> None:
    made = Gateway(adapter=False)

    assert made.posted(PASSED_THROUGH).status_code == 404
    assert made.asked == []


@pytest.mark.parametrize(
    "document",
    [
        {"reservation": SETTLED.id},
        {"reservation": LOST.id[:-1] + "Y"},
        {"reservation": 7},
        {"reservation": "../secrets"},
        {"secret": "env:K"},
        [],
        {"reservation": LOST.id, "more": "x" * BODY_BYTES_MAX},
    ],
)
def test_only_a_call_that_nobody_has_accounted_for_is_asked_about(gateway: Gateway, document: Any) -> None:
    answer = gateway.client.post(PATH, json=document, headers=PASSED_THROUGH)

    assert answer.status_code == 200
    assert answer.json()["report"] is None
    assert gateway.asked == []


def test_a_secret_that_cannot_be_read_is_told_by_its_name(gateway: Gateway) -> None:
    gateway.fails = True

    assert read(gateway.posted(PASSED_THROUGH).json()) == Recovered(report=None, said="secret env:K cannot be read")


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"report": None},
        {"report": {}, "said": ""},
        {"report": "x", "said": ""},
        {"report": {**told(REPORT, "")["report"], "charge": -1}, "said": ""},
        {"report": {**told(REPORT, "")["report"], "charge": "1"}, "said": ""},
        {"report": {**told(REPORT, "")["report"], "charge": True}, "said": ""},
        {"report": {**told(REPORT, "")["report"], "finished": False}, "said": ""},
        {"report": {**told(REPORT, "")["report"], "usage": {"output": -1}}, "said": ""},
        {"report": {**told(REPORT, "")["report"], "usage": None}, "said": ""},
        {"report": {**told(REPORT, "")["report"], "model": 7}, "said": ""},
    ],
)
def test_an_answer_that_is_none_proves_nothing(answer: dict[str, Any]) -> None:
    with pytest.raises(LedgerUnavailable):
        through_gateway(lambda _: answer)(a_provider(), LOST)


def test_a_report_without_usage_is_none() -> None:
    assert read(told(UsageReport(problem="usage_missing"), "not whole")) == Recovered(report=None, said="not whole")
