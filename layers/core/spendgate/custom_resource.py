"""CloudFormation's custom resource: whatever happens, its address is answered, since a stack waits for that answer.

The protocol is CloudFormation's (User Guide, "Custom resource request objects" and "... response objects", read 2026-11-30): a
document is put to ``ResponseURL``, which S3 signed without a content type; ``Reason`` is what the stack's events show.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from spendgate.calls import Log

# CloudFormation takes an answer of 4 KB; a reason of such a length leaves room for the rest.
REASON_LENGTH_MAX: Final = 1000

Put = Callable[[str, bytes], None]


def is_request(event: Mapping[str, Any]) -> bool:
    """Tell a custom resource's event from a schedule's."""
    return "ResponseURL" in event


def answer(
    event: Mapping[str, Any], work: Callable[[], Mapping[str, str]], *, resource_id: str, put: Put, log: Log
) -> dict[str, Any]:
    """Do the work that an event asks for, put the answer to its address, and return it.

    ``work`` returns the resource's attributes; what it raises is the reason of the failure. A deletion does nothing: what
    was stored stays. Raises what ``put`` raises, so that Lambda tries again.
    """
    document = {
        "PhysicalResourceId": event.get("PhysicalResourceId") or resource_id,
        **{name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")},
    }
    if event["RequestType"] == "Delete":
        document["Status"] = "SUCCESS"
    else:
        try:
            document |= {"Data": dict(work()), "Status": "SUCCESS"}
        except Exception as error:
            # The last line of defence: a stack without an answer hangs for an hour.
            log.exception("the work of a custom resource failed", resource=resource_id)
            document |= {"Status": "FAILED", "Reason": _reason(error)}
    put(event["ResponseURL"], json.dumps(document).encode())
    return document


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:REASON_LENGTH_MAX]
