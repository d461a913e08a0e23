"""The template as SAM and cfn-lint read it, and the emulator's launcher, before anything is deployed."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.deployment.conditions import holding, references_of, unresolved
from tests.deployment.findings import MEANT, found_in
from tests.deployment.stack import EMULATOR, ROOT, SAM, for_sam, run

TRANSLATE = Path(__file__).with_name("translate.py")
# Every condition's parameter, switched on.
ALL = {
    "AlertEmail": "platform@example.com",
    "SlackWorkspaceId": "T0123456789",
    "SlackChannelId": "C0123456789",
    "BedrockModelArns": "arn:aws:bedrock:us-east-1::foundation-model/some.model",
    "Waf": "yes",
    "KmsKeyArn": "arn:aws:kms:us-east-1:000000000000:key/00000000-0000-0000-0000-000000000000",
    "GatewayConcurrency": "5",
    "SnapStart": "yes",
    "VpcSubnetIds": "subnet-1,subnet-2",
    "VpcSecurityGroupIds": "sg-1",
    "WebAdapterLayerArn": "arn:aws:lambda:us-east-1:000000000000:layer:adapter:1",
    "ApiLogging": "no",
    "Architecture": "x86_64",
}


Case = tuple[Mapping[str, str], str]
# Values of parameters, and where the built layer lies.
CASES: Final[tuple[Case, ...]] = (({}, "layer"), (ALL, "layer"), ({}, "another"), ({}, "layer"))


@pytest.fixture(scope="module")
def translations() -> list[dict[str, Any]]:
    """Return the template as SAM hands it to CloudFormation, in each of the cases."""
    done = subprocess.run(
        [SAM.with_name("python"), TRANSLATE, ROOT / "template.yaml", json.dumps(CASES)],
        check=True,
        capture_output=True,
        text=True,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_the_names_that_the_launcher_replaces_are_there() -> None:
    script = "import launcher; assert all(hasattr(owner, name) for owner, name in launcher.NAMES)"
    subprocess.run([EMULATOR / "python", "-c", script], cwd=Path(__file__).parent, check=True)


def test_sam_and_cfn_lint_find_nothing(tmp_path: Path) -> None:
    printed = run(["validate", "--lint", "--region", "us-east-1"], for_sam(tmp_path, {}), cwd=ROOT)

    assert "is a valid SAM Template" in printed


def test_checkov_finds_what_is_meant_and_says_why_and_nothing_else(
    translations: list[dict[str, Any]], tmp_path: Path
) -> None:
    after = tmp_path / "translated.json"
    after.write_text(json.dumps(translations[0]), encoding="utf-8")
    found = found_in(ROOT / "template.yaml", after)
    meant = {(check, resource) for check, one in MEANT.items() for resource in one.resources}

    assert found - meant == set()
    assert meant - found == set()


@pytest.mark.parametrize("case", [0, 1], ids=["defaults", "everything"])
def test_under_every_combination_of_conditions_each_reference_leads_to_something(
    translations: list[dict[str, Any]], case: int
) -> None:
    template = translations[case]
    references = references_of(template)
    switched = [values for values, _ in _combinations(template)]
    conditions = [holding(template, values) for values in switched]

    # Each condition is off in one half of them and on in the other.
    assert len({tuple(one.values()) for one in conditions}) == 2 ** len(template["Conditions"]) == len(conditions)
    for values, one in zip(switched, conditions, strict=True):
        assert unresolved(template, references, one) == [], values


def test_each_alarm_watches_what_is_there_whatever_is_switched_on(translations: list[dict[str, Any]]) -> None:
    resources = translations[0]["Resources"]
    alarms = {name: one for name, one in resources.items() if one["Type"] == "AWS::CloudWatch::Alarm"}

    assert len(alarms) > 10
    for name, alarm in alarms.items():
        for dimension in alarm["Properties"]["Dimensions"]:
            ((_, of),) = dimension["Value"].items()
            watched = of if isinstance(of, str) else of[0]
            assert watched.startswith("AWS::") or "Condition" not in resources[watched], name


@pytest.mark.parametrize("case", [0, 1], ids=["defaults", "everything"])
def test_the_gateways_methods_stream_and_the_admin_api_asks_for_iam(
    translations: list[dict[str, Any]], case: int
) -> None:
    resources = translations[case]["Resources"]
    paths = resources["Api"]["Properties"]["Body"]["paths"]

    for path, methods in paths.items():
        for name, method in methods.items():
            integration = method["x-amazon-apigateway-integration"]
            assert "credentials" not in integration
            if path.startswith("/admin"):
                assert method["security"] == [{"AWS_IAM": []}]
                assert "responseTransferMode" not in integration
                continue
            assert integration["responseTransferMode"] == "STREAM", path
            assert integration["timeoutInMillis"] == (29_000 if name == "get" else 900_000)
            assert "security" not in method


def test_each_functions_alias_is_what_events_and_the_api_invoke(translations: list[dict[str, Any]]) -> None:
    resources = translations[0]["Resources"]
    aliases = {name for name, one in resources.items() if one["Type"] == "AWS::Lambda::Alias"}

    assert len(aliases) == 5
    for one in resources.values():
        if one["Type"] == "AWS::Scheduler::Schedule":
            assert one["Properties"]["Target"]["Arn"]["Ref"] in aliases
            assert "Name" not in one["Properties"]
        if one["Type"] == "AWS::Lambda::EventSourceMapping":
            assert one["Properties"]["FunctionName"]["Ref"] in aliases


def test_another_layer_publishes_another_version_of_every_function(translations: list[dict[str, Any]]) -> None:
    def versions(case: int) -> set[str]:
        resources = translations[case]["Resources"]
        return {name for name, one in resources.items() if one["Type"] == "AWS::Lambda::Version"}

    assert len(versions(0)) == 5
    assert versions(0) & versions(2) == set()
    assert versions(0) == versions(3)


def _combinations(template: Mapping[str, Any]) -> Iterator[tuple[dict[str, str], tuple[bool, ...]]]:
    """Yield values of parameters for every combination of conditions, each of which one group of parameters switches."""
    for switches in itertools.product((False, True), repeat=len(SWITCHES)):
        values = dict(itertools.chain(*(one[on].items() for one, on in zip(SWITCHES, switches, strict=True))))
        yield values, switches


def _switch(**on: str) -> tuple[dict[str, str], dict[str, str]]:
    return dict.fromkeys(on, ""), on


SWITCHES: Final = (
    _switch(AlertEmail=ALL["AlertEmail"]),
    _switch(SlackWorkspaceId=ALL["SlackWorkspaceId"], SlackChannelId=ALL["SlackChannelId"]),
    _switch(BedrockModelArns=ALL["BedrockModelArns"]),
    ({"Waf": "no"}, {"Waf": "yes"}),
    _switch(KmsKeyArn=ALL["KmsKeyArn"]),
    ({"GatewayConcurrency": "0"}, {"GatewayConcurrency": "5"}),
    ({"SnapStart": "no"}, {"SnapStart": "yes"}),
    _switch(VpcSubnetIds=ALL["VpcSubnetIds"], VpcSecurityGroupIds=ALL["VpcSecurityGroupIds"]),
    _switch(WebAdapterLayerArn=ALL["WebAdapterLayerArn"]),
    ({"ApiLogging": "no"}, {"ApiLogging": "yes"}),
)
