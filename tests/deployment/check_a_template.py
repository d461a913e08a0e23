"""The template as SAM and cfn-lint read it, and the emulator's launcher, before anything is deployed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

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


def translated(*, layer: str = "layer", **parameters: str) -> dict[str, Any]:
    """Return the template as SAM hands it to CloudFormation; ``layer`` is where the built layer lies."""
    done = subprocess.run(
        [SAM.with_name("python"), TRANSLATE, ROOT / "template.yaml", json.dumps(parameters), layer],
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_names_that_the_launcher_replaces_are_there() -> None:
    script = "import launcher; assert all(hasattr(owner, name) for owner, name in launcher.NAMES)"
    subprocess.run([EMULATOR / "python", "-c", script], cwd=Path(__file__).parent, check=True)


def test_sam_and_cfn_lint_find_nothing(tmp_path: Path) -> None:
    printed = run(["validate", "--lint", "--region", "us-east-1"], for_sam(tmp_path, {}), cwd=ROOT)

    assert "is a valid SAM Template" in printed


@pytest.mark.parametrize("parameters", [{}, ALL], ids=["defaults", "everything"])
def test_the_gateways_methods_stream_and_the_admin_api_asks_for_iam(parameters: dict[str, str]) -> None:
    resources = translated(**parameters)["Resources"]
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


def test_each_functions_alias_is_what_events_and_the_api_invoke() -> None:
    resources = translated()["Resources"]
    aliases = {name for name, one in resources.items() if one["Type"] == "AWS::Lambda::Alias"}

    assert len(aliases) == 5
    for one in resources.values():
        if one["Type"] == "AWS::Scheduler::Schedule":
            assert one["Properties"]["Target"]["Arn"]["Ref"] in aliases
            assert "Name" not in one["Properties"]
        if one["Type"] == "AWS::Lambda::EventSourceMapping":
            assert one["Properties"]["FunctionName"]["Ref"] in aliases


def test_another_layer_publishes_another_version_of_every_function() -> None:
    def versions(layer: str) -> set[str]:
        resources = translated(layer=layer)["Resources"]
        return {name for name, one in resources.items() if one["Type"] == "AWS::Lambda::Version"}

    assert len(versions("one")) == 5
    assert versions("one") & versions("another") == set()
    assert versions("one") == versions("one")
