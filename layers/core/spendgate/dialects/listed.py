"""Fields and betas that an operator has listed as free: they travel as they stand, and count as JSON.

A provider adds them faster than lists are read again. Only what no list knows can be listed so: a field that a dialect
reads, or refuses by name, stays what it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from spendgate.core.route import Provider
from spendgate.dialects.dialect import ReadRequest, Request
from spendgate.dialects.measure import json_bytes
from spendgate.errors import FieldUnlisted

_BETA_HEADER: Final = "anthropic-beta"


@dataclass(frozen=True, slots=True)
class Listed:
    """The names of top-level fields and of betas that every provider of a route has listed."""

    fields: frozenset[str] = frozenset()
    betas: frozenset[str] = frozenset()


def listed_by_all(providers: Sequence[Provider]) -> Listed:
    """Return what every one of several providers has listed: the call may go to any of them."""
    fields = [frozenset(provider.free_fields) for provider in providers]
    betas = [frozenset(provider.free_betas) for provider in providers]
    return Listed(fields=frozenset.intersection(*fields), betas=frozenset.intersection(*betas))


def read_listed(
    read: ReadRequest,
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    query: str,
    path: Mapping[str, str],
    *,
    listed: Listed,
) -> Request:
    """Return the request; FieldUnlisted for a name that is not in ``listed`` either."""
    left = dict(body)
    betas: list[str] = []
    # Each round takes one name out that was refused, and there are only so many.
    while True:
        try:
            request = read(left, _without(headers, betas), query, path)
        except FieldUnlisted as refused:
            if refused.setting == "free_betas" and refused.name in listed.betas and refused.name not in betas:
                betas.append(refused.name)
            elif refused.setting == "free_fields" and refused.name in listed.fields and refused.name in left:
                del left[refused.name]
            else:
                raise
        else:
            return _with_listed(request, {name: body[name] for name in body.keys() - left.keys()}, betas)


def _without(headers: Mapping[str, str], betas: list[str]) -> Mapping[str, str]:
    if not betas:
        return headers
    return {
        name: _beta_names(value, betas) if name.lower() == _BETA_HEADER else value for name, value in headers.items()
    }


def _beta_names(value: str, without: list[str]) -> str:
    names = (name.strip() for name in value.split(","))
    return ",".join(name for name in names if name and name not in without)


def _with_listed(request: Request, found: dict[str, Any], betas: list[str]) -> Request:
    facts = request.facts
    if found:
        facts = replace(facts, json_bytes=facts.json_bytes + json_bytes(found))
    headers = dict(request.headers)
    if betas:
        headers[_BETA_HEADER] = ",".join([*filter(None, [headers.get(_BETA_HEADER)]), *betas])
    return replace(request, facts=facts, body={**request.body, **found}, headers=tuple(headers.items()))
