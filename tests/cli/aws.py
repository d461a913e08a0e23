"""AWS as far as the command line sees it, on loopback: CloudFormation, and API Gateway that checks each signature.

The signature is checked by SigV4's own description (canonical request, string to sign, key), not by the code that signs.
"""

import hashlib
import hmac
import http.server
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

ACCESS_KEY: Final = "AKIDEXAMPLE"
SECRET_KEY: Final = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
REGION: Final = "eu-central-1"
ACCOUNT: Final = "123456789012"
ALICE: Final = f"arn:aws:sts::{ACCOUNT}:assumed-role/Operators/alice"
BASE: Final = "/_aws/execute-api/a1b2c3d4e5/v"
_AUTHORIZATION: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<scope>(?P<date>\d{8})/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request), "
    r"SignedHeaders=(?P<headers>[^,]+), Signature=(?P<signature>[0-9a-f]{64})"
)
_STACK: Final = """<DescribeStacksResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><DescribeStacksResult>
<Stacks><member><StackName>{name}</StackName><StackId>arn:aws:cloudformation:{region}:{account}:stack/{name}/0b1c</StackId>
<StackStatus>CREATE_COMPLETE</StackStatus><CreationTime>2026-11-30T02:14:00Z</CreationTime><Outputs>{outputs}</Outputs>
</member></Stacks></DescribeStacksResult></DescribeStacksResponse>"""
_OUTPUT: Final = "<member><OutputKey>{}</OutputKey><OutputValue>{}</OutputValue></member>"
_ERROR: Final = "<ErrorResponse><Error><Type>Sender</Type><Code>{}</Code><Message>{}</Message></Error></ErrorResponse>"

Answer = tuple[int, str]


@dataclass
class FakeAws:
    """What the stand-in does next, and what it has seen."""

    handler: Callable[[dict[str, Any]], dict[str, Any]]
    outputs: dict[str, str] = field(default_factory=dict)
    # Answers that come before any other: for CloudFormation and Secrets Manager, and for the API.
    describing: list[Answer] = field(default_factory=list)
    answering: list[Answer] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    url: str = ""


@contextmanager
def aws(handler: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[FakeAws]:
    """Run the stand-in on a free port of 127.0.0.1."""
    state = FakeAws(handler)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, text = _answer(state, self.command, self.path, dict(self.headers.items()), body)
            self.send_response(status)
            self.send_header("content-type", "application/json" if text.startswith("{") else "text/xml")
            self.send_header("content-length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}"
        state.outputs = {
            "AdminUrl": f"{state.url}{BASE}/admin",
            "ApiId": "a1b2c3d4e5",
            "SecretPrefix": "spendgate/",
        }
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join(timeout=10)


def _answer(state: FakeAws, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
    given = {name.lower(): value for name, value in headers.items()}
    state.seen.append(f"{method} {target}")
    if not target.startswith(BASE):
        return _cloudformation(state, body)
    if state.answering:
        return state.answering.pop(0)
    fault = signature_fault(method, target, given, body)
    if fault is not None:
        state.faults.append(fault)
        return 403, json.dumps({"message": "The request signature we calculated does not match"})
    answer = state.handler(_event(method, target, given, body))
    return answer["statusCode"], answer["body"]


def _cloudformation(state: FakeAws, body: bytes) -> Answer:
    if state.describing:
        return state.describing.pop(0)
    name = dict(parse_qsl(body.decode()))["StackName"]
    return (
        described(state)
        if name == "spendgate"
        else (400, _ERROR.format("ValidationError", f"Stack with id {name} does not exist"))
    )


def described(state: FakeAws) -> Answer:
    """Return CloudFormation's answer about the stack."""
    outputs = "".join(_OUTPUT.format(*one) for one in state.outputs.items())
    return 200, _STACK.format(name="spendgate", region=REGION, account=ACCOUNT, outputs=outputs)


def denied(action: str) -> Answer:
    """Return CloudFormation's answer to an identity that may not ask."""
    return 403, _ERROR.format("AccessDenied", f"User: {ALICE} is not authorized to perform: {action}")


def failed(code: str) -> Answer:
    """Return CloudFormation's answer with an error code."""
    return 400, _ERROR.format(code, "as said by AWS")


def _event(method: str, target: str, headers: dict[str, str], body: bytes) -> dict[str, Any]:
    parts = urlsplit(target)
    path = unquote(parts.path.removeprefix(BASE))
    several: dict[str, list[str]] = {}
    for name, text in parse_qsl(parts.query, keep_blank_values=True):
        several.setdefault(name, []).append(text)
    return {
        "resource": "/admin/{proxy+}",
        "path": path,
        "httpMethod": method,
        "headers": headers,
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "queryStringParameters": {name: texts[-1] for name, texts in several.items()} or None,
        "multiValueQueryStringParameters": several or None,
        "pathParameters": {"proxy": path.removeprefix("/admin/")},
        "requestContext": {"requestId": "0b1c", "stage": "v", "httpMethod": method, "identity": {"userArn": ALICE}},
        "body": body.decode() or None,
        "isBase64Encoded": False,
    }


def signature_fault(method: str, target: str, headers: dict[str, str], body: bytes) -> str | None:
    """Return what is wrong with a request's signature, None where nothing is."""
    found = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    if found is None:
        return "no signature"
    if (found["key"], found["region"], found["service"]) != (ACCESS_KEY, REGION, "execute-api"):
        return f"signed for {found['scope']} by {found['key']}"
    signed = found["headers"].split(";")
    if not {"host", "x-amz-date"} <= set(signed):
        return f"signed are only {signed}"
    parts = urlsplit(target)
    pairs = sorted(
        (quote(name, safe="-_.~"), quote(text, safe="-_.~"))
        for name, text in parse_qsl(parts.query, keep_blank_values=True)
    )
    canonical = "\n".join(
        [
            method,
            # Each segment as sent, encoded once more: every service but S3.
            quote(parts.path, safe="/-_.~"),
            "&".join(f"{name}={text}" for name, text in pairs),
            *(f"{name}:{' '.join(headers[name].split())}" for name in signed),
            "",
            found["headers"],
            hashlib.sha256(body).hexdigest(),
        ]
    )
    text = "\n".join(
        [
            "AWS4-HMAC-SHA256",
            headers["x-amz-date"],
            found["scope"],
            hashlib.sha256(canonical.encode()).hexdigest(),
        ]
    )
    key = f"AWS4{SECRET_KEY}".encode()
    for one in found["scope"].split("/"):
        key = hmac.digest(key, one.encode(), "sha256")
    expected = hmac.digest(key, text.encode(), "sha256").hex()
    return None if hmac.compare_digest(expected, found["signature"]) else "the signature is of another request"
