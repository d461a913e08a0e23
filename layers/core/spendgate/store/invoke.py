"""Asking another function of the stack for its work, and waiting for what it returns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from spendgate.errors import AlertUndelivered

READ_SECONDS: Final = 25.0


def send_test_alerts(function: str, *, region: str) -> Mapping[str, Any]:
    """Have the alerts function send its test; AlertUndelivered where it does not answer."""
    config = Config(
        region_name=region, connect_timeout=2.0, read_timeout=READ_SECONDS, retries={"total_max_attempts": 1}
    )
    client: Any = botocore.session.get_session().create_client("lambda", config=config)
    try:
        answer = client.invoke(FunctionName=function, Payload=json.dumps({"test": True}))
    except (ClientError, BotoCoreError) as error:
        raise AlertUndelivered(f"the alerts function does not answer: {type(error).__name__}") from error
    if "FunctionError" in answer:
        raise AlertUndelivered("the alerts function failed; its log says why")
    found: Mapping[str, Any] = json.loads(answer["Payload"].read())
    return found
