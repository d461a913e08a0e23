"""The DynamoDB client: short time-outs and a single attempt, since the ledger itself decides what is tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import botocore
import botocore.session
from botocore.config import Config

from spendgate.store.lean import lighten

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

CONNECT_SECONDS = 1.0
READ_SECONDS = 2.0
# botocore makes up its own anew, twice for each request, out of what never changes.
_USER_AGENT: Final = f"spendgate Botocore/{botocore.__version__}"


def dynamodb(
    *,
    region: str,
    endpoint_url: str | None = None,
    connections_max: int = 32,
    validate: bool = False,
    read_seconds: float = READ_SECONDS,
) -> DynamoDBClient:
    """Return a client. With ``endpoint_url`` (an emulator on this machine) fixed credentials are used.

    ``validate`` switches botocore's check of parameters on, which costs more time than the signature; tests do.
    """
    config = Config(
        region_name=region,
        user_agent=_USER_AGENT,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=read_seconds,
        # One attempt: botocore retries no transaction conflict, and its sleeping would hide from our deadline.
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=connections_max,
        parameter_validation=validate,
        tcp_keepalive=True,
    )
    # The emulator wants credentials, any, and checks none.
    emulated = {"endpoint_url": endpoint_url, "aws_access_key_id": "local", "aws_secret_access_key": "local"}
    given: dict[str, Any] = {} if endpoint_url is None else emulated
    # Not boto3's session: it makes this same client, and its import adds S3 transfers and resources to every start.
    client = cast("DynamoDBClient", botocore.session.get_session().create_client("dynamodb", config=config, **given))
    lighten(client, validate=validate)
    return client
