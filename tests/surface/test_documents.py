"""The gateway's document says what is answered: each refusal in each family's shape, its status, its code and its headers."""

import re
from itertools import product
from typing import Any, Final, get_args

import pytest
from pydantic import ValidationError

from spendgate.asgi import refusal
from spendgate.dialects.registry import DIALECTS, FAMILIES
from spendgate.errors import RefusalFacts, Refused
from tests.surface.checks import gateway_answer, reader
from tests.surface.site import operations
from tools.gateway_answers import REFUSALS, Code
from tools.gateway_openapi import codes_of, document

KINDS: Final = Refused.__subclasses__()
WRITTEN: Final = document()
EVERYTHING: Final = RefusalFacts(
    budget="acme/search",
    measure="usd",
    window="day",
    maximum="40",
    settled="39.0000001",
    reserved="0.5",
    unknown="0",
    asked="1.25",
    resets_at="2026-12-01T00:00:00Z",
    fits_output_tokens=12,
    next_action="wait",
    reservation="01M8N6BCAPYB5EYHMJXTSZP3QQ",
    state="settled",
    field="messages[0].content",
)
PATHS: Final = {
    "openai": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/{model}:generateContent",
    "bedrock": "/model/{model}/converse",
}


def _answer(name: str, refused: Refused) -> tuple[int, dict[str, str], Any]:
    answer = refusal(DIALECTS[name], refused, "r1")
    return answer.status_code, dict(answer.headers), reader(dict[str, Any]).validate_json(bytes(answer.body))


@pytest.mark.parametrize("name", DIALECTS)
def test_every_refusal_is_in_the_shape_of_its_family_and_has_a_status_of_the_document(name: str) -> None:
    path = PATHS[DIALECTS[name].family]
    for kind, facts in product(KINDS, (RefusalFacts(), EVERYTHING)):
        for status in (502, 504) if kind.code == "outcome_unknown" else (None,):
            answered = _answer(name, kind("x", facts=facts, retry_after_seconds=3, status=status))
            gateway_answer("POST", path, *answered)
            assert str(answered[0]) in WRITTEN["paths"][path]["post"]["responses"]


@pytest.mark.parametrize("family", REFUSALS)
def test_a_refusal_with_another_member_or_with_money_as_a_number_is_none_of_its_shape(family: str) -> None:
    name = next(name for name, one in DIALECTS.items() if one.family == family)
    status, headers, told = _answer(name, KINDS[0]("x", facts=EVERYTHING))
    for spoilt in (told | {"more": 1}, _with_number(told)):
        with pytest.raises(ValidationError):
            gateway_answer("POST", PATHS[family], status, headers, spoilt)


def test_a_refusal_in_a_status_that_its_code_does_not_have_or_without_its_headers_is_found() -> None:
    status, headers, told = _answer("openai", KINDS[0]("x"))
    with pytest.raises(AssertionError):
        gateway_answer("POST", "/v1/chat/completions", 429, headers, told)
    del headers["x-should-retry"]
    with pytest.raises(KeyError):
        gateway_answer("POST", "/v1/chat/completions", status, headers, told)


def test_the_document_has_every_code_and_every_family_and_refers_to_nothing_that_is_not_there() -> None:
    assert set(get_args(Code)) == {kind.code for kind in KINDS}
    assert set(REFUSALS) == set(FAMILIES)
    for family in REFUSALS:
        assert {code for codes in codes_of(family).values() for code in codes} == {kind.code for kind in KINDS}
    references = set(re.findall(r"'#/components/(\w+)/([\w.-]+)'", repr(WRITTEN)))
    assert [one for one in references if one[1] not in WRITTEN["components"][one[0]]] == []
    named = {operation["operationId"] for _, _, operation in operations(WRITTEN)}
    links = re.findall(r"'operationId': '(\w+)', 'parameters': \{'", repr(WRITTEN))
    assert set(links) <= named


def _with_number(value: Any) -> Any:
    """Return a document with its amounts of money as numbers."""
    if isinstance(value, dict):
        return {name: 0.5 if name == "asked" else _with_number(one) for name, one in value.items()}
    return [_with_number(one) for one in value] if isinstance(value, list) else value
