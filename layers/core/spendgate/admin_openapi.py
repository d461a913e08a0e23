"""The admin API's OpenAPI document, made from the table of its endpoints, so that it says what is answered."""

import re
from collections.abc import Iterable
from typing import Any, Final

from pydantic.json_schema import models_json_schema

from spendgate import __version__
from spendgate.admin_models import Endpoint

_NAMES: Final = re.compile(r"\{(\w+)\}")
_REF: Final = "#/components/schemas/{model}"
_JSON: Final = "application/json"
# By status: what the caller does about it.
_ERRORS: Final = {
    "400": "The request is wrong; `field` says where.",
    "401": "A local gateway: the token is missing or wrong.",
    "403": "IAM does not allow the caller to invoke this, or nothing says who calls.",
    "404": "There is no such thing.",
    "409": "Things are not as the caller thinks: somebody was faster, or it is done already.",
    "422": "The configuration is wrong; `problems` has every one with its line.",
    "500": "A defect of the gateway; its log has the details.",
    "413": "Deployed: the answer is larger than AWS Lambda hands on; ask for less.",
    "503": "The store does not answer.",
}
_ERROR: Final = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string", "description": "A stable word."},
                "message": {"type": "string", "description": "A sentence for a person."},
                "field": {"type": "string"},
                "problems": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["place", "message", "line"],
                        "properties": {
                            "place": {"type": "string"},
                            "message": {"type": "string"},
                            "line": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                        },
                    },
                },
            },
        }
    },
}


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the document."""
    endpoints = tuple(endpoints)
    models = dict.fromkeys(one.body for one in endpoints if one.body is not None)
    _, schemas = models_json_schema([(model, "validation") for model in models], ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(f"/admin{one.path}", {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Spendgate for operators",
            "version": __version__,
            "description": "Money is an exact decimal string in USD, times are UTC. Deployed, a request is signed with "
            "SigV4 (service execute-api) and IAM decides; locally it carries the gateway's token.",
        },
        "servers": [{"url": "/", "description": "The API's stage, or the local gateway."}],
        "security": [{"sigv4": []}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": {**schemas.get("$defs", {}), "Error": _ERROR},
            "responses": {
                status: {"description": text, "content": {_JSON: {"schema": {"$ref": _REF.format(model="Error")}}}}
                for status, text in _ERRORS.items()
            },
            "securitySchemes": {
                "sigv4": {
                    "type": "apiKey",
                    "name": "Authorization",
                    "in": "header",
                    "x-amazon-apigateway-authtype": "awsSigv4",
                },
                "token": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _NAMES.findall(endpoint.path)
    ]
    parameters += [
        {
            "name": one.name,
            "in": "query",
            "required": False,
            "description": one.description,
            "schema": {"type": "string"} if one.number is None else {"type": "integer", "default": one.number},
        }
        for one in endpoint.query
    ]
    operation: dict[str, Any] = {"operationId": endpoint.name, "summary": endpoint.summary}
    if parameters:
        operation["parameters"] = parameters
    if endpoint.body is not None:
        schema = {"$ref": _REF.format(model=endpoint.body.__name__)}
        operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": schema}}}
    done = {"description": endpoint.summary, "content": {_JSON: {"schema": {"type": "object"}}}}
    errors = {status: {"$ref": f"#/components/responses/{status}"} for status in _ERRORS}
    return {**operation, "responses": {"200": done, **errors}}
