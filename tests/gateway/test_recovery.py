"""Asking a provider what became of a call: settled by its own word, and by nothing less."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from spendgate.admin import Admin
from spendgate.admin_models import ReconcileBody
from spendgate.core.bound import Quote
from spendgate.core.budget import Amounts
from spendgate.core.price import Terms
from spendgate.core.reservation import Reservation
from spendgate.core.route import Provider
from spendgate.errors import RequestConflict, RequestInvalid, TransitionIllegal
from spendgate.providers.recovery import Recovered, recover, recoverer
from tests.builders import a_candidate, a_price_row, a_provider, a_reservation
from tests.gateway.stand import Stand, chat
from tests.gateway.test_kinds import key  # noqa: F401 - a fixture

SECRET = "sk-CANARY-recovery"
OPENAI = a_provider(base_url="https://api.openai.com/v1", secret="env:K")
ROUTER = a_provider(base_url="https://openrouter.ai/api/v1", secret="env:K")
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "m",
    "output": [],
    "usage": {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    },
}
GENERATION: dict[str, Any] = {
    "id": "gen/1",
    "total_cost": 0.00015,
    "is_byok": False,
    "upstream_inference_cost": 0.00015,
    "native_tokens_prompt": 10,
    "native_tokens_completion": 25,
    "native_tokens_reasoning": 5,
    "native_tokens_cached": 3,
    "model": "m",
}


def lost(dialect: str, response_id: str | None) -> Reservation:
    quote = Quote(candidate=a_candidate(), rows=(a_price_row(),), terms=Terms())
    one = a_reservation(dialect=dialect, quotes=(quote,))
    return replace(one, state="unknown", provider="demo", model="demo-model", response_id=response_id)


def asked(
    provider: Provider, reservation: Reservation, answer: Callable[[httpx.Request], httpx.Response]
) -> tuple[Recovered, list[httpx.Request]]:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return answer(request)

    return recover(provider, reservation, lambda _: SECRET, httpx.MockTransport(handler)), seen


def test_a_stored_response_tells_what_it_used() -> None:
    found, (request,) = asked(OPENAI, lost("openai-responses", "resp_1"), lambda _: httpx.Response(200, json=RESPONSE))
    assert request.method == "GET"
    assert str(request.url) == "https://api.openai.com/v1/responses/resp_1"
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert found.report is not None
    assert found.report.usage is not None
    usage = found.report.usage
    assert (usage.input_uncached, usage.cache_read, usage.output) == (6, 4, 5)


@pytest.mark.parametrize("dialect", ["openai", "openai-responses"])
def test_a_generation_tells_what_it_cost(dialect: str) -> None:
    found, (request,) = asked(ROUTER, lost(dialect, "gen/1"), lambda _: httpx.Response(200, json={"data": GENERATION}))
    assert str(request.url) == "https://openrouter.ai/api/v1/generation?id=gen%2F1"
    assert found.report is not None
    assert found.report.charge == 150_000_000
    assert found.report.usage is not None
    assert (found.report.usage.input_uncached, found.report.usage.cache_read, found.report.usage.output) == (7, 3, 25)


def test_a_generation_by_a_key_of_one_s_own_cost_the_provider_s_charge_too() -> None:
    own = GENERATION | {"total_cost": 0.00001, "is_byok": True}
    found, _ = asked(ROUTER, lost("openai", "gen/1"), lambda _: httpx.Response(200, json={"data": own}))
    assert found.report is not None
    assert found.report.charge == 160_000_000


@pytest.mark.parametrize(
    "provider, dialect, response_id, document",
    [
        (OPENAI, "openai-responses", "resp_1", RESPONSE | {"status": "in_progress", "usage": None}),
        (OPENAI, "openai-responses", "resp_1", RESPONSE | {"status": "failed", "usage": None}),
        (OPENAI, "openai-responses", "resp_2", RESPONSE),
        (OPENAI, "openai-responses", "resp_1", {"error": {"message": "?"}}),
        (OPENAI, "openai-responses", "resp_1", []),
        (ROUTER, "openai", "gen/1", {"data": GENERATION | {"total_cost": None}}),
        (ROUTER, "openai", "gen/1", {"data": GENERATION | {"native_tokens_prompt": None}}),
        (ROUTER, "openai", "gen/1", {"data": GENERATION | {"id": "gen/2"}}),
        (ROUTER, "openai", "gen/1", {"data": None}),
        (ROUTER, "openai", "gen/1", {}),
    ],
)
def test_a_record_that_is_not_whole_or_of_another_answer_proves_nothing(
    provider: Provider, dialect: str, response_id: str, document: Any
) -> None:
    found, _ = asked(provider, lost(dialect, response_id), lambda _: httpx.Response(200, json=document))
    assert found.report is None
    assert found.said


@pytest.mark.parametrize("status", [302, 401, 404, 429, 500])
def test_anything_but_a_record_proves_nothing_and_is_asked_for_once(status: int) -> None:
    elsewhere = {"location": "https://elsewhere.example.com/"}
    found, seen = asked(
        OPENAI, lost("openai-responses", "resp_1"), lambda _: httpx.Response(status, headers=elsewhere, json=RESPONSE)
    )
    assert found == Recovered(report=None, said=f"provider demo answered {status}")
    assert len(seen) == 1


def test_a_provider_that_is_silent_proves_nothing() -> None:
    def silent(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("silence")

    found, seen = asked(OPENAI, lost("openai-responses", "resp_1"), silent)
    assert found == Recovered(report=None, said="demo did not answer")
    assert len(seen) == 1


@pytest.mark.parametrize(
    "provider, dialect, response_id",
    [(OPENAI, "openai", "chatcmpl-1"), (a_provider(), "openai", "x"), (OPENAI, "openai-responses", None)],
)
def test_without_a_record_or_an_id_nobody_is_asked(provider: Provider, dialect: str, response_id: str | None) -> None:
    found, seen = asked(provider, lost(dialect, response_id), lambda _: httpx.Response(200, json=RESPONSE))
    assert found.report is None
    assert not seen


# --- behind `reconcile`


def cut(stand: Stand, key: str) -> Reservation:  # noqa: F811 - pytest's way to name a fixture
    """Lose an answer of the OpenRouter kind in the middle of its stream."""
    stand.behave("cut", after_frames=3)
    assert stand.post("/v1/chat/completions", chat(model="openrouter", stream=True), key).status_code == 200
    one = stand.ended()
    assert one.state == "unknown"
    assert one.response_id is not None
    return one


def asking(stand: Stand, document: Any, status: int = 200) -> Admin:
    transport = httpx.MockTransport(lambda _: httpx.Response(status, json=document))
    return replace(stand.admin, recover=recoverer(lambda _: SECRET, transport))


def test_a_call_that_was_lost_is_settled_by_the_provider_s_own_word(stand: Stand, key: str) -> None:  # noqa: F811
    one = cut(stand, key)
    admin = asking(stand, {"data": GENERATION | {"id": one.response_id, "total_cost": 0.0001}})
    done = admin.reconcile(one.id, action="ask", cost=None, evidence=None, by="ana")
    assert done["unproven"] is None
    assert done["reservation"]["state"] == "settled"
    assert done["reservation"]["actual"]["usd"] == "0.0001"
    assert done["reservation"]["actual"]["tokens"] == "35"
    assert done["reservation"]["by"] == "ana"
    assert str(one.response_id) in done["reservation"]["evidence"]
    assert not done["exceeds_reserved"]
    state = stand.state()
    assert (state.reserved, state.unknown) == (0, 0)
    assert state.counters["usd.life"] == 100_000_000
    assert SECRET not in stand.tables()
    (event,) = [event for event in stand.admin.events(50)["events"] if event["subject"] == one.id]
    assert (event["kind"], event["by"]) == ("reservation_settled", "ana")
    with pytest.raises(TransitionIllegal, match="already settled"):
        admin.reconcile(one.id, action="ask", cost=None, evidence=None, by="ana")


def test_where_nothing_is_proven_nothing_changes(stand: Stand, key: str) -> None:  # noqa: F811
    one = cut(stand, key)
    done = asking(stand, {}, status=404).reconcile(one.id, action="ask", cost=None, evidence=None, by="ana")
    assert done["unproven"] == "provider openrouter-kind answered 404"
    assert done["reservation"]["state"] == "unknown"
    assert stand.reservation() == one
    with pytest.raises(RequestConflict, match=r"no gateway to ask a provider through.*use spendgate reconcile settle"):
        stand.admin.reconcile(one.id, action="ask", cost=None, evidence=None, by="ana")
    assert stand.reservation() == one
    stand.audited()


def test_a_bill_above_what_was_held_is_booked_and_stops_the_budget(stand: Stand, key: str) -> None:  # noqa: F811
    one = cut(stand, key)
    admin = asking(stand, {"data": GENERATION | {"id": one.response_id, "total_cost": 0.75}})
    done = admin.reconcile(one.id, action="ask", cost=None, evidence=None, by="ana")
    assert done["exceeds_reserved"]
    stop = stand.state().policy.stop
    assert stop is not None
    assert stop.reservation == one.id


def test_asking_takes_neither_a_cost_nor_evidence(stand: Stand, key: str) -> None:  # noqa: F811
    one = cut(stand, key)
    for given in ({"cost": "1", "evidence": None}, {"cost": None, "evidence": "bill"}):
        with pytest.raises(RequestInvalid, match="goes with settle, release or charge"):
            stand.admin.reconcile(one.id, action="ask", by="ana", **given)
    assert ReconcileBody(action="ask").evidence is None
    assert stand.reservation().asked != Amounts()
