"""Refusals reach the caller of each official client once, typed, with the same facts in all."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from spendgate import errors
from spendgate.dialects import anthropic_messages, openai_chat, openai_common
from spendgate.dialects.registry import DIALECTS, ENTRIES
from spendgate.errors import BudgetBusy, OverBudget, RefusalFacts, Refused
from tests.dialects.builders import chunk, events, message_stream

REFUSED = OverBudget(
    "acme/search has 0.01 USD left today, the call may cost 0.02 USD.",
    facts=RefusalFacts(
        budget="acme/search",
        measure="usd",
        window="day",
        maximum="1",
        settled="0.9",
        reserved="0.09",
        unknown="0",
        asked="0.02",
        resets_at="2026-12-01T00:00:00Z",
        fits_output_tokens=40,
        next_action="Wait, or ask for a larger budget.",
        reservation="01J",
    ),
)
FACTS: dict[str, Any] = {
    "code": "over_budget",
    "retryable": False,
    "budget": "acme/search",
    "limit": {"measure": "usd", "window": "day", "maximum": "1"},
    "settled": "0.9",
    "reserved": "0.09",
    "unknown": "0",
    "asked": "0.02",
    "resets_at": "2026-12-01T00:00:00Z",
    "fits": {"max_output_tokens": 40},
    "next_action": "Wait, or ask for a larger budget.",
    "reservation": "01J",
}


def every_refusal() -> Iterator[type[Refused]]:
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, Refused) and value is not Refused:
            yield value


def facts_in(dialect: str, document: dict[str, Any]) -> dict[str, Any]:
    details: dict[str, Any]
    match DIALECTS[dialect].family:
        case "anthropic":
            details = document["error"]["details"]
        case "gemini":
            (details,) = document["error"]["details"]
        case "bedrock":
            details = document["details"]
        case _:
            details = document["error"]
    return details


def test_the_dialects_are_known_by_their_names() -> None:
    assert set(DIALECTS) >= {"openai", "anthropic", "gemini", "gemini-stream"}
    assert [ENTRIES[name].paths for name in ("openai", "anthropic")] == [("/v1/chat/completions",), ("/v1/messages",)]


@pytest.mark.parametrize("name", DIALECTS)
def test_what_is_known_of_a_dialect_before_it_is_loaded_is_so(name: str) -> None:
    entry, dialect = ENTRIES[name], DIALECTS[name]
    assert (dialect.name, dialect.family, len(dialect.free)) == (name, entry.family, len(entry.free_paths))


def test_a_dialect_is_loaded_when_it_is_asked_for() -> None:
    program = (
        "import sys, spendgate.asgi\nprint(*(name for name in sys.modules if name.startswith('spendgate.dialects.')))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {name.rpartition(".")[2] for name in ran.stdout.split()} & {one.module for one in ENTRIES.values()} == set()


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_the_same_facts_are_in_every_dialect(dialect: str) -> None:
    document = DIALECTS[dialect].refusal(REFUSED, "req_1")

    assert facts_in(dialect, document).items() >= FACTS.items()
    message = document["message"] if DIALECTS[dialect].family == "bedrock" else document["error"]["message"]
    assert f"{str(REFUSED).removesuffix('.')}. Next: {REFUSED.facts.next_action}" in message
    assert "req_1" in (document.get("request_id"), facts_in(dialect, document).get("request_id"))


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@pytest.mark.parametrize("kind", list(every_refusal()))
def test_a_fact_that_does_not_apply_is_null_and_one_that_was_not_set_is_absent(
    dialect: str, kind: type[Refused]
) -> None:
    document = facts_in(dialect, DIALECTS[dialect].refusal(kind("Why."), "req_1"))

    assert FACTS.keys() - {"reservation"} <= document.keys()
    assert (document["code"], document["retryable"]) == (kind.code, kind.retryable)
    assert [document[key] for key in ("budget", "limit", "asked", "fits", "next_action")] == [None] * 5
    assert not document.keys() & {"reservation", "state", "field"}
    assert json.dumps(document)


@pytest.mark.parametrize(
    "kind,openai_type,anthropic_type",
    [
        (errors.RequestInvalid, "invalid_request_error", "invalid_request_error"),
        (errors.KeyInvalid, "authentication_error", "authentication_error"),
        (errors.OverBudget, "spend_limit", "billing_error"),
        (errors.ModelNotAllowed, "permission_error", "permission_error"),
        (errors.NotFound, "not_found_error", "not_found_error"),
        (errors.DuplicateRequest, "conflict_error", "invalid_request_error"),
        (errors.BudgetBusy, "rate_limit_error", "rate_limit_error"),
        (errors.OutcomeUnknown, "server_error", "api_error"),
    ],
)
def test_an_error_has_the_type_that_its_dialect_uses(
    kind: type[Refused], openai_type: str, anthropic_type: str
) -> None:
    assert openai_common.refusal(kind("Why."), "r")["error"]["type"] == openai_type
    assert anthropic_messages.refusal(kind("Why."), "r")["error"]["type"] == anthropic_type


def test_a_refused_field_is_openais_param() -> None:
    refused = errors.RequestInvalid("n must be a number.", facts=RefusalFacts(field="n"))

    assert openai_common.refusal(refused, "r")["error"]["param"] == "n"


class Gateway:
    """Answers the real clients and counts their requests."""

    def __init__(self, answer: Callable[[], httpx2.Response]) -> None:
        self.requests = 0
        self._answer = answer
        self.transport = httpx2.Client(transport=httpx2.MockTransport(self._handle))

    def _handle(self, _request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        return self._answer()

    def openai(self) -> openai.OpenAI:
        return openai.OpenAI(api_key="k", base_url="http://127.0.0.1/v1", http_client=self.transport)

    def anthropic(self) -> anthropic.Anthropic:
        return anthropic.Anthropic(api_key="k", base_url="http://127.0.0.1", http_client=self.transport)


def refusing(dialect: str) -> Gateway:
    document = DIALECTS[dialect].refusal(REFUSED, "req_1")
    return Gateway(lambda: httpx2.Response(402, json=document, headers={"x-should-retry": "false"}))


def streaming(stream: bytes) -> Gateway:
    return Gateway(lambda: httpx2.Response(200, content=stream, headers={"content-type": "text/event-stream"}))


def test_openais_client_raises_a_typed_error_once_with_the_facts() -> None:
    gateway = refusing("openai")
    client = gateway.openai()

    with pytest.raises(openai.APIStatusError) as raised:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])

    assert isinstance(raised.value.body, dict)
    assert raised.value.body.items() >= FACTS.items()
    assert (raised.value.status_code, raised.value.code, gateway.requests) == (402, "over_budget", 1)


def test_anthropics_client_raises_a_typed_error_once_with_the_facts() -> None:
    gateway = refusing("anthropic")
    client = gateway.anthropic()

    with pytest.raises(anthropic.APIStatusError) as raised:
        client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "x"}])

    assert isinstance(raised.value.body, dict)
    assert raised.value.body["error"]["details"].items() >= FACTS.items()
    assert (raised.value.status_code, raised.value.body["request_id"], gateway.requests) == (402, "req_1", 1)


@pytest.mark.parametrize("cut", [b"", b'data: {"id": "c'])
def test_openais_client_raises_an_error_in_a_stream_that_has_begun(cut: bytes) -> None:
    first = events(chunk("hi", object="chat.completion.chunk", created=1))
    # A meter passes whole frames only, so nothing of the cut one is before the error.
    meter = openai_chat.DIALECT.meter(
        openai_chat.read({"model": "m", "messages": [{"role": "user", "content": "x"}]}, {}, "")
    )
    flowed = meter.feed(first + cut) + meter.end()
    gateway = streaming(flowed + openai_common.stream_error(BudgetBusy("Cut."), "req_1"))
    stream = gateway.openai().chat.completions.create(
        model="m", messages=[{"role": "user", "content": "x"}], stream=True
    )

    assert next(stream).choices[0].delta.content == "hi"
    with pytest.raises(openai.APIError, match=r"Cut\.") as raised:
        next(stream)

    assert raised.value.code == "budget_busy"


def test_anthropics_client_raises_an_error_in_a_stream_that_has_begun() -> None:
    start = {"input_tokens": 1, "output_tokens": 1}
    begun = message_stream(start=start, delta={"output_tokens": 2}, stop=False)
    gateway = streaming(begun + anthropic_messages.stream_error(BudgetBusy("Cut."), "req_1"))
    stream = gateway.anthropic().messages.create(
        model="m", max_tokens=5, messages=[{"role": "user", "content": "x"}], stream=True
    )

    with pytest.raises(anthropic.APIStatusError) as raised:
        list(stream)

    assert isinstance(raised.value.body, dict)
    assert raised.value.body["error"]["details"]["code"] == "budget_busy"
