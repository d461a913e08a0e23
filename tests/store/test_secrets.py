"""Providers' secrets are read where they are used, and named, never shown, where they are missing."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from spendgate.errors import LedgerUnavailable
from spendgate.store.secrets import CACHED, Secrets, SecretsManager, secrets_manager
from tests.builders import NOW


class Vault:
    """A Secrets Manager that counts how often it is asked."""

    def __init__(self, **values: str) -> None:
        self.values = values
        self.asked = 0

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, Any]:  # noqa: N803
        self.asked += 1
        if SecretId not in self.values:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "GetSecretValue")
        return {"SecretString": self.values[SecretId]}


class Clock:
    def __init__(self) -> None:
        self.now = NOW


def secrets_of(vault: SecretsManager, clock: Clock, **environ: str) -> Secrets:
    return Secrets(environ=environ, manager=lambda: vault, clock=lambda: clock.now)


def test_a_secret_of_the_environment_is_read_at_each_use() -> None:
    environ = {"OPENAI_API_KEY": " sk-one\n"}
    secrets = Secrets(environ=environ, manager=Vault, clock=lambda: NOW)

    assert secrets.read("env:OPENAI_API_KEY") == "sk-one"
    environ["OPENAI_API_KEY"] = "sk-two"
    assert secrets.read("env:OPENAI_API_KEY") == "sk-two"


@pytest.mark.parametrize("environ", [{}, {"KEY": ""}, {"KEY": "  "}])
def test_a_missing_variable_is_named(environ: dict[str, str]) -> None:
    with pytest.raises(LedgerUnavailable, match="environment variable KEY is not set"):
        secrets_of(Vault(), Clock(), **environ).read("env:KEY")


def test_a_managed_secret_is_kept_for_a_minute_and_then_read_again() -> None:
    vault, clock = Vault(name="sk-one"), Clock()
    secrets = secrets_of(vault, clock)

    assert [secrets.read("secretsmanager:name") for _ in range(3)] == ["sk-one"] * 3
    assert vault.asked == 1
    vault.values["name"] = "sk-two"
    clock.now += CACHED + timedelta(seconds=1)
    assert secrets.read("secretsmanager:name") == "sk-two"


def test_a_secret_that_cannot_be_read_is_named_and_nothing_of_it_shown() -> None:
    with pytest.raises(LedgerUnavailable, match="the provider's secret gone cannot be read: ClientError"):
        secrets_of(Vault(), Clock()).read("secretsmanager:gone")


def test_a_reference_of_another_kind_is_not_echoed() -> None:
    with pytest.raises(LedgerUnavailable) as refused:
        secrets_of(Vault(), Clock()).read("sk-a-pasted-key")
    assert "sk-a" not in str(refused.value)


@pytest.mark.usefixtures("aws_credentials")
def test_the_real_client_reads_a_secret_of_that_name() -> None:
    with mock_aws():
        client: Any = secrets_manager("us-east-1")
        client.create_secret(Name="spendgate/openai", SecretString="sk-managed")
        assert secrets_of(client, Clock()).read("secretsmanager:spendgate/openai") == "sk-managed"
        client.close()


@pytest.fixture
def aws_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")


def test_what_is_remembered_is_told_without_asking_anybody() -> None:
    vault, clock = Vault(name="sk-one"), Clock()
    secrets = secrets_of(vault, clock, KEY=" sk-env ")

    assert secrets.known("env:KEY") == "sk-env"
    assert [secrets.known(one) for one in ("secretsmanager:name", "env:OTHER", "vault:name")] == [None] * 3
    assert vault.asked == 0
    secrets.read("secretsmanager:name")
    assert secrets.known("secretsmanager:name") == "sk-one"
    clock.now += CACHED
    assert secrets.known("secretsmanager:name") is None
