"""The command line against a deployed stack: found, signed for, and each failure told with what to do."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spendgate.admin import Admin
from spendgate.admin_resolver import AdminApi
from tests.cli.aws import (
    ACCESS_KEY,
    ACCOUNT,
    ALICE,
    BASE,
    REGION,
    SECRET_KEY,
    FakeAws,
    aws,
    denied,
    failed,
    signature_fault,
)
from tests.cli.conftest import CommandLine
from tests.operators import FILE, LEAF


class Quiet:
    """Logs nothing."""

    def info(self, message: str, /, **fields: Any) -> None:
        """Say nothing."""

    def exception(self, message: str, /, **fields: Any) -> None:
        """Say nothing."""


@pytest.fixture
def cloud(admin: Admin) -> Iterator[FakeAws]:
    """An AWS account with one stack."""
    with aws(lambda event: AdminApi(admin, Quiet())(event, None)) as running:
        yield running
        assert running.faults == []


@pytest.fixture
def run(nowhere: CommandLine, cloud: FakeAws, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line of somebody with credentials, and nothing else set up."""
    clean(monkeypatch, nowhere.folder)
    monkeypatch.setenv("AWS_ENDPOINT_URL", cloud.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("SPENDGATE_STACK", "spendgate")
    return nowhere


def clean(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Take away what this machine says about AWS."""
    foreign = [
        name for name in os.environ if name.startswith(("AWS_", "SPENDGATE_")) or name.lower().endswith("_proxy")
    ]
    for name in foreign:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "aws-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "aws-credentials"))


def test_a_configuration_is_planned_asked_for_and_applied_as_the_caller_s_identity(
    run: CommandLine, admin: Admin, cloud: FakeAws
) -> None:
    declined = run("apply", "-f", "spendgate.yaml", input="n\n")
    assert (declined.exit_code, admin.budgets()["budgets"]) == (1, [])
    assert "Plan: " in declined.stdout

    applied = run("apply", "-f", "spendgate.yaml", input="y\n")

    assert applied.exit_code == 0, applied.output
    assert "SPENDGATE_KEY=sg-" in applied.stdout
    assert {event["by"] for event in admin.events()["events"]} == {ALICE}
    assert f"POST {BASE}/admin/apply" in cloud.seen


def test_what_others_changed_since_the_plan_is_an_error_and_not_an_overwrite(
    run: CommandLine, admin: Admin, cloud: FakeAws
) -> None:
    answer = cloud.handler

    def between(event: dict[str, Any]) -> dict[str, Any]:
        if event["path"] == "/admin/apply":
            admin.apply(FILE.replace("month: 5000", "month: 100"), by="bob")
        return answer(event)

    cloud.handler = between
    result = run("apply", "-f", "spendgate.yaml", "--yes")

    assert result.exit_code == 4
    assert "changed since this plan was made" in result.stderr
    assert admin.budgets("acme")["budgets"][0]["policy"]["limits"]["usd"]["month"] == "100"


def test_every_kind_of_path_and_query_is_signed_as_it_is_sent(run: CommandLine, admin: Admin) -> None:
    admin.apply(FILE, by="ana")

    assert run("status", LEAF).exit_code == 0
    assert run("reservations", "list", "--budget", LEAF, "--state", "unknown", "--limit", "7").exit_code == 0
    assert run("keys", "revoke", "triage-prod").exit_code == 0
    assert run("prices", "show", "openai", "house-model").exit_code == 0
    assert "there is no budget" in run("status", "a b+c/d&e=f~g").stderr
    assert run("stop", LEAF, "--reason", "größer, ½").exit_code == 0


def test_the_stand_in_takes_no_signature_of_another_request() -> None:
    assert signature_fault("GET", BASE, {}, b"") == "no signature"
    given = "AWS4-HMAC-SHA256 Credential={}/20261130/{}/execute-api/aws4_request, SignedHeaders={}, Signature={}"
    headers = {"host": "h", "x-amz-date": "20261130T021400Z"}

    def fault(*parts: str) -> str | None:
        return signature_fault("GET", BASE, {**headers, "authorization": given.format(*parts)}, b"")

    assert fault("other", REGION, "host;x-amz-date", "0" * 64) is not None
    assert fault(ACCESS_KEY, REGION, "host", "0" * 64) == "signed are only ['host']"
    assert fault(ACCESS_KEY, REGION, "host;x-amz-date", "0" * 64) == "the signature is of another request"


def test_a_profile_s_credentials_and_region_are_used(
    run: CommandLine, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.apply(FILE, by="ana")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)
    (run.folder / "aws-config").write_text(f"[profile ops]\nregion = {REGION}\n", encoding="utf-8")
    (run.folder / "aws-credentials").write_text(
        f"[ops]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n", encoding="utf-8"
    )

    assert run("status", "--profile", "ops").exit_code == 0
    nobody = run("status", "--profile", "nobody")
    assert (nobody.exit_code, "nobody" in nobody.stderr) == (3, True)


def test_without_credentials_or_a_region_it_says_what_to_set(run: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    result = run("status")
    assert (result.exit_code, result.stderr.startswith("error: no AWS credentials: ")) == (3, True)

    monkeypatch.delenv("AWS_REGION")
    result = run("status")
    assert (result.exit_code, result.stderr.startswith("error: no AWS region: ")) == (3, True)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (failed("ExpiredToken"), "the AWS credentials have expired"),
        (failed("RequestExpired"), "the AWS credentials have expired"),
        (failed("InvalidClientTokenId"), "AWS does not know these credentials"),
        (denied("cloudformation:DescribeStacks"), "allow it cloudformation:DescribeStacks"),
        (failed("Teapot"), "AWS refuses the stack spendgate with Teapot: as said by AWS"),
    ],
)
def test_a_refusal_of_cloudformation_is_told_with_what_to_do(
    run: CommandLine, cloud: FakeAws, answer: tuple[int, str], told: str
) -> None:
    cloud.describing = [answer]

    result = run("status")

    assert (result.exit_code, result.stdout) == (3, "")
    assert told in result.stderr


def test_a_stack_that_is_not_there_or_is_none_of_ours_is_told(run: CommandLine, cloud: FakeAws) -> None:
    missing = run("status", "--stack", "spendgat")
    assert missing.exit_code == 3
    assert f"there is no stack spendgat in {REGION}" in missing.stderr

    cloud.outputs.pop("AdminUrl")
    other = run("status")
    assert other.exit_code == 3
    assert "has no output AdminUrl" in other.stderr


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        (
            (403, json.dumps({"Message": f"User: {ALICE} is not authorized to perform: execute-api:Invoke"})),
            4,
            # The stage is the first part of the URL's path, as AWS has it; the stand-in's URL has a longer path.
            f"allow it execute-api:Invoke on arn:aws:execute-api:{REGION}:{ACCOUNT}:a1b2c3d4e5/*/POST/admin/stop",
        ),
        ((403, json.dumps({"message": "The security token included in the request is expired"})), 4, "sign in again"),
        ((403, json.dumps({"message": "Missing Authentication Token"})), 4, "signature"),
        ((429, json.dumps({"message": "Too Many Requests"})), 4, "nothing was done"),
        ((504, json.dumps({"message": "Endpoint request timed out"})), 3, "may still happen"),
        ((502, json.dumps({"message": "Internal server error"})), 3, "admin log group"),
    ],
)
def test_an_answer_of_api_gateway_s_own_is_told_and_a_change_is_sent_once(
    run: CommandLine, admin: Admin, cloud: FakeAws, answer: tuple[int, str], code: int, told: str
) -> None:
    admin.apply(FILE, by="ana")
    cloud.answering = [answer]

    result = run("stop", LEAF, "--reason", "ticket 311")

    assert result.exit_code == code, result.stderr
    assert told in result.stderr
    assert sum("/admin/stop" in one for one in cloud.seen) == 1
    assert admin.budgets(LEAF)["budgets"][0]["stop"] is None


def test_a_question_is_asked_again_where_the_api_is_only_busy(run: CommandLine, admin: Admin, cloud: FakeAws) -> None:
    admin.apply(FILE, by="ana")
    busy = (429, json.dumps({"message": "Too Many Requests"}))

    cloud.answering = [busy, busy]
    assert run("status").exit_code == 0

    cloud.answering = [busy] * 4
    assert run("status").exit_code == 4
    assert len(cloud.answering) == 1


def test_the_admin_url_can_be_named_but_a_signature_leaves_by_https_only(
    run: CommandLine, admin: Admin, cloud: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.apply(FILE, by="ana")
    cloud.outputs["AdminUrl"] = "https://a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com/v/admin"
    monkeypatch.setenv("SPENDGATE_ADMIN_ENDPOINT", f"{cloud.url}{BASE}/admin/")
    assert run("status").exit_code == 0

    monkeypatch.setenv("SPENDGATE_ADMIN_ENDPOINT", "http://gateway.example.com/v/admin")
    refused = run("status")
    assert (refused.exit_code, "must be an https URL" in refused.stderr) == (2, True)


def test_the_command_line_names_the_gateway_before_the_environment(
    run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPENDGATE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("SPENDGATE_ADMIN_TOKEN", "x")

    both = run("status")
    assert (both.exit_code, "name one of them" in both.stderr) == (2, True)
    assert run("status", "--stack", "spendgate").exit_code == 0
    assert "no gateway answers at http://127.0.0.1:9" in run("status", "--url", "http://127.0.0.1:9").stderr
    twice = run("status", "--stack", "spendgate", "--url", "http://127.0.0.1:9")
    assert twice.exit_code == 2


def test_no_other_command_pays_for_botocore() -> None:
    program = "import sys, spendgate.cli.main; print(*(one for one in sys.modules if one.startswith('boto')))"

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == ""
