"""Looks at a deployed stack as its users do: `make release-check ARGS="--stack spendgate"`, with AWS credentials in the environment.

To be run once against a real account before a version is released: nothing else here has seen AWS itself. It changes nothing. With
``SPENDGATE_KEY`` in the environment and ``--model`` it makes one streamed call to a provider, which costs a fraction of a cent.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
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
        return self._expect(200, "GET", "/healthz")

    def paths(self) -> str:
        """What no dialect has is turned away before the function."""
        return self._expect(403, "POST", "/v2/nothing")

    def identity(self) -> str:
        """A key that is not one is refused."""
        return self._expect(401, "GET", "/v1/budget", {"authorization": "Bearer sg-release-check"})

    def admin_unsigned(self) -> str:
        """The admin API is closed to whoever signs nothing."""
        return self._expect(403, "GET", "/admin/budgets")

    def admin_signed(self) -> str:
        """And open to this AWS identity; the counters are the sums over the reservations."""
        credentials = self.session.get_credentials()
        if credentials is None:
            raise CheckFailed("there are no AWS credentials")
        request = AWSRequest(method="GET", url=f"{self.endpoint}/admin/audit")
        SigV4Auth(credentials, "execute-api", self.session.region_name).add_auth(request)
        answer = self._ask("GET", "/admin/audit", dict(request.headers.items()))
        if answer.status_code != 200 or answer.json()["clean"] is not True:
            raise CheckFailed(f"{answer.status_code}: {answer.text[:300]}")
        return f"{answer.json()['reservations']} reservations"

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
        state = self._ask("GET", f"/v1/reservations/{reservation}", headers).json()["state"]
        if len(arrived) < 2 or state != "settled":
            raise CheckFailed(f"{len(arrived)} pieces, reservation {reservation} is {state}")
        return f"{len(arrived)} pieces within {arrived[-1] - arrived[0]:.2f} s; settled"

    def _expect(self, status: int, method: str, path: str, headers: Mapping[str, str] | None = None) -> str:
        answer = self._ask(method, path, headers)
        if answer.status_code != status:
            raise CheckFailed(f"{answer.status_code}, not {status}: {answer.text[:300]}")
        return str(status)

    def _ask(self, method: str, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        with httpx.Client(timeout=TIMEOUT) as client:
            return client.request(method, self.endpoint + path, headers=headers)


def checks_of(subject: Subject) -> Iterator[Check]:
    """Yield what is to be looked at."""
    yield from (subject.health, subject.paths, subject.identity, subject.admin_unsigned, subject.admin_signed)
    yield from (subject.catalogue, subject.alarms)
    if subject.key and subject.model:
        yield subject.streamed


def main() -> int:
    """Return 1 where a check failed."""
    parser = argparse.ArgumentParser(prog="release_check", description="Look at a deployed stack as its users do.")
    parser.add_argument("--stack", default="spendgate")
    parser.add_argument("--region", help="else the one of your AWS configuration")
    parser.add_argument("--endpoint", help="another URL than the stack's output Endpoint: a domain of your own")
    parser.add_argument(
        "--model", help="a route of the dialect openai, for a streamed call by the key in SPENDGATE_KEY"
    )
    given = parser.parse_args()
    session = boto3.Session(region_name=given.region)
    found = session.client("cloudformation").describe_stacks(StackName=given.stack)["Stacks"][0]
    outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", ())}
    endpoint = (given.endpoint or outputs["Endpoint"]).rstrip("/")
    subject = Subject(session, given.stack, outputs, endpoint, os.environ.get("SPENDGATE_KEY"), given.model)
    failed = 0
    for check in checks_of(subject):
        try:
            said, mark = check(), "ok    "
        except (CheckFailed, httpx.HTTPError, KeyError, ValueError) as error:
            said, mark, failed = f"{type(error).__name__}: {error}", "FAILED", failed + 1
        sys.stdout.write(f"{mark}  {(check.__doc__ or '').rstrip('.')} ({said})\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
