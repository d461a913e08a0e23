"""The ledger's transactions through botocore, less what it works out anew for each of them.

botocore writes a request by walking the service's model over every value, finds its endpoint by rules over its tables, and
signs it by way of a form for any header there may be: a third of a call's CPU. Of a transaction all of this is known: the
body is JSON as it stands, and the headers are few. Only botocore's documented events are used; connections, time-outs,
parsing and errors stay its own.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import botocore
from botocore.exceptions import NoCredentialsError

if TYPE_CHECKING:
    from botocore.credentials import Credentials, ReadOnlyCredentials
    from mypy_boto3_dynamodb.client import DynamoDBClient

OPERATION: Final = "TransactWriteItems"
CONTENT_TYPE: Final = "application/x-amz-json-1.0"
TARGET: Final = f"DynamoDB_20120810.{OPERATION}"
_SERVICE: Final = "dynamodb"
_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_SCOPE_END: Final = "aws4_request"
_BODY: Final = "spendgate.body"
_PORTS: Final = {"http": 80, "https": 443}


def lighten(client: DynamoDBClient, *, credentials: Credentials | None, region: str, validate: bool) -> None:
    """Let a client's transactions be written and signed here. With ``validate`` botocore writes and checks them first."""
    transactions = Transactions(
        credentials=credentials, region=region, validate=validate, clock=lambda: datetime.now(UTC)
    )
    # Typed as if no handler answered; these events are asked for an answer.
    events: Any = client.meta.events
    events.register(f"provide-client-params.dynamodb.{OPERATION}", transactions.take)
    events.register(f"before-call.dynamodb.{OPERATION}", transactions.put)
    events.register(f"choose-signer.dynamodb.{OPERATION}", transactions.leave_unsigned)
    events.register(f"before-sign.dynamodb.{OPERATION}", transactions.sign)


def written(parameters: Mapping[str, Any]) -> bytes:
    """Return the body of a transaction: the tables hold nothing that JSON spells in another way than the request does."""
    return json.dumps(parameters, ensure_ascii=False, separators=(",", ":")).encode()


def signed(*, url: str, body: bytes, credentials: ReadOnlyCredentials, region: str, now: datetime) -> dict[str, str]:
    """Return the headers that sign a transaction: SigV4 over its content type, host, date, token and target.

    docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
    """
    instant = f"{now:%Y%m%dT%H%M%SZ}"
    added = {"X-Amz-Date": instant}
    lines = [f"content-type:{CONTENT_TYPE}", f"host:{_host(url)}", f"x-amz-date:{instant}"]
    names = "content-type;host;x-amz-date"
    if credentials.token:
        added["X-Amz-Security-Token"] = credentials.token
        lines.append(f"x-amz-security-token:{credentials.token}")
        names += ";x-amz-security-token"
    lines.append(f"x-amz-target:{TARGET}")
    names += ";x-amz-target"
    canonical = "\n".join(["POST", "/", "", *lines, "", names, hashlib.sha256(body).hexdigest()])
    scope = f"{instant[:8]}/{region}/{_SERVICE}/{_SCOPE_END}"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = _signing_key(credentials.secret_key, instant[:8], region)
    signature = _hmac(key, f"{_ALGORITHM}\n{instant}\n{scope}\n{digest}").hex()
    added["Authorization"] = (
        f"{_ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return added


@dataclass(frozen=True, slots=True, kw_only=True)
class Transactions:
    """The handlers of a client's transactions."""

    credentials: Credentials | None
    region: str
    validate: bool
    clock: Callable[[], datetime]

    def take(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> dict[str, Any] | None:
        """Write the body, and leave botocore nothing to walk over."""
        context[_BODY] = written(params)
        return None if self.validate else {}

    def put(self, params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        """Put the body where botocore's own would be."""
        params["body"] = context[_BODY]

    def leave_unsigned(self, **_: Any) -> Any:
        """Keep botocore from signing."""
        return botocore.UNSIGNED

    def sign(self, request: Any, **_: Any) -> None:
        """Add the signature; NoCredentialsError."""
        if self.credentials is None:
            raise NoCredentialsError
        frozen = self.credentials.get_frozen_credentials()
        added = signed(url=request.url, body=request.data, credentials=frozen, region=self.region, now=self.clock())
        for name, value in added.items():
            # It appends: a repetition is signed anew.
            del request.headers[name]
            request.headers[name] = value


@lru_cache(maxsize=8)
def _host(url: str) -> str:
    """Return the host as urllib3 will send it."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return host if parts.port in {None, _PORTS.get(parts.scheme)} else f"{host}:{parts.port}"


# Today's and, around midnight, yesterday's, of credentials that are renewed every few hours.
@lru_cache(maxsize=4)
def _signing_key(secret: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, _SERVICE, _SCOPE_END):
        key = _hmac(key, part)
    return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
