"""``secrets put``: a provider's secret goes to Secrets Manager, and nowhere else."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.backends import get_backend

from tests.cli.aws import REGION, FakeAws, aws, described
from tests.cli.conftest import CommandLine
from tests.cli.test_stack import clean

VALUE = "sk-proj-a-canary-that-nobody-prints"


@pytest.fixture
def cloud() -> Iterator[FakeAws]:
    with aws(lambda event: {"statusCode": 500, "body": "{}"}) as running:
        yield running


@pytest.fixture
def manager(nowhere: CommandLine, cloud: FakeAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    clean(monkeypatch, nowhere.folder)
    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", cloud.url)
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("SPENDGATE_STACK", "spendgate")
    with mock_aws():
        # Inside another mock (the store tests have one for a session) moto keeps what earlier tests made.
        get_backend("secretsmanager").reset()
        yield boto3.client("secretsmanager", region_name=REGION)


def stored(manager: Any, name: str) -> str:
    return str(manager.get_secret_value(SecretId=name)["SecretString"])


def test_a_secret_is_made_then_replaced_and_never_shown(nowhere: CommandLine, manager: Any) -> None:
    made = nowhere("secrets", "put", "spendgate/openai", input=f"{VALUE}\n")
    assert (made.exit_code, made.stderr) == (0, "")
    assert "secret: secretsmanager:spendgate/openai" in made.stdout
    assert stored(manager, "spendgate/openai") == VALUE

    again = nowhere("secrets", "put", "spendgate/openai", "--json", input=f"{VALUE}-2")
    assert '"created": false' in again.stdout
    assert stored(manager, "spendgate/openai") == f"{VALUE}-2"
    assert VALUE not in made.output + again.output


@pytest.mark.parametrize(
    ("name", "value", "code", "told"),
    [
        ("openai", VALUE, 2, "begin with spendgate/"),
        ("spendgate/", VALUE, 2, "begin with spendgate/"),
        ("spendgate/a b", VALUE, 2, "letters, digits"),
        ("spendgate/openai", "", 2, "one line"),
        ("spendgate/openai", f"{VALUE}\n{VALUE}", 2, "one line"),
        ("spendgate/openai", f"{VALUE}é", 2, "one line"),
        ("spendgate/openai", VALUE * 600, 2, "one line"),
    ],
)
def test_what_is_no_secret_of_this_stack_is_refused_and_not_repeated(
    nowhere: CommandLine, manager: Any, name: str, value: str, code: int, told: str
) -> None:
    result = nowhere("secrets", "put", name, input=value)

    assert (result.exit_code, told in result.stderr) == (code, True), result.stderr
    assert VALUE not in result.output
    assert manager.list_secrets()["SecretList"] == []


def test_a_refusal_of_aws_is_told_by_its_code_and_without_its_words(
    nowhere: CommandLine, cloud: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean(monkeypatch, nowhere.folder)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", cloud.url)
    refusals = {
        "ValidationException": "AWS refuses the secret spendgate/openai with ValidationException\n",
        "AccessDeniedException": "this AWS identity may not touch the secret spendgate/openai: "
        "allow it secretsmanager:PutSecretValue\n",
    }
    for code, told in refusals.items():
        said = json.dumps({"__type": code, "message": f"SecretString {VALUE} is not right"})
        cloud.describing = [described(cloud), (400, said)]

        result = nowhere("secrets", "put", "spendgate/openai", "--stack", "spendgate", "--region", REGION, input=VALUE)

        assert (result.exit_code, result.stderr) == (4, f"error: {told}")
        assert VALUE not in result.output


def test_without_a_stack_it_says_what_a_local_gateway_takes(nowhere: CommandLine) -> None:
    result = nowhere("secrets", "put", "spendgate/openai", input=VALUE)

    assert (result.exit_code, "env:NAME" in result.stderr) == (2, True)
