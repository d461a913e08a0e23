"""The admin API as API Gateway calls it: who acts, what is answered, and that both transports answer alike."""

import base64
import json
import os
import re
import secrets
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from aws_lambda_powertools.event_handler.openapi.models import OpenAPI
from starlette.applications import Starlette
from starlette.testclient import TestClient

from spendgate.admin import Admin
from spendgate.admin_endpoints import ENDPOINTS
from spendgate.admin_openapi import document
from spendgate.admin_resolver import ANSWER_BYTES_MAX, AdminApi
from spendgate.errors import LedgerUnavailable
from spendgate.local.admin_api import admin_routes
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from tests.fakes import Broken, Lines
from tests.operators import FILE, LEAF, Clock

ROOT: Final = Path(__file__).parents[1]
ALICE: Final = "arn:aws:sts::123456789012:assumed-role/Operators/alice"


@pytest.fixture
def admin(ledger: Ledger, config: Config) -> Admin:
    return Admin(ledger, config, clock=Clock(), randomness=secrets.token_bytes)


@pytest.fixture
def log() -> Lines:
    return Lines()


@pytest.fixture
def api(admin: Admin, log: Lines) -> AdminApi:
    return AdminApi(admin, log)


def event(name: str) -> dict[str, Any]:
    """Return an event that API Gateway sends."""
    found: dict[str, Any] = json.loads((ROOT / "events" / f"{name}.json").read_text(encoding="utf-8"))
    return found


def asked(method: str, path: str, body: Any = None, query: dict[str, list[str]] | None = None) -> dict[str, Any]:
    """Return the event of another request by the same caller."""
    return {
        **event("admin-stop"),
        "path": f"/admin/{path}",
        "httpMethod": method,
        "pathParameters": {"proxy": path},
        "multiValueQueryStringParameters": query,
        "queryStringParameters": None if query is None else {name: texts[-1] for name, texts in query.items()},
        "body": None if body is None else json.dumps(body),
    }


def told(answer: dict[str, Any]) -> tuple[int, Any]:
    """Return status and document of an answer that API Gateway can take."""
    assert set(answer) >= {"statusCode", "body", "isBase64Encoded"}
    assert not answer["isBase64Encoded"]
    headers = {name.lower(): value for name, value in (answer.get("headers") or {}).items()}
    headers |= {name.lower(): value[0] for name, value in (answer.get("multiValueHeaders") or {}).items()}
    assert (headers["content-type"], headers["cache-control"]) == ("application/json", "no-store")
    return answer["statusCode"], json.loads(answer["body"])


def code(answer: dict[str, Any]) -> tuple[int, str]:
    """Return status and code of a refusal, after a look at the shape that all share."""
    status, found = told(answer)
    assert set(found) == {"error"}
    assert {"code", "message"} <= set(found["error"]) <= {"code", "message", "field", "problems"}
    return status, found["error"]["code"]


def test_the_identity_that_iam_let_in_is_who_acts_whatever_a_header_says(
    api: AdminApi, admin: Admin, log: Lines
) -> None:
    admin.apply(FILE, by="ana")
    given = event("admin-stop")
    given["headers"] |= {"x-spendgate-operator": "mallory"}

    status, budget = told(api(given, None))

    assert (status, budget["stop"]["by"], budget["stop"]["reason"]) == (200, ALICE, "ticket 311")
    assert admin.events(1)["events"][0]["by"] == ALICE
    assert log.lines[-1] == (
        "admin call",
        {
            "correlation_id": given["requestContext"]["requestId"],
            "method": "POST",
            "path": "/admin/stop",
            "by": ALICE,
            "status": 200,
        },
    )


@pytest.mark.parametrize("identity", [None, {}, {"userArn": None}, {"userArn": ""}, {"userArn": "alice"}])
def test_a_request_without_an_identity_is_refused(api: AdminApi, identity: Any) -> None:
    given = event("admin-budgets")
    given["requestContext"]["identity"] = identity
    given["headers"] |= {"x-spendgate-operator": "mallory"}

    assert code(api(given, None)) == (403, "forbidden")


def test_an_identity_longer_than_the_trail_takes_is_told_without_its_path(api: AdminApi, admin: Admin) -> None:
    admin.apply(FILE, by="ana")
    given = event("admin-stop")
    given["requestContext"]["identity"]["userArn"] = f"arn:aws:iam::123456789012:user/{'teams/' * 60}alice"

    assert told(api(given, None))[1]["stop"]["by"] == "arn:aws:iam::123456789012:user/alice"


def test_a_get_reads_its_query_and_a_domain_s_base_path_does_not_matter(api: AdminApi, admin: Admin) -> None:
    admin.apply(FILE, by="ana")
    given = event("admin-budgets")

    status, found = told(api(given, None))
    based = told(api({**given, "path": "/spend/admin/budgets"}, None))
    staged = told(api({**given, "path": "/v/admin/budgets", "pathParameters": None}, None))

    assert status == 200
    assert [one["path"] for one in found["budgets"]] == ["acme", "acme/search", LEAF]
    assert based[0] == staged[0] == 200
    assert code(api(asked("GET", "budgets", query={"path": ["acme", "b"]}), None)) == (400, "request_invalid")
    assert code(api(asked("GET", "events", query={"limit": ["all"]}), None)) == (400, "request_invalid")
    assert code(api(asked("GET", "budgets", query={"pth": ["acme"]}), None)) == (400, "request_invalid")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "nowhere"),
        ("DELETE", "keys"),
        ("OPTIONS", "keys"),
        # To IAM each of these is another path than the one that it would be without its decoration.
        ("GET", "keys/"),
        ("GET", "/keys"),
        ("GET", "admin/keys"),
        ("GET", "%6Beys"),
        ("GET", "./keys/."),
        ("GET", "keys\n"),
        ("POST", "reservations/x/y/reconcile"),
    ],
)
def test_only_a_path_that_is_written_exactly_is_answered(api: AdminApi, method: str, path: str) -> None:
    assert code(api(asked(method, path), None)) == (404, "not_found")


def test_a_body_is_read_as_strictly_as_locally(api: AdminApi) -> None:
    for body in (None, "", "[]", '{"path": "acme", "path": "b", "reason": "x"}', '{"path": "acme"}', "\ud800"):
        assert code(api({**event("admin-stop"), "body": body}, None)) == (400, "request_invalid"), body
    assert code(api({**event("admin-stop"), "isBase64Encoded": True, "body": "?"}, None)) == (400, "request_invalid")
    compressed = event("admin-stop")
    compressed["headers"] |= {"Content-Encoding": "gzip"}
    assert code(api(compressed, None)) == (400, "request_invalid")
    large = json.dumps({"path": "acme", "reason": "x" * 70_000})
    assert code(api({**event("admin-stop"), "body": large}, None)) == (400, "request_invalid")


def test_a_body_in_base64_is_the_same_body(api: AdminApi, admin: Admin) -> None:
    admin.apply(FILE, by="ana")
    given = event("admin-stop")
    encoded = base64.b64encode(given["body"].encode()).decode()

    assert told(api({**given, "body": encoded, "isBase64Encoded": True}, None))[0] == 200


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (LedgerUnavailable("the store cannot be reached"), (503, "ledger_unavailable")),
        (ZeroDivisionError("the secret is sg-not-for-callers"), (500, "internal_fault")),
    ],
)
def test_a_failure_is_told_without_its_details_and_found_in_the_log_by_its_request(
    log: Lines, failure: Exception, expected: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_DEV", "true")
    monkeypatch.setenv("POWERTOOLS_EVENT_HANDLER_DEBUG", "true")
    api = AdminApi(Broken(failure), log)  # type: ignore[arg-type]
    given = event("admin-budgets")

    answer = api(given, None)

    assert code(answer) == expected
    assert "sg-" not in answer["body"]
    assert {fields["correlation_id"] for _, fields in log.lines} == {given["requestContext"]["requestId"]}
    if expected[0] == 500:
        assert given["requestContext"]["requestId"] in answer["body"]


def test_what_is_no_event_of_the_api_is_refused_and_nothing_is_raised(api: AdminApi) -> None:
    for given in ({}, {"requestContext": None}, {"requestContext": {"identity": {"userArn": ALICE}}}):
        assert api(given, None)["statusCode"] in (403, 404)


def test_an_answer_that_lambda_would_cut_is_refused_with_what_to_do(log: Lines) -> None:
    none: dict[str, Any] = {"budget": "acme", "models": [], "expires_at": None, "revoked_at": None, "state": "live"}
    key = {"name": "x" * ANSWER_BYTES_MAX, "id": "0" * 12, **none}
    large = SimpleNamespace(keys=SimpleNamespace(list=lambda: {"keys": [key]}))
    api = AdminApi(large, log)  # type: ignore[arg-type]

    assert code(api(asked("GET", "keys"), None)) == (413, "answer_too_large")


def test_both_transports_answer_every_endpoint_alike(api: AdminApi, admin: Admin) -> None:
    admin.apply(FILE, by="ana")
    app = Starlette(routes=admin_routes(admin, "token"))
    headers = {"authorization": "Bearer token", "x-spendgate-operator": ALICE}
    differing = []
    with TestClient(app, client=("127.0.0.1", 1), headers=headers) as http:
        for one in ENDPOINTS:
            path = one.path.removeprefix("/").replace("{name}", "nobody").replace("{id}", "0" * 26)
            for body in ({}, {"file": "version: 2"}, {"path": "nowhere", "reason": "x"}):
                locally = http.request(one.method, f"/admin/{path}", json=body if one.method == "POST" else None)
                deployed = told(api(asked(one.method, path, body if one.method == "POST" else None), None))
                here = {name: value for name, value in locally.json().items() if name != "at"}
                there = {name: value for name, value in deployed[1].items() if name != "at"}
                if (locally.status_code, here) != (deployed[0], there):
                    differing.append((one, body))

    assert differing == []


# --- the document


def test_the_document_is_valid_current_and_served_to_those_who_are_let_in(api: AdminApi) -> None:
    status, served = told(api(asked("GET", "openapi.json"), None))
    committed = json.loads((ROOT / "docs" / "admin-openapi.json").read_text(encoding="utf-8"))

    assert status == 200
    assert served == committed == document(ENDPOINTS)
    OpenAPI.model_validate(served)
    references = set(re.findall(r'"#/components/(\w+)/(\w+)"', json.dumps(served)))
    assert [one for one in references if one[1] not in served["components"][one[0]]] == []


def test_the_document_has_each_endpoint_with_its_body_and_its_query() -> None:
    paths = document(ENDPOINTS)["paths"]

    told_of = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert told_of == {(one.method, f"/admin{one.path}") for one in ENDPOINTS}
    operations = [operation for methods in paths.values() for operation in methods.values()]
    assert len({operation["operationId"] for operation in operations}) == len(ENDPOINTS)
    listed = paths["/admin/reservations"]["get"]["parameters"]
    assert [(one["name"], one["schema"]["type"]) for one in listed] == [
        ("budget", "string"),
        ("state", "string"),
        ("limit", "integer"),
    ]
    assert paths["/admin/reservations/{id}"]["get"]["parameters"][0]["in"] == "path"


# --- the function


def test_the_function_is_packed_with_the_shipped_prices() -> None:
    lines = (ROOT / "template.yaml").read_text(encoding="utf-8").partition("\n  AdminFunction:")[2].partition("\n\n")[0]

    # app.py looks for them beside its own folder.
    assert "CodeUri: functions\n" in lines
    assert "Handler: admin.app.handler\n" in lines
    assert list((ROOT / "functions" / "catalogue" / "prices").glob("*.yaml"))


def test_the_function_starts_as_lambda_starts_it_and_answers(ledger: Ledger, config: Config, store_url: str) -> None:
    program = "import json, sys, admin.app; print(json.dumps(admin.app.handler(json.load(sys.stdin), None)))"
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT / 'layers' / 'core'}:{ROOT / 'functions'}",
        "AWS_LAMBDA_FUNCTION_NAME": "spendgate-admin",
        "AWS_REGION": "us-east-1",
        "SPENDGATE_REGION": "us-east-1",
        "SPENDGATE_LEDGER_TABLE": ledger.table,
        "SPENDGATE_CONFIG_TABLE": config.table,
        "SPENDGATE_ENDPOINT_URL": store_url,
        "SPENDGATE_ALERTS_FUNCTION": "spendgate-alerts",
        "SPENDGATE_GATEWAY_FUNCTION": "spendgate-gateway",
        "POWERTOOLS_SERVICE_NAME": "spendgate",
        "POWERTOOLS_METRICS_NAMESPACE": "Spendgate",
    }

    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(asked("POST", "plan", {"file": FILE})),
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    status, planned = told(json.loads(ran.stdout))
    assert status == 200
    assert planned["writes"]
    # The shipped prices are packed with it: a provider's come with the provider.
    assert "catalogue" in {change["kind"] for change in planned["changes"]}
    line = json.loads(ran.stderr.splitlines()[-1])
    assert (line["message"], line["by"], line["status"]) == ("admin call", ALICE, 200)
