"""The admin API of a local run: the operators' endpoints on loopback, for whoever holds the token."""

import hmac
import logging
import re
from collections.abc import Awaitable, Callable
from functools import partial
from ipaddress import ip_address
from typing import Any, Final

from anyio import to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from spendgate.admin import Admin
from spendgate.admin_endpoints import ENDPOINTS
from spendgate.admin_http import HEADERS, PREFIX, nowhere, refusal, respond, told
from spendgate.admin_input import invalid
from spendgate.admin_models import Endpoint, Given
from spendgate.errors import RequestInvalid, SpendgateError

# Who acts, as the caller says: whoever holds the token may say so, the trail only keeps it.
OPERATOR_HEADER: Final = "x-spendgate-operator"
OPERATOR_LENGTH_MAX: Final = 64
ANONYMOUS: Final = "admin"
_OPERATOR: Final = re.compile(rf"[!-~]{{1,{OPERATOR_LENGTH_MAX}}}", re.ASCII)

Call = Callable[[Request], Awaitable[dict[str, Any]]]

logger = logging.getLogger(__name__)


def admin_routes(admin: Admin, token: str, *, changed: Callable[[], None] = lambda: None) -> list[BaseRoute]:
    """Return the routes under ``/admin``; every other path there is 404, for holders of the token.

    ``changed`` is called after whatever may have changed something, so that a cache in this process can forget.
    """
    routes: list[BaseRoute] = [
        Route(f"{PREFIX}{one.path}", _guarded(partial(_answered, admin, one), token, changed), methods=[one.method])
        for one in ENDPOINTS
    ]
    elsewhere = _guarded(_elsewhere, token, changed)
    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return [*routes, *(Route(path, elsewhere, methods=methods) for path in (PREFIX, f"{PREFIX}/{{rest:path}}"))]


async def _answered(admin: Admin, endpoint: Endpoint, request: Request) -> dict[str, Any]:
    given = Given(
        by=_operator(request) if endpoint.method == "POST" else ANONYMOUS,
        names=request.path_params,
        query=request.query_params.multi_items(),
        raw=await _raw(request, endpoint.body_bytes_max),
        content_encoding=request.headers.get("content-encoding"),
    )
    # In a thread: the store blocks.
    return await to_thread.run_sync(respond, admin, endpoint, given)


async def _elsewhere(request: Request) -> dict[str, Any]:
    raise nowhere(request.method, request.url.path)


def _guarded(call: Call, token: str, changed: Callable[[], None]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        if not _is_loopback(request):
            return _error(told(403, "forbidden", "the admin API answers on loopback only"))
        if not _has_token(request, token):
            return _error(told(401, "token_invalid", "the admin token is missing or wrong"))
        try:
            answer = await call(request)
        except SpendgateError as error:
            return _error(refusal(error))
        except ClientDisconnect:
            return _error(told(400, "request_invalid", "the body ended early"))
        except Exception:
            # The last line of defence: the details are for the log, never for the caller.
            logger.exception("admin call failed: %s %s", request.method, request.url.path)
            return _error(told(500, "internal_fault", "a defect of the gateway; its log has the details"))
        finally:
            if request.method == "POST":
                changed()
        return JSONResponse(answer, headers=HEADERS)

    return endpoint


def _is_loopback(request: Request) -> bool:
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def _has_token(request: Request, token: str) -> bool:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def _operator(request: Request) -> str:
    name = request.headers.get(OPERATOR_HEADER)
    if name is None:
        return ANONYMOUS
    if _OPERATOR.fullmatch(name) is None:
        raise invalid(OPERATOR_HEADER, f"1 to {OPERATOR_LENGTH_MAX} printable ASCII characters without spaces")
    return name


async def _raw(request: Request, bytes_max: int) -> bytes:
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > bytes_max:
            raise RequestInvalid(f"the body has more than {bytes_max} bytes")
    return bytes(raw)


def _error(error: tuple[int, dict[str, Any]]) -> Response:
    status, document = error
    return JSONResponse(document, status_code=status, headers=HEADERS)
