"""The gateway and the admin API on loopback with their OpenAPI documents, for whoever makes up requests from these."""

from __future__ import annotations

import copy
import io
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from starlette.applications import Starlette

from spendgate.asgi import create_app
from spendgate.local.admin_api import admin_routes
from spendgate.local.serving import served
from spendgate.observability import JsonLog
from tests.gateway.stand import FILE, Stand
from tests.simulation.memory_store import MemoryStore
from tests.surface.checks import Check, admin_answer, gateway_answer

ROOT: Final = Path(__file__).parents[2]
TOKEN: Final = "a-token-of-the-tests"
METHODS: Final = ("get", "post", "delete", "put", "patch")
TEXT_LENGTH_MAX: Final = 24
_LIMITED: Final = "{usd: {day: 1000000, request: 1000}}"
BUDGETS: Final = f"$: {{limits: {_LIMITED}, runs: {{limits: {_LIMITED}, expire_after: 24h, delegate: 1}}}}\n$/low: {{limits: {_LIMITED}}}"
KEYS: Final = "$-key: {budget: $}\n$-other: {budget: $/low}"
# What a request may name that is there; the rest of what is made up is not.
MODELS: Final = {
    "/v1/messages": ("claude", "claude-at-bedrock"),
    "/model/": ("us.anthropic.claude-demo-v1:0",),
    "/v1/embeddings": ("gpt",),
    "mbedContent": ("embed",),
    "/models/": ("gemini", "seeing"),
    "/v1/": ("gpt", "two"),
}
_PRICES: Final = 'prices:\n  - {provider: gpt-host, model: new, input: "1", output: "2", from: 2026-01-01}\n'


class Memory(MemoryStore):
    """A store in this process, as a stand takes it: thousands of requests to an emulator are mostly the emulator's time."""

    meta = SimpleNamespace(events=SimpleNamespace(register=lambda *_: None))

    def __init__(self) -> None:
        super().__init__(lambda: datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class Site:
    """One HTTP surface: where it is, its document with real names put in, and the headers that open it."""

    stand: Stand
    url: str
    document: dict[str, Any]
    headers: Mapping[str, str]
    log: io.StringIO
    check: Check

    def unheard_of(self) -> str | None:
        """Return what no input may cause, where it has happened: a fault in the log, or a reservation without an end."""
        said = self.log.getvalue() + self.stand.log.getvalue()
        if "Traceback" in said or "for a reason of ours" in said or "call failed" in said:
            return said[-4000:]
        open_ones = [one.id for one in self.stand.reservations() if one.state == "in_flight"]
        return f"in flight: {open_ones}" if open_ones else None


def gateway_site(stand: Stand) -> Site:
    """Return the gateway's surface, with a key to all of its budgets."""
    secrets = stand.open_all(BUDGETS, KEYS)
    made = stand.post("/v1/runs", {"run": "known"}, secrets[f"{stand.root}-key"])
    assert made.status_code == 201, made.text
    reservation = stand.chat(secrets[f"{stand.root}-key"]).headers["x-spendgate-reservation"]
    document = _named("gateway", {"run": ("known",), "x-spendgate-run": ("known", "r1"), "id": (reservation,)})
    for _, path, operation in operations(document):
        models = next((names for part, names in MODELS.items() if part in path), ())
        # Choices of so few that an answer stays short.
        named: dict[str, Sequence[Any]] = {"model": models, "n": (1, 2)}
        _put(document, operation, named)
        if "batchEmbed" in path:
            content = operation["requestBody"]["content"]["application/json"]
            content["schema"]["properties"]["requests"]["items"]["properties"]["model"] = {"enum": ["models/embed"]}
    headers = {"authorization": f"Bearer {secrets[f'{stand.root}-key']}"}
    return Site(stand, stand.url, document, headers, io.StringIO(), gateway_answer)


@contextmanager
def admin_site(stand: Stand, *, whole: bool = False) -> Iterator[Site]:
    """Serve the admin API of a gateway that has had a few calls; ``whole``: in one application with it, as a local run does."""
    key = stand.open_all(BUDGETS, KEYS)[f"{stand.root}-key"]
    stand.chat(key)
    stand.behave("silent_close")
    stand.chat(key)
    stand.until(lambda: all(one.state != "in_flight" for one in stand.reservations()))
    file = FILE.replace("URL", stand.provider_url)
    budgets = (stand.root, f"{stand.root}/low")
    document = _named(
        "admin",
        {
            "path": budgets,
            "budget": budgets,
            "name": (f"{stand.root}-other", "new"),
            "id": [one.id for one in stand.reservations()],
            "action": ("settle", "release", "charge", "ask"),
            "cost": ("0.01",),
            "state": ("settled", "unknown"),
            "file": (file, f"{file}budgets:\n  {stand.root}: {{limits: {{usd: {{day: 5}}}}}}\n", _PRICES),
        },
    )
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger("spendgate").addHandler(handler)
    routes = tuple(admin_routes(stand.admin, TOKEN))
    wired, said = stand.wired, JsonLog(stream=log)
    app = (
        create_app(wired.gateway, settings=stand.settings, log=said, routes=routes)
        if whole
        else Starlette(routes=routes)
    )
    serving = served(app)
    url = stand.run(serving.__aenter__())
    try:
        yield Site(stand, url, document, {"authorization": f"Bearer {TOKEN}"}, log, admin_answer)
    finally:
        stand.run(serving.__aexit__(None, None, None))
        logging.getLogger("spendgate").removeHandler(handler)


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Return method, path and description of every operation."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield method.upper(), path, item[method]


def _named(name: str, known: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return a document whose fields and parameters of these names have a value that is there."""
    document: dict[str, Any] = json.loads((ROOT / "docs" / f"{name}-openapi.json").read_text(encoding="utf-8"))
    # Whoever makes up keys beside the one that opens the surface is refused for having two of them.
    del document["security"], document["components"]["securitySchemes"]
    for _, _, operation in operations(document):
        _put(document, operation, known)
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]["application/json"]
            content["schema"] = _bounded(_whole(content["schema"], document))
    return document


def _whole(schema: Any, document: Mapping[str, Any]) -> Any:
    """Return a schema with what it refers to put in."""
    if isinstance(schema, dict) and "$ref" in schema:
        return _whole(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    if isinstance(schema, dict):
        return {name: _whole(one, document) for name, one in schema.items()}
    return [_whole(one, document) for one in schema] if isinstance(schema, list) else schema


def _bounded(schema: Any) -> Any:
    """Return a schema without the members that it does not name: the gateway refuses these, whatever they are.

    Left open, nine of ten members of what is made up are of that kind, deep, slow to make, and refused at the first of them.
    What goes against the document has them still.
    """
    if isinstance(schema, list):
        return [_bounded(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _bounded(one) for name, one in schema.items()}
    match found.get("type"):
        case "object" if isinstance(found.get("properties"), dict):
            found["additionalProperties"] = False
        case "object" if "additionalProperties" not in found:
            found |= {"additionalProperties": {"type": "string", "maxLength": TEXT_LENGTH_MAX}, "maxProperties": 2}
        case "array":
            found["maxItems"] = 3
        case "string" if not found.keys() & {"enum", "pattern"}:
            found["maxLength"] = TEXT_LENGTH_MAX
    return found


def _put(document: dict[str, Any], operation: dict[str, Any], known: Mapping[str, Sequence[Any]]) -> None:
    """Let an operation take these values only; whoever goes against the document sends others."""
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in known:
            parameter["schema"] = {"enum": list(known[parameter["name"]])}
    if "requestBody" not in operation:
        return
    content = operation["requestBody"]["content"]["application/json"]
    if "$ref" in content["schema"]:
        content["schema"] = copy.deepcopy(
            document["components"]["schemas"][content["schema"]["$ref"].rpartition("/")[2]]
        )
    properties = content["schema"].get("properties", {})
    for field in properties.keys() & known.keys():
        nullable = {"type": "null"} in properties[field].get("anyOf", ())
        properties[field] = {"enum": [*known[field], *([None] if nullable else [])]}
