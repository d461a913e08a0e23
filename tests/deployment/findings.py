"""What checkov finds in the template and is meant so: each of its checks, the resources it may name, and the reason.

A finding that is not here fails the deployment test, and so does a line here that nothing finds any more.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.deployment.stack import ROOT

CHECKOV: Final = ROOT / ".venv-checkov" / "bin" / "python"
FUNCTIONS: Final = ("GatewayFunction", "AdminFunction", "CatalogueFunction", "SweeperFunction", "AlertsFunction")
LOGS: Final = ("GatewayLog", "AdminLog", "CatalogueLog", "SweeperLog", "AlertsLog", "ApiLog")


@dataclass(frozen=True, slots=True)
class Meant:
    """A finding that stays."""

    resources: tuple[str, ...]
    reason: str


MEANT: Final[Mapping[str, Meant]] = {
    "CKV_AWS_76": Meant(
        ("Api", "ApiStage"),
        "It logs, unless ApiLogging is switched off by an account that has that role from elsewhere; checkov does not read the If.",
    ),
    "CKV_AWS_115": Meant(
        FUNCTIONS[1:],
        "Concurrency that is kept for a function is taken from the account's other ones. The gateway's is a parameter; the rest are a"
        " schedule's, or an operator's, and one or two run at a time.",
    ),
    "CKV_AWS_116": Meant(
        FUNCTIONS,
        "No event of theirs is lost with an invocation: the API's are answered, settlements stay in a queue that has its dead letters,"
        " and what a schedule missed the next minute does.",
    ),
    "CKV_AWS_117": Meant(
        FUNCTIONS[1:],
        "They speak to AWS's own services alone, over TLS and by IAM; in a VPC each would need a NAT or endpoints by the hour. The gateway,"
        " which goes out, has VpcSubnetIds.",
    ),
    "CKV_AWS_119": Meant(
        ("LedgerTable", "ConfigTable"),
        "KmsKeyArn sets one; without it DynamoDB encrypts by a key that AWS owns. Prompts, completions and provider keys are in neither.",
    ),
    "CKV_AWS_120": Meant(
        ("Api", "ApiStage"), "An answer of one caller's is never another's, and each is to be paid for and counted."
    ),
    "CKV_AWS_158": Meant(
        LOGS,
        "CloudWatch encrypts them by a key of its own. A customer's key would have to let CloudWatch use it, which a policy that this"
        " template does not own says; no key, prompt or completion is in any log.",
    ),
    "CKV_AWS_173": Meant(
        FUNCTIONS,
        "There are names and numbers in them, no secret (tests/test_template.py), encrypted by AWS's own key.",
    ),
}


def found_in(*templates: Path) -> set[tuple[str, str]]:
    """Return what checkov finds: its check and the resource's name."""
    files = [part for one in templates for part in ("-f", str(one))]
    command: list[str | Path] = [
        CHECKOV, "-m", "checkov.main", *files, "--framework", "cloudformation", "--compact", "--quiet", "--skip-download",
        "-o", "json",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    # 1 where something is found, and everything is looked at by name anyway.
    assert done.returncode in (0, 1), done.stderr[-2000:]
    report = json.loads(done.stdout)
    assert report["summary"]["parsing_errors"] == 0
    assert report["summary"]["passed"] > 0
    return {(one["check_id"], one["resource"].rpartition(".")[2]) for one in report["results"]["failed_checks"]}
