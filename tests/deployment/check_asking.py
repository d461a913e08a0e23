"""Asking a provider what became of a call, from functions that may not read its secret: by way of the gateway's."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from spendgate.core.bound import Quote
from spendgate.core.price import Terms
from spendgate.core.reservation import Reservation, Resolution
from spendgate.core.route import Candidate
from spendgate.store.ledger import Ledger
from tests.builders import a_price_row
from tests.conftest import a_timing
from tests.deployment.proof import PROVIDER_KEY, Proof, without
from tests.operators import admit

MODEL = Candidate(provider="records", model="demo")
RECORD = {
    "total_cost": 0.125,
    "is_byok": False,
    "native_tokens_prompt": 10,
    "native_tokens_completion": 25,
    "model": "demo",
}


@dataclass(slots=True)
class Records:
    """A provider that keeps records of its answers, as OpenRouter does, and shows them to who knows its key."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
def records(proof: Proof) -> Iterator[Records]:
    found = Records()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer_id = self.path.rpartition("=")[2]
            found.asked.append(answer_id)
            may = self.headers["authorization"] == f"Bearer {PROVIDER_KEY}" and answer_id not in found.unknown
            body = json.dumps({"data": RECORD | {"id": answer_id}} if may else {}).encode()
            self.send_response(200 if may else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        found.url = f"http://127.0.0.1:{server.server_port}"
        _known(proof, found.url)
        # A gateway that has just been asked for something is warm: a start takes as long as the machine likes.
        assert proof.stack.call("GET", "/healthz", caller=None).status_code == 200
        yield found
        server.shutdown()
        thread.join()


def _known(proof: Proof, url: str) -> None:
    """Let the stack know the provider; the admin API would refuse its address."""
    item: dict[str, Any] = {
        "pk": {"S": "PROVIDER#records"}, "sk": {"S": "PROVIDER"}, "name": {"S": "records"}, "dialect": {"S": "openai"},
        "kind": {"S": "openrouter"}, "base_url": {"S": url}, "secret": {"S": "secretsmanager:spendgate/demo"},
        "framing": {"M": {}},
    }  # fmt: skip
    framing = ("request", "tooling", "tool", "part", "output_overshoot")
    item["framing"] = {"M": {name: {"N": "0"} for name in framing}}
    proof.stack.dynamodb().put_item(TableName=proof.stack.outputs["ConfigTable"], Item=item)


def lost(proof: Proof, answer_id: str, *, number: int, minutes: int = 20) -> Reservation:
    """Leave a call as a gateway does that saw the answer's id and then no end."""
    ledger = Ledger(proof.stack.outputs["LedgerTable"], proof.stack.dynamodb(), a_timing())
    quote = Quote(candidate=MODEL, rows=(a_price_row(provider=MODEL.provider, model=MODEL.model),), terms=Terms())
    then = datetime.now(UTC) - timedelta(minutes=minutes)
    made = admit(ledger, then, held="0.50", path="acme/asked", key_name="asked", number=number, quotes=(quote,))
    cut = Resolution(
        state="unknown", reason="the stream was cut", provider=MODEL.provider, model=MODEL.model, response_id=answer_id
    )
    ledger.resolve(made.id, cut, then + timedelta(seconds=2))
    return made


def test_an_operator_asks_and_the_providers_own_record_settles(proof: Proof, records: Records) -> None:
    one = lost(proof, "gen-operator", number=1)
    proof.spendgate("reconcile", "ask", one.id)

    found = proof.admin("GET", f"/reservations/{one.id}")
    assert (found["state"], found["actual"]["usd"]) == ("settled", "0.125")
    assert found["by"].endswith(":user/operator")
    assert records.asked.count("gen-operator") == 1
    assert proof.admin("GET", "/audit")["differences"] == []


def test_what_the_provider_has_no_record_of_stays_unknown(proof: Proof, records: Records) -> None:
    records.unknown.add("gen-nowhere")
    one = lost(proof, "gen-nowhere", number=2)

    assert "answered 404" in proof.spendgate("reconcile", "ask", one.id, ends=1)
    assert proof.admin("GET", f"/reservations/{one.id}")["state"] == "unknown"


def test_the_sweeper_asks_by_itself(proof: Proof, records: Records) -> None:
    one = lost(proof, "gen-sweeper", number=3)
    error, answer = proof.stack.invoke("SweeperFunction", {})

    assert error is None, answer
    found = proof.admin("GET", f"/reservations/{one.id}")
    assert (found["state"], found["actual"]["usd"], found["by"]) == ("settled", "0.125", "sweeper")


def test_a_gateway_that_may_not_be_invoked_is_told_and_changes_nothing(proof: Proof, records: Records) -> None:
    one = lost(proof, "gen-denied", number=4)
    with without(proof, "AdminFunction", "lambda"):
        answer = proof.stack.call(
            "POST", f"/admin/reservations/{one.id}/reconcile", {"action": "ask"}, caller=proof.operator
        )

    assert answer.status_code == 503
    assert "the gateway function does not answer" in answer.text
    assert "gen-denied" not in records.asked


@pytest.mark.parametrize(
    "path", ["/events", "/v1/events", "/v1/../events", "/v1/%2e%2e/events", "/v1//events", "/healthz/../events"]
)
def test_nobody_gets_there_over_the_api(proof: Proof, records: Records, path: str) -> None:
    one = {"reservation": "01M8N6E99MVKD2ANNST5RWH4AW"}
    before = list(records.asked)
    spoofed = {"x-amzn-request-context": "null", "content-type": "application/json"}
    with httpx.Client(trust_env=False, timeout=60) as client:
        request = client.build_request("POST", proof.stack.url, json=one, headers=spoofed)
        # As it is written: the client's own reading of the path would leave nothing to try.
        request.url = request.url.copy_with(raw_path=request.url.raw_path.rstrip(b"/") + path.encode())
        answer = client.send(request)

    assert answer.status_code in (403, 404)
    assert "report" not in answer.text
    assert records.asked == before


def test_what_an_invocation_gets_back_has_no_secret(proof: Proof, records: Records) -> None:
    one = lost(proof, "gen-invoked", number=5)
    raw = proof.stack.emulator.client("lambda").invoke(
        FunctionName=f"{proof.stack.resources['GatewayFunction']}:live",
        Payload=json.dumps({"reservation": one.id}).encode(),
    )["Payload"].read()  # fmt: skip

    assert b"the provider's own record" in raw
    assert PROVIDER_KEY.encode() not in raw
    # It only tells: who asked settles.
    assert proof.admin("GET", f"/reservations/{one.id}")["state"] == "unknown"
