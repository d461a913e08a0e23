"""The admin API behind API Gateway, by Powertools' resolver: the same endpoints as locally; IAM has let the caller in.

Bodies and queries are checked by the endpoints' own models and not by the resolver's validation, so that a request
is read alike everywhere: no JSON key twice, nothing that is not known, one shape of error.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError

from spendgate.admin import Admin
from spendgate.admin_endpoints import ENDPOINTS
from spendgate.admin_http import HEADERS, PREFIX, nowhere, refusal, respond, told
from spendgate.admin_models import Answer, Endpoint, Given
from spendgate.calls import Log
from spendgate.core.event import BY_LENGTH_MAX
from spendgate.errors import RequestInvalid, SpendgateError

# Lambda hands on 6 MB, a little of which is the envelope.
ANSWER_BYTES_MAX: Final = 5_500_000
# What the resolver would otherwise take for the same path is another one to IAM.
_PLAIN: Final = re.compile(rf"{PREFIX}(/[A-Za-z0-9._-]+)+", re.ASCII)
# A key of ours, or a provider's, where an operator meant to write a name.
_KEY: Final = re.compile(r"\b(s[gk]-)[A-Za-z0-9._-]{12,}")
_NAMES: Final = re.compile(r"\{(\w+)\}")


class AdminApi:
    """Answers API Gateway's events. ``by`` is the caller's IAM ARN, which no header can set."""

    def __init__(self, admin: Admin, log: Log) -> None:
        self._admin = admin
        self._log = log
        # Said aloud: in debug mode, which an environment variable can switch on, tracebacks would be answered.
        self._app = APIGatewayRestResolver(debug=False)
        for one in ENDPOINTS:
            rule = _NAMES.sub(r"<\1>", PREFIX + one.path)
            self._app.route(rule, method=one.method)(self._route(one))
        self._app.not_found(self._elsewhere)

    def __call__(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Return API Gateway's answer to one event; never raises, so that nothing of ours is told."""
        request = event.get("requestContext") or {}
        path, method = admin_path(event), str(event.get("httpMethod"))
        told_of = {"correlation_id": request.get("requestId"), "method": method, "path": _KEY.sub(r"\1...", path)[:200]}
        try:
            by = caller(request)
            if by is None:
                answer = self._told(told(403, "forbidden", "the request does not say which AWS identity makes it"))
            elif _PLAIN.fullmatch(path) is None:
                answer = self._told(refusal(nowhere(method, path)))
            else:
                answer = self._app.resolve({**event, "path": path}, context)
        except Exception:  # noqa: BLE001 - the last line of defence
            # The details are for the log, never for the caller.
            self._log.exception("admin call failed", **told_of)
            message = f"a defect of the gateway; its log has the details, under {request.get('requestId')}"
            answer = self._told(told(500, "internal_fault", message))
            by = None
        self._log.info("admin call", **told_of, by=by, status=answer["statusCode"])
        return answer

    def _route(self, endpoint: Endpoint) -> Callable[..., Response[str]]:
        # A function, since the resolver asks for its name.
        def route(**names: str) -> Response[str]:
            return self._answered(endpoint, names)

        return route

    def _answered(self, endpoint: Endpoint, names: Mapping[str, str]) -> Response[str]:
        event = self._app.current_event
        try:
            given = Given(
                by=caller(event["requestContext"]) or "",
                names=names,
                query=_query(event.raw_event),
                raw=_raw(event.raw_event),
                content_encoding=_header(event.raw_event, "content-encoding"),
            )
            return _response(200, respond(self._admin, endpoint, given))
        except SpendgateError as error:
            return _response(*refusal(error))

    def _elsewhere(self, _: NotFoundError) -> Response[str]:
        event = self._app.current_event
        return _response(*refusal(nowhere(event.http_method, event.path)))

    @staticmethod
    def _told(error: tuple[int, Answer]) -> dict[str, Any]:
        status, document = error
        headers = {"Content-Type": "application/json", **HEADERS}
        return {"statusCode": status, "headers": headers, "body": json.dumps(document), "isBase64Encoded": False}


def admin_path(event: Mapping[str, Any]) -> str:
    """Return the path below the stage, or below a domain's base path: what API Gateway itself has matched."""
    below = (event.get("pathParameters") or {}).get("proxy")
    if below is not None:
        return f"{PREFIX}/{below}"
    stage = (event.get("requestContext") or {}).get("stage")
    return str(event.get("path", "")).removeprefix(f"/{stage}")


def caller(request: Mapping[str, Any]) -> str | None:
    """Return the ARN of the identity that IAM has let in; of one too long for the trail without the path in it."""
    arn = (request.get("identity") or {}).get("userArn")
    if not isinstance(arn, str) or not arn.startswith("arn:") or not arn.isprintable():
        return None
    if len(arn) <= BY_LENGTH_MAX:
        return arn
    first, _, rest = arn.partition("/")
    return f"{first}/{rest.rpartition('/')[2]}"[:BY_LENGTH_MAX]


def _query(event: Mapping[str, Any]) -> list[tuple[str, str]]:
    several = event.get("multiValueQueryStringParameters")
    if several is not None:
        return [(name, text) for name, texts in several.items() for text in texts]
    return list((event.get("queryStringParameters") or {}).items())


def _raw(event: Mapping[str, Any]) -> bytes:
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return str(body).encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestInvalid("the body cannot be decoded") from error


def _header(event: Mapping[str, Any], wanted: str) -> str | None:
    return next((text for name, text in (event.get("headers") or {}).items() if name.lower() == wanted), None)


def _response(status: int, document: Answer) -> Response[str]:
    text = json.dumps(document, ensure_ascii=False)
    if len(text.encode()) > ANSWER_BYTES_MAX:
        message = "the answer is larger than AWS Lambda hands on: ask for less, such as one provider or a lower limit"
        status, text = 413, json.dumps(told(413, "answer_too_large", message)[1])
    return Response(status_code=status, content_type="application/json", body=text, headers=dict(HEADERS))
