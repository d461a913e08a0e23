"""What the gateway's function does for the stack's other functions, as it alone may read providers' secrets: ask how a call ended.

They invoke it by IAM, with an event that is no request. The Web Adapter posts such an event to PATH with ``null`` for the context of
a request; over whatever comes by API Gateway it puts API Gateway's own context, whatever a caller sent. So nobody gets here but
who may invoke the function; and what goes back is what the provider says was used, of a call that nobody has accounted for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from spendgate.asking_gateway import told
from spendgate.calls import Log
from spendgate.core.reservation import UNRESOLVED, Reservation, is_id
from spendgate.core.route import Provider
from spendgate.dialects.json_strict import parse_object
from spendgate.errors import LedgerUnavailable, RequestInvalid
from spendgate.http_head import REQUEST_CONTEXT_HEADER
from spendgate.providers.recovery import Recover

PATH: Final = "/events"
# What the adapter (awslabs/aws-lambda-web-adapter, src/lib.rs) makes of an event without a context.
NO_CONTEXT: Final = "null"
BODY_BYTES_MAX: Final = 1024
# Within the time that whoever asks waits for its answer: spendgate.store.invoke.
SECONDS_MAX: Final = 20.0


def errand_routes(
    reservation_of: Callable[[str], Reservation | None],
    provider_named: Callable[[str], Provider | None],
    recover: Recover,
    log: Log,
) -> tuple[BaseRoute, ...]:
    """Return the route of a gateway that an adapter stands before; without one there is nobody whom it could believe."""

    def ask(reservation_id: str) -> Mapping[str, Any]:
        reservation = reservation_of(reservation_id)
        if reservation is None or reservation.state not in UNRESOLVED or reservation.provider is None:
            return told(None, "there is no call of that id that a provider could account for")
        provider = provider_named(reservation.provider)
        if provider is None:
            return told(None, f"there is no provider {reservation.provider} any more")
        try:
            recovered = recover(provider, reservation)
        except LedgerUnavailable as error:
            # It names the secret, as an operator knows it, and has none of it.
            return told(None, str(error))
        return told(recovered.report, recovered.said)

    async def errand(request: Request) -> Response:
        if request.headers.get(REQUEST_CONTEXT_HEADER) != NO_CONTEXT:
            # As any path that is not there.
            raise HTTPException(404)
        reservation_id = _asked_about(await request.body())
        if reservation_id is None:
            return JSONResponse(told(None, "this is no question that a gateway answers"))
        try:
            answer = await asyncio.wait_for(asyncio.to_thread(ask, reservation_id), SECONDS_MAX)
        except TimeoutError:
            answer = told(None, "the provider did not answer in time")
        except LedgerUnavailable as error:
            answer = told(None, str(error))
        log.info("asked a provider", reservation=reservation_id, proven=answer["report"] is not None)
        return JSONResponse(answer)

    return (Route(PATH, errand, methods=["POST"]),)


def _asked_about(body: bytes) -> str | None:
    if len(body) > BODY_BYTES_MAX:
        return None
    try:
        asked = parse_object(body).get("reservation")
    except RequestInvalid:
        return None
    return asked if isinstance(asked, str) and is_id(asked) else None
