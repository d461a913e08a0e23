"""The admin API: who may ask, what is refused, and that every error has one shape."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from spendgate.admin import Admin
from spendgate.errors import LedgerUnavailable
from spendgate.local.admin_api import admin_routes
from tests.cli.conftest import TOKEN
from tests.fakes import Broken
from tests.operators import FILE, LEAF, Clock

HEADERS = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def app(admin: Admin) -> Starlette:
    return Starlette(routes=admin_routes(admin, TOKEN))


@pytest.fixture
def http(app: Starlette) -> Iterator[TestClient]:
    with TestClient(app, client=("127.0.0.1", 50_000), headers=HEADERS, raise_server_exceptions=False) as client:
        yield client


def error(response: Any) -> tuple[int, str]:
    """Return status and code, after a look at the shape that all errors share."""
    document = response.json()
    assert set(document) == {"error"}
    assert {"code", "message"} <= set(document["error"]) <= {"code", "message", "field", "problems"}
    assert response.headers["cache-control"] == "no-store"
    return response.status_code, document["error"]["code"]


def test_only_the_holder_of_the_token_is_answered(app: Starlette) -> None:
    given: list[dict[str, str]] = [
        {},
        {"authorization": TOKEN},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer "},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"x-api-key": TOKEN},
    ]
    with TestClient(app, client=("127.0.0.1", 1)) as client:
        for headers in given:
            assert error(client.get("/admin/budgets", headers=headers)) == (401, "token_invalid")
            assert error(client.get("/admin/nowhere", headers=headers)) == (401, "token_invalid")
        assert client.get("/admin/budgets", headers={"authorization": f"bearer {TOKEN}"}).status_code == 200


@pytest.mark.parametrize("host", ["192.0.2.7", "2001:db8::1", "localhost.example.com", "0.0.0.0"])
def test_only_peers_on_loopback_are_answered(app: Starlette, host: str) -> None:
    with TestClient(app, client=(host, 1), headers=HEADERS) as client:
        assert error(client.get("/admin/budgets")) == (403, "forbidden")


def test_every_other_path_or_method_is_not_found(http: TestClient) -> None:
    for method, path in (
        ("GET", "/admin"),
        ("GET", "/admin/"),
        ("GET", "/admin/nowhere"),
        ("GET", "/admin/plan"),
        ("DELETE", "/admin/keys"),
        ("POST", "/admin/budgets"),
        ("POST", "/admin/reservations/x/y/z"),
    ):
        assert error(http.request(method, path)) == (404, "not_found"), (method, path)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"nonsense",
        b'{"path": "acme", "path": "acme/search", "reason": "x"}',
        b'{"path": "acme"}',
        b'{"path": "acme", "reason": "x", "more": 1}',
        b'{"path": ["acme"], "reason": "x"}',
        b'{"path": "acme", "reason": null}',
        b'{"path": "acme", "reason": "' + b"x" * 70_000 + b'"}',
        b'\xff{"path": "acme", "reason": "x"}',
        b'{"path": "acme", "reason": "\\ud800"}',
    ],
)
def test_a_body_that_is_not_exactly_what_is_known_is_refused(http: TestClient, body: bytes) -> None:
    assert error(http.post("/admin/stop", content=body)) == (400, "request_invalid")


def test_a_compressed_body_is_refused(http: TestClient) -> None:
    assert error(http.post("/admin/stop", content=b"{}", headers={"content-encoding": "gzip"})) == (
        400,
        "request_invalid",
    )


@pytest.mark.parametrize(
    "query",
    ["?limit=0", "?limit=-1", "?limit=x", "?limit=1001", "?limit=1e2", "?limit=1&limit=2", "?lmit=1", "?state=done"],
)
def test_a_query_that_is_not_exactly_what_is_known_is_refused(http: TestClient, query: str) -> None:
    assert error(http.get(f"/admin/reservations{query}")) == (400, "request_invalid")


def test_an_operators_name_is_printable_or_refused(http: TestClient, admin: Admin) -> None:
    admin.apply(FILE, by="ana")
    body = {"path": LEAF, "reason": "it loops"}

    refused = http.post("/admin/stop", json=body, headers={"x-spendgate-operator": "two words"})
    done = http.post("/admin/stop", json=body, headers={"x-spendgate-operator": "bob"})
    unnamed = http.post("/admin/resume", json=body)

    assert error(refused) == (400, "request_invalid")
    assert done.json()["stop"]["by"] == "bob"
    assert unnamed.status_code == 200
    assert [event["by"] for event in admin.events(2)["events"]] == ["admin", "bob"]


def test_each_kind_of_refusal_has_its_status(http: TestClient) -> None:
    planned = http.post("/admin/plan", json={"file": FILE}).json()
    applied = http.post("/admin/apply", json={"file": FILE, "plan_id": planned["plan_id"]})

    assert applied.status_code == 200
    again = http.post("/admin/apply", json={"file": FILE, "plan_id": planned["plan_id"]})
    assert error(again) == (409, "revision_conflict")
    assert error(http.post("/admin/resume", json={"path": LEAF, "reason": "x"})) == (409, "request_conflict")
    assert error(http.get("/admin/budgets", params={"path": "nowhere"})) == (404, "budget_missing")
    assert error(http.get(f"/admin/reservations/{'0' * 26}")) == (404, "reservation_missing")
    assert error(http.post("/admin/keys/nobody/revoke")) == (404, "not_found")
    key = {"name": "ci", "budget": LEAF, "expires_at": "soon"}
    assert error(http.post("/admin/keys", json=key)) == (400, "request_invalid")


def test_a_configuration_with_problems_names_them_all(http: TestClient) -> None:
    response = http.post("/admin/plan", json={"file": "version: 2\nbudgts: {}\n"})

    assert error(response) == (422, "configuration_invalid")
    problems = response.json()["error"]["problems"]
    assert len(problems) == 2
    assert {problem["line"] for problem in problems} == {1, 2}


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (LedgerUnavailable("the store cannot be reached"), (503, "ledger_unavailable")),
        (ZeroDivisionError("the secret is sg-not-for-callers"), (500, "internal_fault")),
    ],
)
def test_a_failure_is_told_without_its_details(failure: Exception, expected: tuple[int, str]) -> None:
    app = Starlette(routes=admin_routes(Broken(failure), TOKEN))  # type: ignore[arg-type]
    with TestClient(app, client=("127.0.0.1", 1), headers=HEADERS) as client:
        response = client.get("/admin/audit")

    assert error(response) == expected
    assert "sg-" not in response.text


def test_a_whole_incident_goes_through_the_api(http: TestClient, clock: Clock) -> None:
    secret = http.post("/admin/apply", json={"file": FILE}).json()["keys"]["triage-prod"]
    made = http.post("/admin/keys", json={"name": "ci", "budget": "acme", "models": ["agent-model"]})
    stopped = http.post("/admin/stop", json={"path": "acme", "reason": "it loops"})
    revoked = http.post("/admin/keys/ci/revoke")

    assert made.json()["secret"] != secret
    assert stopped.json()["stop"]["reason"] == "it loops"
    assert [key["state"] for key in revoked.json()["keys"]] == ["revoked"]
    assert http.get("/admin/audit").json() == {"clean": True, "budgets": 3, "reservations": 0, "differences": []}
    everything = json.dumps(
        [http.get(f"/admin/{what}").json() for what in ("budgets", "keys", "reservations", "events")]
    )
    assert secret not in everything
    assert made.json()["secret"] not in everything
