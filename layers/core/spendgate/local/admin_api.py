"""The admin API of a local run: the operators' use cases over HTTP, on loopback, for whoever holds the token.

Every error is ``{"error": {"code", "message", "field"?, "problems"?}}``.
"""

import hmac
import logging
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any, Final, TypeVar

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from spendgate.admin import Admin
from spendgate.admin_input import invalid
from spendgate.core.event import BY_LENGTH_MAX
from spendgate.dialects.json_strict import parse_object
from spendgate.errors import (
    BudgetMissing,
    ConfigurationInvalid,
    LedgerError,
    NotFound,
    Refused,
    RequestInvalid,
    ReservationMissing,
    SpendgateError,
)

FILE_BODY_BYTES_MAX: Final = 2 * 1024 * 1024
BODY_BYTES_MAX: Final = 64 * 1024
# Who acts, as the caller says: whoever holds the token may say so, the trail only keeps it.
OPERATOR_HEADER: Final = "x-spendgate-operator"
ANONYMOUS: Final = "admin"
_OPERATOR: Final = re.compile(rf"[!-~]{{1,{BY_LENGTH_MAX}}}", re.ASCII)
_WORDS: Final = re.compile(r"(?<!^)(?=[A-Z])")

logger = logging.getLogger(__name__)


class Body(BaseModel):
    """A request's body: what is not named is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class PlanBody(Body):
    file: str


class ApplyBody(Body):
    file: str
    plan_id: str | None = None


class KeyBody(Body):
    name: str
    budget: str
    models: list[str] = []
    expires_at: str | None = None


class LatchBody(Body):
    path: str
    reason: str


class LiftBody(Body):
    provider: str
    model: str
    feature: str
    reason: str


class PricesBody(Body):
    file: str


class ReconcileBody(Body):
    action: str
    evidence: str | None = None
    cost: str | None = None


BodyType = TypeVar("BodyType", bound=Body)
Call = Callable[[Request], Awaitable[dict[str, Any]]]


def admin_routes(admin: Admin, token: str, *, changed: Callable[[], None] = lambda: None) -> list[BaseRoute]:
    """Return the routes under ``/admin``; every other path there is 404, for holders of the token.

    ``changed`` is called after whatever may have changed something, so that a cache in this process can forget.
    """
    api = _Api(admin)
    calls: list[tuple[str, str, Call]] = [
        ("POST", "/plan", api.plan),
        ("POST", "/apply", api.apply),
        ("GET", "/budgets", api.budgets),
        ("GET", "/keys", api.keys),
        ("POST", "/keys", api.create_key),
        ("POST", "/keys/{name:path}/revoke", api.revoke_key),
        ("POST", "/stop", api.stop),
        ("POST", "/resume", api.resume),
        ("GET", "/reservations", api.reservations),
        ("GET", "/reservations/{id}", api.reservation),
        ("POST", "/reservations/{id}/reconcile", api.reconcile),
        ("GET", "/prices", api.prices),
        ("POST", "/prices", api.add_prices),
        ("GET", "/prices/check", api.check_prices),
        ("GET", "/blocks", api.blocks),
        ("POST", "/blocks/lift", api.lift_block),
        ("GET", "/audit", api.audit),
        ("GET", "/events", api.events),
    ]
    routes: list[BaseRoute] = [
        Route(f"/admin{path}", _guarded(call, token, changed), methods=[method]) for method, path, call in calls
    ]
    elsewhere = _guarded(_elsewhere, token, changed)
    methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    return [*routes, *(Route(path, elsewhere, methods=methods) for path in ("/admin", "/admin/{rest:path}"))]


class _Api:
    """Decode, call one use case in a thread (the store blocks), encode."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def plan(self, request: Request) -> dict[str, Any]:
        body = await _body(request, PlanBody, bytes_max=FILE_BODY_BYTES_MAX)
        return await _in_thread(lambda: self._admin.plan(body.file))

    async def apply(self, request: Request) -> dict[str, Any]:
        body, by = await _body(request, ApplyBody, bytes_max=FILE_BODY_BYTES_MAX), _operator(request)
        return await _in_thread(lambda: self._admin.apply(body.file, by=by, plan_id=body.plan_id))

    async def budgets(self, request: Request) -> dict[str, Any]:
        query = _query(request, "path")
        return await _in_thread(lambda: self._admin.budgets(query.get("path")))

    async def keys(self, request: Request) -> dict[str, Any]:
        _query(request)
        return await _in_thread(self._admin.keys)

    async def create_key(self, request: Request) -> dict[str, Any]:
        body, by = await _body(request, KeyBody), _operator(request)
        expires_at = None if body.expires_at is None else _instant(body.expires_at)
        return await _in_thread(
            lambda: self._admin.create_key(
                body.name, budget=body.budget, models=body.models, expires_at=expires_at, by=by
            )
        )

    async def revoke_key(self, request: Request) -> dict[str, Any]:
        name, by = request.path_params["name"], _operator(request)
        return await _in_thread(lambda: self._admin.revoke_key(name, by=by))

    async def stop(self, request: Request) -> dict[str, Any]:
        body, by = await _body(request, LatchBody), _operator(request)
        return await _in_thread(lambda: self._admin.stop(body.path, reason=body.reason, by=by))

    async def resume(self, request: Request) -> dict[str, Any]:
        body, by = await _body(request, LatchBody), _operator(request)
        return await _in_thread(lambda: self._admin.resume(body.path, reason=body.reason, by=by))

    async def reservations(self, request: Request) -> dict[str, Any]:
        query = _query(request, "budget", "state", "limit")
        limit = _number(query.get("limit", "50"), "limit")
        return await _in_thread(
            lambda: self._admin.reservations(budget=query.get("budget"), state=query.get("state"), limit=limit)
        )

    async def reservation(self, request: Request) -> dict[str, Any]:
        reservation_id = request.path_params["id"]
        return await _in_thread(lambda: self._admin.reservation(reservation_id))

    async def reconcile(self, request: Request) -> dict[str, Any]:
        body, by = await _body(request, ReconcileBody), _operator(request)
        reservation_id = request.path_params["id"]
        return await _in_thread(
            lambda: self._admin.reconcile(
                reservation_id, action=body.action, cost=body.cost, evidence=body.evidence, by=by
            )
        )

    async def prices(self, request: Request) -> dict[str, Any]:
        query = _query(request, "provider", "model")
        if "model" in query and "provider" not in query:
            raise invalid("provider", "goes with model")
        return await _in_thread(lambda: self._admin.prices.list(query.get("provider"), query.get("model")))

    async def add_prices(self, request: Request) -> dict[str, Any]:
        body, by = await _body(request, PricesBody, bytes_max=FILE_BODY_BYTES_MAX), _operator(request)
        return await _in_thread(lambda: self._admin.prices.add(body.file, by=by))

    async def check_prices(self, request: Request) -> dict[str, Any]:
        _query(request)
        return await _in_thread(self._admin.prices.check)

    async def blocks(self, request: Request) -> dict[str, Any]:
        _query(request)
        return await _in_thread(self._admin.blocks.list)

    async def lift_block(self, request: Request) -> dict[str, Any]:
        body, by = await _body(request, LiftBody), _operator(request)
        return await _in_thread(
            lambda: self._admin.blocks.lift(
                provider=body.provider, model=body.model, feature=body.feature, reason=body.reason, by=by
            )
        )

    async def audit(self, request: Request) -> dict[str, Any]:
        _query(request)
        return await _in_thread(self._admin.audit)

    async def events(self, request: Request) -> dict[str, Any]:
        limit = _number(_query(request, "limit").get("limit", "50"), "limit")
        return await _in_thread(lambda: self._admin.events(limit))


async def _elsewhere(request: Request) -> dict[str, Any]:
    raise NotFound(f"there is no {request.method} {request.url.path[:200]} in the admin API")


def _guarded(call: Call, token: str, changed: Callable[[], None]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        if not _is_loopback(request):
            return _error(403, "forbidden", "the admin API answers on loopback only")
        if not _has_token(request, token):
            return _error(401, "token_invalid", "the admin token is missing or wrong")
        try:
            answer = await call(request)
        except SpendgateError as error:
            return _refusal(error)
        except ClientDisconnect:
            return _error(400, "request_invalid", "the body ended early")
        except Exception:
            # The last line of defence: the details are for the log, never for the caller.
            logger.exception("admin call failed: %s %s", request.method, request.url.path)
            return _error(500, "internal_fault", "a defect of the gateway; its log has the details")
        finally:
            if request.method == "POST":
                changed()
        return JSONResponse(answer, headers=_NO_STORE)

    return endpoint


# Answers may hold a new key.
_NO_STORE: Final = {"cache-control": "no-store"}


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
        raise invalid(OPERATOR_HEADER, f"1 to {BY_LENGTH_MAX} printable ASCII characters without spaces")
    return name


async def _body(request: Request, model: type[BodyType], *, bytes_max: int = BODY_BYTES_MAX) -> BodyType:
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > bytes_max:
            raise RequestInvalid(f"the body has more than {bytes_max} bytes")
    parsed = parse_object(
        bytes(raw), content_encoding=request.headers.get("content-encoding"), bytes_max=bytes_max, depth_max=8
    )
    try:
        return model.model_validate(parsed)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        raise invalid(".".join(map(str, detail["loc"])), str(detail["msg"])) from error


def _query(request: Request, *known: str) -> dict[str, str]:
    given = request.query_params
    for name in given:
        if name not in known:
            raise invalid(name[:64], f"is not known here; known: {', '.join(known) or 'nothing'}")
        if len(given.getlist(name)) > 1:
            raise invalid(name, "is given twice")
    return dict(given)


def _number(text: str, field: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 6:
        raise invalid(field, "a whole number")
    return int(text)


def _instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise invalid("expires_at", "a date like 2027-01-31 (its start, in UTC) or 2027-01-31T18:00:00Z") from error


async def _in_thread(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    return await to_thread.run_sync(call)


def _refusal(error: SpendgateError) -> Response:
    match error:
        case ConfigurationInvalid():
            problems = [{"place": one.place, "message": one.message, "line": one.line} for one in error.problems]
            count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
            return _error(422, "configuration_invalid", f"the configuration has {count}", problems=problems)
        case Refused():
            fields = {} if error.facts.field is None else {"field": error.facts.field}
            return _error(error.status, error.code, str(error), **fields)
        case ReservationMissing() | BudgetMissing():
            return _error(404, _code(error), str(error))
        case LedgerError():
            # RevisionConflict, TransitionIllegal, SettlementConflict: things are not as the caller thinks they are.
            return _error(409, _code(error), str(error))
        case _:
            return _error(500, _code(error), str(error))


def _code(error: SpendgateError) -> str:
    return _WORDS.sub("_", type(error).__name__).lower()


def _error(status: int, code: str, message: str, **more: Any) -> Response:
    return JSONResponse({"error": {"code": code, "message": message, **more}}, status_code=status, headers=_NO_STORE)
