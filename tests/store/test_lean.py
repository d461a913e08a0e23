"""Transactions are written as botocore does it, though not by it."""

import json
from collections.abc import Iterator
from typing import Any

import botocore.serialize
import botocore.session
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st

from spendgate.store import lean
from spendgate.store.client import dynamodb
from spendgate.store.values import encode_item

items = st.dictionaries(st.text(max_size=8), st.text(max_size=20) | st.integers(-(10**37), 10**37) | st.booleans())


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(item=items)
def test_a_body_says_what_botocores_says(item: dict[str, object]) -> None:
    parameters = {
        "TransactItems": [{"Put": {"TableName": "t", "Item": encode_item(item), "ConditionExpression": "a = :a"}}],
        "ClientRequestToken": "token",
    }
    request = _SERIALIZER.serialize_to_request(parameters, _MODEL.operation_model(lean.OPERATION))

    assert json.loads(lean.written(parameters)) == json.loads(request["body"])


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
    # The signature is over this body: botocore's own signer says the same of what was sent.
    sent_at = request.headers["X-Amz-Date"].decode()
    headers = {name: request.headers[name].decode() for name in ("Content-Type", "X-Amz-Target", "X-Amz-Date")}
    again: Any = AWSRequest(method="POST", url=request.url, data=request.body, headers=headers)
    again.context["timestamp"] = sent_at
    signer: Any = SigV4Auth(Credentials("local", "local"), "dynamodb", "us-east-1")
    signature = signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again)
    assert request.headers["Authorization"].decode().endswith(f"Signature={signature}")


_MODEL: Any = botocore.session.get_session().get_service_model("dynamodb")
_SERIALIZER: Any = botocore.serialize.create_serializer(_MODEL.metadata["protocol"], include_validation=False)
