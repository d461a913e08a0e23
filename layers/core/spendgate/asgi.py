"""The gateway over HTTP: paths, keys and error shapes; a thin ASGI application on Starlette.

The same application runs under uvicorn locally, in any container, and in Lambda behind the Web Adapter.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from spendgate.admin_view import budget_view, instant_text, reservation_view
from spendgate.admission import parse_idempotency_key
from spendgate.calls import NO_METRICS, Call, Log, Metrics, Reply
from spendgate.core.key import KEY_PREFIX
from spendgate.dialects.dialect import Dialect
from spendgate.dialects.json_strict import parse_object
from spendgate.dialects.registry import DIALECTS, ENTRIES
from spendgate.errors import InternalFault, KeyInvalid, NotFound, RefusalFacts, Refused, RequestInvalid
from spendgate.gateway import Gateway
from spendgate.http_head import check_head, headers_of, request_id_of
from spendgate.relay import Relay
from spendgate.runs import BODY_BYTES_MAX as RUN_BODY_BYTES_MAX
from spendgate.runs import Minted
from spendgate.settings import Settings

# Where each SDK puts its key; a value that is no key of ours may be there too, and is ignored.
_KEY_HEADERS: Final = ("x-api-key", "api-key", "x-goog-api-key")
_OPENAI_PATHS: Final = ("/v1/chat/", "/v1/responses", "/v1/completions", "/v1/embeddings")
_RUN_HEADER: Final = "x-spendgate-run"
_GEMINI_METHODS: Final = ("generateContent", "streamGenerateContent", "countTokens", "embedContent")
_IDEMPOTENCY_HEADERS: Final = ("idempotency-key", "x-spendgate-request-id")
# What the door notes of a request in its scope.
_REQUEST_ID: Final = "spendgate.request_id"
_ARRIVED: Final = "spendgate.arrived"

Endpoint = Callable[[HttpRequest], Awaitable[Response]]


def create_app(
    gateway: Gateway,
    *,
    settings: Settings,
    log: Log,
    metrics: Metrics = NO_METRICS,
    routes: tuple[BaseRoute, ...] = (),
) -> Starlette:
    """Return the application. ``routes`` are further ones that a local run serves beside the gateway's."""
    http = _Http(gateway, settings, log, metrics)
    app = Starlette(
        routes=[
            *(
                Route(path, http.endpoint(name, http.call(name)), methods=["POST"])
                for name, entry in ENTRIES.items()
                for path in entry.paths
            ),
            *(
                Route(path, http.endpoint(name, http.free(name, index)), methods=["POST"])
                for name, entry in ENTRIES.items()
                for index, paths in enumerate(entry.free_paths)
                for path in paths
            ),
            Route("/v1/models", http.endpoint(None, http.models), methods=["GET"]),
            Route("/v1beta/models", http.endpoint("gemini", http.gemini_models), methods=["GET"]),
            Route("/v1/budget", http.endpoint(None, http.budget), methods=["GET"]),
            Route("/v1/runs", http.endpoint(None, http.mint), methods=["POST"]),
            Route("/v1/runs/{run}", http.endpoint(None, http.end_run), methods=["DELETE"]),
            Route("/v1/reservations/{id}", http.endpoint(None, http.reservation), methods=["GET"]),
            Route("/healthz", _healthz, methods=["GET"]),
            *routes,
        ],
        middleware=[Middleware(_Door, settings=settings, refuse=http.refuse)],
        exception_handlers={404: http.not_found, 405: http.not_found},
    )
    # A path with a slash too many is another path: a redirect of a POST would send the prompt twice.
    app.router.redirect_slashes = False
    return app


class _Door:
    """Gives each request its id, and lets in only heads that cannot be read in two ways."""

    def __init__(self, app: ASGIApp, *, settings: Settings, refuse: Callable[[HttpRequest, Refused], Response]) -> None:
        self._app = app
        self._trusted = settings.deadline_header is not None
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope[_ARRIVED] = time.perf_counter()
            scope[_REQUEST_ID] = request_id_of(scope, trusted=self._trusted, randomness=secrets.token_bytes)
            try:
                check_head(scope)
            except Refused as refused:
                await self._refuse(HttpRequest(scope), refused)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class _Http:
    def __init__(self, gateway: Gateway, settings: Settings, log: Log, metrics: Metrics) -> None:
        self._gateway = gateway
        self._settings = settings
        self._log = log
        self._metrics = metrics

    def endpoint(self, name: str | None, serve: Endpoint) -> Endpoint:
        """Return an endpoint whose refusals, and faults, have the shape that the SDKs of a dialect parse."""

        async def endpoint(request: HttpRequest) -> Response:
            try:
                return await serve(request)
            except Refused as refused:
                return self.refuse(request, refused, _named(name))
            except ClientDisconnect:
                # Gone before the request was whole: nobody reads this, and it is no fault of ours.
                return Response(status_code=400)
            except Exception:  # noqa: BLE001 - the last line of defence; it logs
                self._log.exception(
                    "a request failed for a reason of ours",
                    path=request.url.path,
                    request_id=request.scope[_REQUEST_ID],
                )
                return self.refuse(request, InternalFault("a fault of the gateway; nothing was sent"), _named(name))

        return endpoint

    def refuse(self, request: HttpRequest, refused: Refused, dialect: Dialect | None = None) -> Response:
        """Tell a refusal, count it and log it, by its code: no path, which may hold a key."""
        self._metrics.add({"Refusals": 1}, code=refused.code)
        request_id = request.scope[_REQUEST_ID]
        self._log.info(
            "refusal",
            request_id=request_id,
            code=refused.code,
            budget=refused.facts.budget,
            reservation=refused.facts.reservation,
            **{"error.type": refused.code},
        )
        return refusal(dialect or _dialect_of(request), refused, request_id)

    def call(self, name: str) -> Endpoint:
        """Return the endpoint of a dialect's calls."""

        async def call(request: HttpRequest) -> Response:
            return _response(await self._gateway.serve(await self._read(DIALECTS[name], request)))

        return call

    def free(self, name: str, index: int) -> Endpoint:
        """Return the endpoint of a dialect's free call, by its place among them."""

        async def call(request: HttpRequest) -> Response:
            dialect = DIALECTS[name]
            return _response(await self._gateway.pass_free(await self._read(dialect, request), dialect.free[index]))

        return call

    async def models(self, request: HttpRequest) -> Response:
        """List routes in one document that every SDK reads as its own."""
        _, routes = await self._gateway.models(secret_of(request))
        names = [route.name for route in routes]
        created = "1970-01-01T00:00:00Z"
        data = [
            {
                "id": name,
                "object": "model",
                "type": "model",
                "created": 0,
                "created_at": created,
                "owned_by": "spendgate",
                "display_name": name,
            }
            for name in names
        ]
        ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
        models = [_gemini_model(name) for name in names]
        return JSONResponse({"object": "list", "data": data, "has_more": False, **ends, "models": models})

    async def gemini_models(self, request: HttpRequest) -> Response:
        """List routes as Google's SDKs read them."""
        _, routes = await self._gateway.models(secret_of(request, DIALECTS["gemini"]))
        return JSONResponse({"models": [_gemini_model(route.name) for route in routes]})

    async def budget(self, request: HttpRequest) -> Response:
        states = await self._gateway.budgets(secret_of(request), request.headers.get(_RUN_HEADER))
        now = self._gateway.now()
        path = states[-1].policy.path
        return JSONResponse({"budget": path, "budgets": [budget_view(state, now) for state in states]})

    async def mint(self, request: HttpRequest) -> Response:
        """Answer a new run's key: the one time that it is shown, so nothing may keep this answer."""
        raw = await _body(request, RUN_BODY_BYTES_MAX)
        body = parse_object(raw or b"{}", content_encoding=request.headers.get("content-encoding"))
        minted = await self._gateway.mint(secret_of(request), body)
        return JSONResponse(minted_view(minted), status_code=201, headers={"cache-control": "no-store"})

    async def end_run(self, request: HttpRequest) -> Response:
        state = await self._gateway.end_run(secret_of(request), request.path_params["run"])
        return JSONResponse(budget_view(state, self._gateway.now()))

    async def reservation(self, request: HttpRequest) -> Response:
        found = await self._gateway.reservation(secret_of(request), request.path_params["id"])
        return JSONResponse(reservation_view(found))

    async def not_found(self, request: HttpRequest, _: Exception) -> Response:
        return self.refuse(
            request,
            NotFound(
                f"there is no {request.method} {request.url.path[:200]} here",
                facts=RefusalFacts(next_action="docs/api.md lists the paths"),
            ),
        )

    async def _read(self, dialect: Dialect, request: HttpRequest) -> Call:
        headers = headers_of(request.scope)
        return Call(
            dialect=dialect,
            raw=await _body(request, self._settings.body_bytes_max),
            headers=headers,
            query=_query_without_key(request, dialect),
            path=request.path_params,
            secret=secret_of(request, dialect),
            run=headers.get(_RUN_HEADER),
            idempotency_key=parse_idempotency_key(
                next((headers[name] for name in _IDEMPOTENCY_HEADERS if name in headers), None)
            ),
            deadline=_platform_deadline(headers, self._settings.deadline_header),
            request_id=request.scope[_REQUEST_ID],
            arrived=request.scope[_ARRIVED],
        )


class _Streamed(Response):
    """An answer in pieces. What the caller does not take is dropped; the exchange goes on without it."""

    def __init__(self, reply: Reply, relay: Relay) -> None:
        super().__init__(status_code=reply.status)
        self.raw_headers = _encoded(reply.headers)
        self._relay = relay

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in self._relay.pieces():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except OSError:
            # The caller is gone: from ASGI 2.4 on, servers say so by this error.
            return
        finally:
            self._relay.leave()


def refusal(dialect: Dialect, refused: Refused, request_id: str) -> Response:
    """Return a refusal in the shape of a dialect, with the headers that keep an SDK from repeating it in vain."""
    headers = {"x-should-retry": "true" if refused.retryable else "false"}
    if refused.retry_after_seconds is not None:
        headers["retry-after"] = str(refused.retry_after_seconds)
    if refused.facts.reservation is not None:
        headers["x-spendgate-reservation"] = refused.facts.reservation
    headers |= dict(dialect.refusal_headers(refused))
    return JSONResponse(dialect.refusal(refused, request_id), status_code=dialect.status(refused), headers=headers)


def secret_of(request: HttpRequest, dialect: Dialect | None = None) -> str | None:
    """Return the caller's key from wherever its SDK puts it; KeyInvalid where two of them differ."""
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    found = [bearer.strip()] if scheme.lower() == "bearer" else []
    found += [request.headers[name].strip() for name in _KEY_HEADERS if name in request.headers]
    if dialect is not None and dialect.key_query is not None:
        found += request.query_params.getlist(dialect.key_query)
    ours = {value for value in found if value.startswith(KEY_PREFIX)}
    if len(ours) > 1:
        raise KeyInvalid("the request has two different keys", facts=RefusalFacts(next_action="send one key"))
    if ours:
        return ours.pop()
    return found[0] if found else None


def minted_view(minted: Minted) -> dict[str, Any]:
    """Return a minted key with what it may do."""
    key, policy = minted.key, minted.policy
    return {
        "key": minted.secret,
        "run": minted.run,
        "budget": key.budget,
        "expires_at": None if key.expires_at is None else instant_text(key.expires_at),
        "models": list(key.models),
        "delegate": 0 if policy.runs is None else policy.runs.delegate,
    }


def _gemini_model(name: str) -> dict[str, Any]:
    return {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": _GEMINI_METHODS}


def _query_without_key(request: HttpRequest, dialect: Dialect) -> str:
    """Return the query as it came, without the caller's key: what a dialect reads may be sent on, or told."""
    if dialect.key_query is None:
        return request.url.query
    return "&".join(part for part in request.url.query.split("&") if part.partition("=")[0] != dialect.key_query)


def _response(reply: Reply) -> Response:
    if reply.pieces is not None:
        return _Streamed(reply, reply.pieces)
    response = Response(reply.body, status_code=reply.status)
    response.raw_headers = [*_encoded(reply.headers), (b"content-length", str(len(reply.body)).encode())]
    return response


def _encoded(headers: tuple[tuple[str, str], ...]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


async def _body(request: HttpRequest, bytes_max: int) -> bytes:
    """Return the body, of which no more is read than is allowed."""
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > bytes_max:
            raise RequestInvalid(
                f"the body is larger than {bytes_max} bytes", facts=RefusalFacts(next_action="send a smaller request")
            )
        parts.append(part)
    return b"".join(parts)


def _platform_deadline(headers: dict[str, str], name: str | None) -> datetime | None:
    """Return the deadline that the Lambda Web Adapter tells in its context header; only where settings trust it."""
    if name is None or name not in headers:
        return None
    try:
        milliseconds = json.loads(headers[name])["deadline"]
        return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
    except (ValueError, KeyError, TypeError, OverflowError, OSError, RecursionError) as error:
        raise InternalFault(f"header {name} has no deadline") from error


def _named(name: str | None) -> Dialect | None:
    return None if name is None else DIALECTS[name]


def _dialect_of(request: HttpRequest) -> Dialect:
    """Guess whose SDK is asking: by the path, and where that is the gateway's own, by what its SDKs send along."""
    path = request.url.path
    if path.startswith("/model/"):
        return DIALECTS["bedrock-converse"]
    if path.startswith("/v1/messages"):
        return DIALECTS["anthropic"]
    if path.startswith(("/v1beta/", "/v1/models/")):
        return DIALECTS["gemini"]
    if path.startswith(_OPENAI_PATHS):
        return DIALECTS["openai"]
    if "x-goog-api-key" in request.headers:
        return DIALECTS["gemini"]
    return DIALECTS["anthropic" if "anthropic-version" in request.headers else "openai"]


async def _healthz(_: HttpRequest) -> Response:
    return JSONResponse({"status": "ok"})
