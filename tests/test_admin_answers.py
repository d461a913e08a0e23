"""Every answer of the admin API is what its document says: each endpoint over a day in which much happens, and each error."""

import copy
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.testclient import TestClient

from spendgate.admin import Admin
from spendgate.admin_endpoints import ENDPOINTS
from spendgate.admin_http import refusal
from spendgate.admin_models import Endpoint
from spendgate.admin_openapi import FAILURES, document
from spendgate.alerts import store_of
from spendgate.core.alert import Alert
from spendgate.core.window import MEASURES
from spendgate.errors import (
    AlertUndelivered,
    ConfigurationInvalid,
    InternalFault,
    LedgerError,
    LedgerUnavailable,
    NotFound,
    Problem,
    RefusalFacts,
    RequestConflict,
    RequestInvalid,
)
from spendgate.local.admin_api import admin_routes
from spendgate.providers.recovery import Recovered
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.tables import create_tables
from tests.answers import check, check_error
from tests.builders import a_quote
from tests.conftest import a_timing
from tests.operators import FILE, LEAF, Clock, admit, lose, settle
from tests.simulation.memory_store import MemoryStore

# Whatever the file can say, once.
RICH: Final = """\
version: 1
providers:
  openai: {dialect: openai, base_url: https://api.openai.com/v1, secret: env:OPENAI_API_KEY, geo: us, free_fields: [nice], framing: {tool: 9}}
prices:
  - {provider: openai, model: house-model, from: 2026-01-01, input: "2.50", output: "10", output_tokens_max: 16384}
  - provider: openai
    model: old
    from: 2026-01-02T03:04:05Z
    input: "1"
    output: "2"
    audio_input: "3"
    tiers: [{above: 200000, input: "2", output: "4"}]
    service: {priority: {input: "2", output: "4"}}
    factors: {geo: {us: "1.1"}}
    fees: {web_search: "0.01"}
    context_tokens: 400000
    aliases: [older]
    source: a page
    checked: 2026-11-01
routes:
  agent-model: {candidates: [{provider: openai, model: house-model}], allow: {web_search: 1}}
  bare: [{provider: openai, model: unheard}]
budgets:
  acme: {alerts: {warn_at: [50]}, allow: {web_search: 2}, limits: {usd: {month: 5000, day: 400}}}
  acme/free: {unbudgeted: true, mode: observe, failover: true}
  acme/search/triage:
    limits: {usd: {request: "0.50", hour: 5, day: 40}, requests: {minute: 60}}
    default_output_tokens: 8192
    runs: {limits: {usd: {life: 2}}, expire_after: 24h, elapsed_max: 90m, active_max: 30m, stop_on_unknown: true, delegate: 1}
keys:
  triage-prod: {budget: acme/search/triage, models: [agent-model], expires: 2027-01-01}
alerts: {warn_at: [90, 50], slack: false}
"""
ROWS: Final = 'prices:\n  - {provider: openai, model: new, input: "1", output: "2", from: 2026-01-01}\n'


class Desk:
    """An operator at a local admin API on a store in memory, with what a day has brought."""

    def __init__(self) -> None:
        self.clock = Clock()
        client = MemoryStore(self.clock).client
        create_tables(client, ledger="ledger", config="config")
        self.ledger = Ledger("ledger", client, a_timing())
        config = Config("config", "ledger", client, a_timing())
        self.admin = Admin(
            self.ledger,
            config,
            clock=self.clock,
            randomness=secrets.token_bytes,
            recover=lambda *_: Recovered(report=None, said="no record"),
            alert_tester=lambda: {"published": 9, "failed": 0},
        )
        self.answers: list[tuple[Endpoint, Any]] = []

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask as the command line does, and keep the answer for each of its endpoint's own tests."""
        app = Starlette(routes=admin_routes(self.admin, "token"))
        with TestClient(app, client=("127.0.0.1", 1), headers={"authorization": "Bearer token"}) as http:
            answer = http.request(method, f"/admin{path}", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.headers["cache-control"] == "no-store"
        self.answers.append((_endpoint(method, path.partition("?")[0]), answer.json()))
        return answer.json()

    def day(self) -> None:
        """Do all that an operator can do, and let happen what can."""
        ask, now = self.ask, self.clock
        planned = ask("POST", "/plan", {"file": FILE})
        ask("POST", "/apply", {"file": FILE, "plan_id": planned["plan_id"]})
        ask("POST", "/apply", {"file": RICH})
        ask("POST", "/plan", {"file": FILE.replace("triage-prod", "triage-next")})
        settle(self.ledger, admit(self.ledger, now(), held="0.3", number=1), now(), cost="0.1")
        lost = [admit(self.ledger, now(), held="0.3", number=number, quotes=(a_quote(),)) for number in (2, 3, 4)]
        for one in lost:
            lose(self.ledger, one, now())
        ask("POST", f"/reservations/{lost[0].id}/reconcile", {"action": "ask"})
        settling = {"action": "settle", "cost": "0.9", "evidence": "the invoice"}
        ask("POST", f"/reservations/{lost[0].id}/reconcile", settling)
        ask("POST", f"/reservations/{lost[1].id}/reconcile", {"action": "charge", "evidence": "none"})
        ask("GET", "/blocks")
        block = ask("GET", "/budgets")["blocks"][0]
        ask("POST", "/stop", {"path": LEAF, "reason": "loops"})
        resumed = {"path": LEAF, "reason": "over", "limits": {"usd": {"day": 50}}, "until": "6h"}
        ask("POST", "/resume", resumed)
        ask("GET", f"/budgets?path={LEAF}")
        ask("POST", "/blocks/lift", {name: block[name] for name in ("provider", "model", "feature")} | {"reason": "ok"})
        ask("POST", "/keys", {"name": "one", "budget": LEAF, "expires_at": "2027-01-31"})
        ask("POST", "/keys/one/revoke")
        self._alerts()
        ask("POST", "/prices", {"file": ROWS})
        lists = ("/keys", "/reservations", f"/reservations/{lost[0].id}", "/prices", "/prices/check", "/catalogue")
        for path in (*lists, "/audit", "/events?by=operators", "/events", "/openapi.json", "/alerts"):
            ask("GET", path)
        for by in ("day,budget,provider,model", "budget"):
            ask("GET", f"/report?by={by}")
        ask("POST", "/alerts/test")

    def _alerts(self) -> None:
        facts = {"reason": "loops", "by": "ada", "since": "2026-11-30T02:10:00.000000Z", "reservation": ""}
        at, store = self.clock(), store_of(self.ledger)
        told = Alert(kind="stopped", scope="acme", mark="1", at=at, severity="critical", facts=facts)
        for one in (told, replace(told, mark="2", scope="acme/b")):
            store.post(one)
        store.sent(told, at)


def _endpoint(method: str, path: str) -> Endpoint:
    """Return the endpoint of a request: the one with the most of its words as they are."""
    words = path.split("/")
    fitting = [
        one
        for one in ENDPOINTS
        if one.method == method
        and len(own := one.path.split("/")) == len(words)
        and all(mine in (word, "{id}", "{name}") for mine, word in zip(own, words, strict=True))
    ]
    return min(fitting, key=lambda one: "{" in one.path)


@pytest.fixture(scope="module")
def desk() -> Desk:
    desk = Desk()
    desk.day()
    return desk


def test_every_endpoint_answers_what_its_document_says(desk: Desk) -> None:
    for endpoint, answer in desk.answers:
        check(endpoint, answer)

    assert {endpoint.name for endpoint, _ in desk.answers} == {endpoint.name for endpoint in ENDPOINTS}


def test_no_answer_of_an_endpoint_may_have_more_or_less_than_its_document_says(desk: Desk) -> None:
    slipped = []
    for endpoint, answer in desk.answers:
        for what, wrong in _spoilt(answer):
            try:
                check(endpoint, wrong)
            except ValidationError:
                continue
            slipped.append((endpoint.name, what))

    assert slipped == []


def test_a_schema_of_the_document_lets_no_member_through_that_it_does_not_name() -> None:
    schemas = document(ENDPOINTS)["components"]["schemas"]
    free = {name for name, one in schemas.items() if one["type"] == "object" and one.get("additionalProperties", True)}

    # The document itself is described by a standard, and what API Gateway says is its own.
    assert free == {"Elsewhere"}
    assert schemas["Budget"]["properties"]["reserved"]["pattern"].startswith("^(0|[1-9]")
    assert schemas["Stop"]["properties"]["at"]["format"] == "date-time"
    assert set(schemas["Amounts"]["required"]) == set(MEASURES)


ERRORS: Final = [
    *(kind("x") for kind in (RequestConflict, LedgerUnavailable, NotFound, InternalFault, AlertUndelivered)),
    RequestInvalid("x", facts=RefusalFacts(field="y")),
    ConfigurationInvalid([Problem("a.b", "x", 3), Problem("", "y")]),
    LedgerError("x"),
    *(kind("x") for kind in LedgerError.__subclasses__() if kind.__module__ == LedgerError.__module__),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_every_error_that_a_use_case_raises_is_in_the_document(error: Any) -> None:
    check_error(ENDPOINTS[0], *refusal(error))


def test_every_code_of_the_document_is_one_that_is_told() -> None:
    told = {refusal(error)[1]["error"]["code"] for error in ERRORS}
    of_transports = {"token_invalid", "forbidden", "answer_too_large"}

    assert {code for failure in FAILURES.values() for code in failure.codes} == told | of_transports


def _spoilt(answer: Any) -> Iterator[tuple[str, Any]]:
    """Yield the answer with one thing wrong: a member too many, money as a number, an instant without its zone."""
    yield "a member too many", {**answer, "more": 1}
    spoils: list[tuple[str, Callable[[str, Any], bool], Any]] = [
        ("money as a number", lambda name, value: name in {"reserved", "free", "input"} and isinstance(value, str), 0.5),
        ("money with an exponent", lambda name, value: name in {"reserved", "free", "input"} and isinstance(value, str), "1E-7"),
        ("a local time", lambda name, value: name in {"at", "created_at"}, "2026-11-30T02:14:00"),
        ("nothing where something is", lambda name, value: name in {"rev", "state", "kind"}, None),
    ]  # fmt: skip
    for what, is_meant, wrong in spoils:
        spoilt = copy.deepcopy(answer)
        if "openapi" not in answer and _replace(spoilt, is_meant, wrong):
            yield what, spoilt


def _replace(value: Any, is_meant: Callable[[str, Any], bool], wrong: Any) -> bool:
    """Put something wrong into the first member that is meant; the trail's own records are left, since they hold anything."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        if name in {"before", "after"}:
            continue
        if isinstance(name, str) and is_meant(name, one):
            value[name] = wrong
            return True
        if _replace(one, is_meant, wrong):
            return True
    return False
