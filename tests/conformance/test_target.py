"""The suite against a gateway that somebody else started: a `spendgate local` in a process of its own."""

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from spendgate.cli import exit_codes
from spendgate.cli.main import cli
from tests.scenarios import processes
from tests.scenarios.processes import Gateway

NOTHING = "{version: 1, budgets: {somebody: {limits: {usd: {life: 0}}}}}"
WITH_A_KEY = "{version: 1, budgets: {somebody: {limits: {usd: {life: 0}}}}, keys: {worker: {budget: somebody}}}"
# One of each dialect that no other test plays to the end, and one that needs the gateway's process.
NAMES = ("responses: reasoning", "gemini: thoughts", "usage said twice", "names itself", "restarted")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with processes.gateway(tmp_path_factory.mktemp("target") / "state", NOTHING) as running:
        yield running


def token_of(gateway: Gateway) -> str:
    token: str = json.loads((gateway.state / "local.json").read_text())["admin_token"]
    return token


def conformance(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["conformance", *arguments], env={"SPENDGATE_ADMIN_TOKEN": ""})


def live_keys(gateway: Gateway) -> list[str]:
    return [key["name"] for key in gateway.get("/keys")["keys"] if key["revoked_at"] is None]


def test_a_running_gateway_is_played_and_keeps_no_key_of_the_suite(gateway: Gateway) -> None:
    cases = [word for name in NAMES for word in ("--case", name)]

    played = conformance("--target", gateway.url, "--token", token_of(gateway), *cases, "--json")

    assert played.exit_code == exit_codes.OK, played.output
    (report,) = json.loads(played.stdout)["gateways"]
    verdicts = {one["case"]: one["verdict"] for one in report["cases"]}
    assert verdicts == dict.fromkeys(NAMES, "holds") | {"restarted": "unsupported"}
    assert report["command"] == f"(runs at {gateway.url})"
    assert live_keys(gateway) == []
    gateway.audit()


def test_a_gateway_with_keys_of_its_own_is_left_alone(gateway: Gateway) -> None:
    gateway.apply(WITH_A_KEY)
    before = gateway.get("/budgets")["budgets"]

    played = conformance("--target", gateway.url, "--token", token_of(gateway), "--case", "burst")

    assert played.exit_code == exit_codes.REFUSED
    assert "would take away key worker" in played.output
    assert live_keys(gateway) == ["worker"]
    assert gateway.get("/budgets")["budgets"] == before


def test_a_wrong_token_is_said_before_anything_is_played(gateway: Gateway) -> None:
    played = conformance("--target", gateway.url, "--token", "wrong", "--case", "burst")

    assert played.exit_code == exit_codes.REFUSED
    assert "401" in played.output


def test_where_no_gateway_answers_nothing_is_played() -> None:
    played = conformance("--target", "http://127.0.0.1:1", "--token", "any", "--case", "burst")

    assert played.exit_code == exit_codes.REFUSED
    assert "no gateway answers at http://127.0.0.1:1/admin" in played.output


@pytest.mark.parametrize(
    "arguments,why",
    [
        (["--target", "http://127.0.0.1:1"], "--target needs --token"),
        (["--target", "http://127.0.0.1:1", "--driver", "governer"], "reads its limits and prices when it starts"),
        (["--parallel", "--provider-port", "8799"], "one provider at a time"),
    ],
)
def test_what_cannot_go_together_is_a_usage_error(arguments: list[str], why: str) -> None:
    played = conformance(*arguments, "--case", "burst")

    assert played.exit_code == exit_codes.USAGE
    assert why in " ".join(played.output.split())
