"""What is counted of a call, as CloudWatch reads it, and what is logged of it."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from spendgate.call_record import count, fields_of
from spendgate.calls import Call
from spendgate.core.budget import Amounts
from spendgate.core.money import usd
from spendgate.core.reservation import Resolution
from spendgate.core.usage import Usage
from spendgate.dialects.registry import DIALECTS
from spendgate.http_head import request_id_of
from spendgate.observability import UNITS, EmbeddedMetrics, metrics_of
from tests.builders import a_reservation

ROOT = Path(__file__).parents[1]
NOW = datetime(2026, 11, 30, 12, 0, 0, 250_000, tzinfo=UTC)
PARAMETERS = {"POWERTOOLS_METRICS_NAMESPACE": "Spendgate", "POWERTOOLS_SERVICE_NAME": "a-stack"}


class Counted:
    """Metrics into a list of lines."""

    def __init__(self) -> None:
        self.stream = io.StringIO()
        made = metrics_of(PARAMETERS, stream=self.stream, now=lambda: NOW)
        assert made is not None
        self.metrics: EmbeddedMetrics = made

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


def test_a_line_is_what_powertools_would_write() -> None:
    counted = Counted()
    provider = AmazonCloudWatchEMFProvider(namespace="Spendgate", service="a-stack")
    provider.add_metric(name="Calls", unit=MetricUnit.Count, value=1)
    provider.add_metric(name="OwnLatency", unit=MetricUnit.Milliseconds, value=12)
    theirs: Any = provider.serialize_metric_set()

    counted.metrics.add({"Calls": 1, "OwnLatency": 12})

    (ours,) = counted.lines
    for line in (ours, theirs):
        line["_aws"]["Timestamp"] = 0
    # Powertools adds what CloudWatch takes for the default.
    for metric in theirs["_aws"]["CloudWatchMetrics"][0]["Metrics"]:
        metric.pop("StorageResolution", None)
    flat = {name: value[0] if isinstance(value, list) else value for name, value in theirs.items()}
    assert ours == flat


def test_a_refusal_counts_for_the_service_and_again_for_its_code() -> None:
    counted = Counted()

    counted.metrics.add({"Refusals": 1}, code="over_budget")

    (line,) = counted.lines
    assert line["_aws"]["Timestamp"] == round(NOW.timestamp() * 1000)
    assert line["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service"], ["service", "code"]]
    assert (line["service"], line["code"], line["Refusals"]) == ("a-stack", "over_budget", 1)


def test_nothing_counts_where_nobody_collects() -> None:
    assert metrics_of({}, stream=io.StringIO(), now=lambda: NOW) is None


@pytest.mark.parametrize("name", sorted(UNITS))
def test_what_counts_is_named_in_the_operators_page(name: str) -> None:
    assert f"`{name}`" in (ROOT / "docs" / "operations.md").read_text()


def settled(**changes: Any) -> Resolution:
    values: dict[str, Any] = {
        "state": "settled",
        "reason": "answered",
        "actual": Amounts(usd=usd("0.0012345"), requests=1, tokens=30),
        "usage": Usage(input_uncached=10, cache_read=5, output=15),
        "provider": "demo",
        "model": "demo-1",
        "response_model": "demo-1-2026",
    }
    return Resolution(**{**values, **changes})


def test_a_settled_call_counts_with_its_cost_and_the_gateway_s_own_time() -> None:
    counted = Counted()

    count(counted.metrics, a_reservation(), settled(), own_milliseconds=7)

    (line,) = counted.lines
    assert (line["Calls"], line["OwnLatency"], line["SettledUsd"]) == (1, 7, 0.0012345)
    assert "BoundViolations" not in line


def test_a_bill_above_the_bound_counts() -> None:
    counted = Counted()

    count(counted.metrics, a_reservation(), settled(actual=Amounts(usd=usd("1"), requests=1)), own_milliseconds=0)

    assert counted.lines[0]["BoundViolations"] == 1


def test_a_call_of_unknown_outcome_counts_without_a_cost() -> None:
    counted = Counted()

    count(counted.metrics, a_reservation(), Resolution(state="unknown", reason="silence"), own_milliseconds=0)

    assert "SettledUsd" not in counted.lines[0]


def logged(dialect: str, resolution: Resolution, kind: str) -> dict[str, Any]:
    call = Call(dialect=DIALECTS[dialect], raw=b"", headers={}, query="", secret="sg-x", request_id="r-1")
    return fields_of(call, a_reservation(dialect=dialect), resolution, kind=kind, milliseconds=3)


def test_a_call_is_logged_by_opentelemetry_s_names_too() -> None:
    fields = logged("openai", settled(), "azure")

    assert {name: value for name, value in fields.items() if "." in name} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "azure.ai.openai",
        "gen_ai.request.model": "demo-1",
        "gen_ai.response.model": "demo-1-2026",
        "gen_ai.usage.input_tokens": 15,
        "gen_ai.usage.output_tokens": 15,
    }
    assert (fields["request_id"], fields["cost_usd"]) == ("r-1", "0.0012345")


@pytest.mark.parametrize(
    ("dialect", "kind", "operation", "provider"),
    [
        ("anthropic", "anthropic", "chat", "anthropic"),
        ("openai-embeddings", "openai", "embeddings", "openai"),
        ("gemini-stream", "gemini", "generate_content", "gcp.gemini"),
        ("bedrock-converse", "bedrock", "chat", "aws.bedrock"),
        ("openai", "compatible", "chat", "compatible"),
    ],
)
def test_each_protocol_has_its_operation(dialect: str, kind: str, operation: str, provider: str) -> None:
    fields = logged(dialect, Resolution(state="unknown", reason="silence"), kind)

    assert (fields["gen_ai.operation.name"], fields["gen_ai.provider.name"]) == (operation, provider)
    assert fields["error.type"] == "unknown"


CONTEXT = b'{"requestId": "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"}'


@pytest.mark.parametrize(
    ("trusted", "header", "expected"),
    [
        (True, CONTEXT, "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"),
        (False, CONTEXT, "07" * 16),
        (True, b'{"requestId": "two\\nlines"}', "07" * 16),
        (True, b'{"requestId": 5}', "07" * 16),
        (True, b"no json", "07" * 16),
        (True, b"[" * 5000, "07" * 16),
    ],
)
def test_a_request_s_id_is_the_platform_s_where_that_is_trusted(trusted: bool, header: bytes, expected: str) -> None:
    scope = {"headers": [(b"x-amzn-request-context", header)]}

    assert request_id_of(scope, trusted=trusted, randomness=lambda count: b"\x07" * count) == expected


def test_every_metric_of_an_alarm_is_one_that_somebody_writes() -> None:
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_multi_constructor("!", lambda loader, _suffix, node: None)
    template = yaml.load((ROOT / "template.yaml").read_text(), Loader)  # noqa: S506 - a loader that makes nothing
    alarms = [one["Properties"] for one in template["Resources"].values() if one["Type"] == "AWS::CloudWatch::Alarm"]
    ours = {alarm["MetricName"] for alarm in alarms if alarm.get("Namespace") == "Spendgate"}
    source = "".join(path.read_text() for path in (ROOT / "layers" / "core" / "spendgate").rglob("*.py"))

    assert {"BoundViolations", "OwnLatency"} <= ours
    assert [name for name in sorted(ours) if f'"{name}"' not in source] == []
