"""The head of a request, before anything acts on it: what two readers could understand differently is refused.

The server (h11) has refused what is no HTTP at all: names and values with control characters, a second length, a head that
does not come to its end. Here is what HTTP allows and no client of ours sends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from spendgate.errors import NotFound, RefusalFacts, RequestInvalid

HEADERS_MAX: Final = 100
# API Gateway takes 10,240 bytes at most, and adds some of its own.
HEADERS_BYTES_MAX: Final = 32_768
TARGET_BYTES_MAX: Final = 4096
REQUEST_ID_BYTES: Final = 16
# The adapter puts API Gateway's request context here, over whatever a caller sent.
REQUEST_CONTEXT_HEADER: Final = "x-amzn-request-context"

# Read, and so of one value each: of two, the next reader may take the other.
SINGLE: Final = frozenset(
    {"authorization", "x-api-key", "api-key", "x-goog-api-key", "idempotency-key", "host"}
    | {"content-type", "content-length", "content-encoding", "transfer-encoding", "anthropic-version"}
    | {"x-amzn-lambda-context", REQUEST_CONTEXT_HEADER}
)
_SINGLE_PREFIX: Final = "x-spendgate-"
# Printable ASCII: nothing that is passed on can end a line, or mean another character elsewhere.
_VALUE: Final = re.compile(rb"[\t -~]*")
# Encoded, only what a model's name may hold (":" and, in a name of Amazon's, "/"): no dot, no slash back, no NUL, no "%".
_PATH: Final = re.compile(rb"(?:/(?!\.{1,2}(?:/|\Z))(?:[A-Za-z0-9._~:@!$&'()*+,=-]|%3[Aa]|%2[Ff]|%40|%2[Bb])+)*/?")
_SLASH_ENCODED: Final = re.compile(rb"%2[Ff]")
_NAMED_PREFIXES: Final = (b"/model/", b"/v1beta/models/", b"/admin/")
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)


def check_head(scope: Mapping[str, Any]) -> None:
    """Raise RequestInvalid, or NotFound, for a head that could be read in two ways or is larger than any client's."""
    raw: Sequence[tuple[bytes, bytes]] = scope["headers"]
    if len(raw) > HEADERS_MAX:
        raise _invalid(f"the request has more than {HEADERS_MAX} headers")
    if sum(len(name) + len(value) for name, value in raw) > HEADERS_BYTES_MAX:
        raise _invalid(f"the headers are larger than {HEADERS_BYTES_MAX} bytes")
    names = [name.decode("latin-1").lower() for name, _ in raw]
    twice = [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []
    for name in twice:
        if name in SINGLE or name.startswith(_SINGLE_PREFIX):
            raise _invalid(f"the request has header {name} more than once", name)
    if "content-length" in names and "transfer-encoding" in names:
        raise _invalid("the request has two lengths", "transfer-encoding")
    if _VALUE.fullmatch(b"".join(value for _, value in raw)) is None:
        wrong = next(name for name, (_, value) in zip(names, raw, strict=True) if _VALUE.fullmatch(value) is None)
        raise _invalid("a header has a character that is not printable ASCII", wrong[:64])
    _check_target(scope.get("raw_path") or scope["path"].encode(), scope["query_string"])


def headers_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers by their names in small letters; a list in several lines is one list."""
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def request_id_of(scope: Mapping[str, Any], *, trusted: bool, randomness: Callable[[int], bytes]) -> str:
    """Return API Gateway's id of a request where an adapter that is trusted tells it, else a new one."""
    if trusted:
        for name, value in scope["headers"]:
            if name.decode("latin-1").lower() == REQUEST_CONTEXT_HEADER:
                told = _told_id(value)
                if told is not None:
                    return told
    return randomness(REQUEST_ID_BYTES).hex()


def _told_id(value: bytes) -> str | None:
    try:
        told = json.loads(value)["requestId"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return told if isinstance(told, str) and _REQUEST_ID.fullmatch(told) else None


def _check_target(path: bytes, query: bytes) -> None:
    if len(path) + len(query) > TARGET_BYTES_MAX:
        raise _invalid(f"the path and query are longer than {TARGET_BYTES_MAX} bytes")
    is_named = path.startswith(_NAMED_PREFIXES)
    if _PATH.fullmatch(path) is None or (_SLASH_ENCODED.search(path) and not is_named):
        # A path that could be read as another one is none of ours.
        raise NotFound("there is no such path", facts=RefusalFacts(next_action="docs/api.md lists the paths"))
    names = [part.partition(b"=")[0] for part in query.split(b"&")]
    if _VALUE.fullmatch(query) is None or len(set(names)) != len(names):
        raise _invalid("the query has a name more than once, or a character that is not printable ASCII")


def _invalid(message: str, field: str | None = None) -> RequestInvalid:
    return RequestInvalid(message, facts=RefusalFacts(field=field, next_action="send the request as an SDK would"))
