"""Transactions are written and signed as botocore does it, though not by it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import botocore.serialize
import botocore.session
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials
from botocore.exceptions import NoCredentialsError
from hypothesis import given, settings
from hypothesis import strategies as st

from spendgate.store import lean
from spendgate.store.client import dynamodb
from spendgate.store.values import encode_item

NOW = datetime(2026, 11, 30, 23, 59, 58, tzinfo=UTC)
words = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=40)
items = st.dictionaries(st.text(max_size=8), st.text(max_size=20) | st.integers(-(10**37), 10**37) | st.booleans())


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    body=st.binary(max_size=200),
    access=words,
    secret=words,
    token=st.none() | words,
    region=st.sampled_from(["us-east-1", "eu-central-1", "cn-north-1"]),
    url=st.sampled_from(
        [
            "https://dynamodb.us-east-1.amazonaws.com/",
            "http://127.0.0.1:4566/",
            "https://a.example:443/",
            "http://[::1]:8000",
        ]
    ),
)
def test_a_signature_is_botocores_own(
    body: bytes, access: str, secret: str, token: str | None, region: str, url: str
) -> None:
    credentials = Credentials(access, secret, token)
    added = lean.signed(url=url, body=body, credentials=credentials.get_frozen_credentials(), region=region, now=NOW)

    headers = {"Content-Type": lean.CONTENT_TYPE, "X-Amz-Target": lean.TARGET, "X-Amz-Date": f"{NOW:%Y%m%dT%H%M%SZ}"}
    if token:
        headers["X-Amz-Security-Token"] = token
    request: Any = AWSRequest(method="POST", url=url, data=body, headers=headers)
    request.context["timestamp"] = headers["X-Amz-Date"]
    signer: Any = SigV4Auth(credentials, "dynamodb", region)
    canonical = signer.canonical_request(request)
    signature = signer.signature(signer.string_to_sign(request, canonical), request)
    assert added["Authorization"].endswith(f"Signature={signature}")
    assert f"Credential={access}/{signer.credential_scope(request)}," in added["Authorization"]
    assert f"SignedHeaders={signer.signed_headers(signer.headers_to_sign(request))}," in added["Authorization"]
    assert added.get("X-Amz-Security-Token") == token


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(item=items)
def test_a_body_says_what_botocores_says_with_the_same_headers(item: dict[str, object]) -> None:
    parameters = {
        "TransactItems": [{"Put": {"TableName": "t", "Item": encode_item(item), "ConditionExpression": "a = :a"}}],
        "ClientRequestToken": "token",
    }
    request = _SERIALIZER.serialize_to_request(parameters, _MODEL.operation_model(lean.OPERATION))

    assert json.loads(lean.written(parameters)) == json.loads(request["body"])
    assert request["headers"] == {"Content-Type": lean.CONTENT_TYPE, "X-Amz-Target": lean.TARGET}


class _Answer:
    """What botocore reads a response's body from."""

    def stream(self) -> Iterator[bytes]:
        yield b"{}"


@pytest.mark.parametrize("validate", [True, False])
def test_a_transaction_is_sent_as_it_was_given_whether_or_not_botocore_checks_it(*, validate: bool) -> None:
    client = dynamodb(region="us-east-1", endpoint_url="http://127.0.0.1:9", validate=validate)
    sent: list[Any] = []

    def answered(request: Any, **_: Any) -> AWSResponse:
        sent.append(request)
        return AWSResponse(request.url, 200, HTTPHeaders.from_dict({}), _Answer())

    events: Any = client.meta.events
    events.register("before-send.dynamodb", answered)
    writes: Any = [{"Put": {"TableName": "t", "Item": {"pk": {"S": "é"}}}}]

    client.transact_write_items(TransactItems=writes, ClientRequestToken="token")

    (request,) = sent
    assert json.loads(request.body) == {"TransactItems": writes, "ClientRequestToken": "token"}
    assert request.headers["Content-Length"] == str(len(request.body))
    now = datetime.strptime(request.headers["X-Amz-Date"].decode(), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    frozen = Credentials("local", "local").get_frozen_credentials()
    expected = lean.signed(url=request.url, body=request.body, credentials=frozen, region="us-east-1", now=now)
    assert request.headers["Authorization"].decode() == expected["Authorization"]


def test_without_credentials_nothing_is_sent() -> None:
    transactions = lean.Transactions(credentials=None, region="us-east-1", validate=False, clock=lambda: NOW)

    with pytest.raises(NoCredentialsError):
        transactions.sign(AWSRequest(method="POST", url="https://a.example/", data=b""))


_MODEL: Any = botocore.session.get_session().get_service_model("dynamodb")
_SERIALIZER: Any = botocore.serialize.create_serializer(_MODEL.metadata["protocol"], include_validation=False)
