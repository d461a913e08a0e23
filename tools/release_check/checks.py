"""What is looked at of a deployed stack as its users see it: over HTTP, and by what AWS tells of it. Nothing here changes anything."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import boto3
import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

ALARMS_MIN: Final = 10
TIMEOUT: Final = httpx.Timeout(120.0, connect=10.0)
# Long enough an answer to come in pieces.
PROMPT: Final = "Count from one to thirty, in words."

Check = Callable[[], str]


class CheckFailed(Exception):
    """What was looked at is not as it is to be."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The stack that is looked at."""

    session: boto3.Session
    stack: str
    outputs: Mapping[str, str]
    endpoint: str
    key: str | None
    model: str | None

    def health(self) -> str:
        """The gateway answers."""
        return self.expect(200, "GET", "/healthz")

    def paths(self) -> str:
        """What no dialect has is turned away before the function, whatever context a caller makes up."""
        self.expect(403, "POST", "/events", {"x-amzn-request-context": "null"}, {"reservation": "0"})
        return self.expect(403, "POST", "/v2/nothing")

    def identity(self) -> str:
        """A key that is not one is refused."""
        return self.expect(401, "GET", "/v1/budget", {"authorization": "Bearer sg-release-check"})

    def admin_unsigned(self) -> str:
        """The admin API is closed to whoever signs nothing."""
        return self.expect(403, "GET", "/admin/budgets")

    def admin_signed(self) -> str:
        """And open to this AWS identity; the counters are the sums over the reservations."""
        found = self.admin("GET", "/audit")
        if found["clean"] is not True:
            raise CheckFailed(json.dumps(found)[:300])
        return f"{found['reservations']} reservations"

    def catalogue(self) -> str:
        """Prices are stored."""
        if int(self.outputs["CatalogueRows"]) == 0:
            raise CheckFailed("no price is stored")
        return f"{self.outputs['CatalogueRows']} rows"

    def alarms(self) -> str:
        """The stack's alarms are there, and tell somebody."""
        resources = self.session.client("cloudformation").get_paginator("list_stack_resources")
        names = [
            one["PhysicalResourceId"]
            for page in resources.paginate(StackName=self.stack)
            for one in page["StackResourceSummaries"]
            if one["ResourceType"] == "AWS::CloudWatch::Alarm"
        ]
        found = self.session.client("cloudwatch").describe_alarms(AlarmNames=names)["MetricAlarms"] if names else []
        if len(found) < ALARMS_MIN or not all(one["AlarmActions"] for one in found):
            raise CheckFailed(f"{len(found)} alarms, and each needs an action")
        ringing = sorted(one["AlarmName"] for one in found if one["StateValue"] == "ALARM")
        return f"{len(found)} alarms; ringing: {', '.join(ringing) or 'none'}"

    def tables(self) -> str:
        """Both tables can be brought back to any second, and are not deleted by mistake."""
        client = self.session.client("dynamodb")
        for output in ("LedgerTable", "ConfigTable"):
            name = self.outputs[output]
            table = client.describe_table(TableName=name)["Table"]
            recovery = client.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
            expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
            if table.get("DeletionProtectionEnabled") is not True:
                raise CheckFailed(f"{output} has no deletion protection")
            if recovery["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] != "ENABLED":
                raise CheckFailed(f"{output} has no point-in-time recovery")
            if (expiry["TimeToLiveStatus"], expiry.get("AttributeName")) not in (
                ("ENABLED", "expires_at"),
                ("ENABLING", "expires_at"),
            ):
                raise CheckFailed(f"{output} never forgets what has expired")
        return "point-in-time recovery, deletion protection, expiry"

    def streamed(self) -> str:
        """A streamed call comes in pieces, and is settled."""
        body: dict[str, Any] = {
            "model": self.model,
            "stream": True,
            "max_tokens": 200,
            "messages": [{"role": "user", "content": PROMPT}],
        }
        headers = {"authorization": f"Bearer {self.key}"}
        arrived: list[float] = []
        with (
            httpx.Client(timeout=TIMEOUT) as client,
            client.stream("POST", f"{self.endpoint}/v1/chat/completions", json=body, headers=headers) as answer,
        ):
            if answer.status_code != 200:
                raise CheckFailed(f"{answer.status_code}: {answer.read()[:300]!r}")
            reservation = answer.headers["x-spendgate-reservation"]
            arrived.extend(time.monotonic() for _ in answer.iter_bytes())
        state = self.ask("GET", f"/v1/reservations/{reservation}", headers).json()["state"]
        if len(arrived) < 2 or state != "settled":
            raise CheckFailed(f"{len(arrived)} pieces, reservation {reservation} is {state}")
        return f"{len(arrived)} pieces within {arrived[-1] - arrived[0]:.2f} s; settled"

    def admin(self, method: str, path: str, document: Any = None) -> dict[str, Any]:
        """Ask the admin API as this AWS identity; CheckFailed where it refuses."""
        credentials = self.session.get_credentials()
        if credentials is None:
            raise CheckFailed("there are no AWS credentials")
        content = b"" if document is None else json.dumps(document).encode()
        headers = {"content-type": "application/json"}
        request = AWSRequest(method=method, url=f"{self.endpoint}/admin{path}", data=content, headers=headers)
        SigV4Auth(credentials, "execute-api", self.session.region_name).add_auth(request)
        with httpx.Client(timeout=TIMEOUT) as client:
            answer = client.request(
                method, f"{self.endpoint}/admin{path}", headers=dict(request.headers.items()), content=content
            )
        if answer.status_code != 200:
            raise CheckFailed(f"{method} /admin{path}: {answer.status_code}: {answer.text[:300]}")
        found: dict[str, Any] = answer.json()
        return found

    def expect(
        self, status: int, method: str, path: str, headers: Mapping[str, str] | None = None, body: Any = None
    ) -> str:
        """Ask, and return the status as text; CheckFailed where it is another one."""
        answer = self.ask(method, path, headers, body)
        if answer.status_code != status:
            raise CheckFailed(f"{answer.status_code}, not {status}: {answer.text[:300]}")
        return str(status)

    def ask(self, method: str, path: str, headers: Mapping[str, str] | None = None, body: Any = None) -> httpx.Response:
        """Ask the endpoint as an agent does."""
        with httpx.Client(timeout=TIMEOUT) as client:
            return client.request(method, self.endpoint + path, headers=headers, json=body)


def run(checks: Iterable[Check], say: Callable[[str], None]) -> int:
    """Make each check and tell its result; return how many failed."""
    failed = 0
    for check in checks:
        try:
            said, mark = check(), "ok    "
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the check's result
            said, mark, failed = f"{type(error).__name__}: {error}", "FAILED", failed + 1
        say(f"{mark}  {(check.__doc__ or '').rstrip('.')} ({said})")
    return failed
