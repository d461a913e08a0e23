"""The provider's id of a streamed answer, kept as soon as it is shown: what a gateway that dies leaves to ask with."""

import httpx
import pytest

from tests.gateway.stand import NO_TLS, Stand, chat
from tests.gateway.test_kinds import key  # noqa: F401 - a fixture
from tests.gateway.test_outcomes import ended, settled

# What a call may last: those that hang end then.
SETTINGS = {"call_seconds_max": 3}


def test_the_id_stands_on_the_reservation_while_the_answer_still_comes(stand: Stand, key: str) -> None:  # noqa: F811
    """B41: whatever becomes of a gateway afterwards, the provider can be asked."""
    stand.behave("slow", between_seconds=0.1)
    url, headers = f"{stand.url}/v1/chat/completions", {"authorization": f"Bearer {key}"}
    body = chat(model="openrouter", stream=True)
    with (
        httpx.Client(trust_env=False, verify=NO_TLS) as http,
        http.stream("POST", url, json=body, headers=headers) as answer,
    ):
        stand.until(lambda: stand.reservation().response_id is not None)
        one = stand.reservation()
        answer.read()
    assert (one.state, one.provider, one.model) == ("in_flight", "openrouter-kind", "demo")
    settled(stand)
    assert stand.reservation().response_id == one.response_id
    assert stand.store.operations.count("UpdateItem") == 1


@pytest.mark.parametrize("kind", ["openai", "compatible", "xai"])
def test_where_nobody_can_be_asked_nothing_is_written(stand: Stand, key: str, kind: str) -> None:  # noqa: F811
    response = stand.chat(key, model=kind, stream=True)
    assert ended(stand, response).state == "settled"
    assert "UpdateItem" not in stand.store.operations


def test_an_id_that_the_store_does_not_take_costs_the_call_nothing(stand: Stand, key: str) -> None:  # noqa: F811
    with stand.store.failing(lambda operation: operation == "UpdateItem"):
        response = stand.chat(key, model="openrouter", stream=True)
        assert response.text.endswith("data: [DONE]\n\n")
        settled(stand)
        stand.until(lambda: "an answer's id was not kept" in stand.log.getvalue())
    assert stand.store.operations.count("UpdateItem") == 1
    assert stand.reservation().response_id is not None


def test_an_id_that_comes_after_the_settlement_changes_nothing(stand: Stand, key: str) -> None:  # noqa: F811
    response = stand.chat(key, model="openrouter", stream=True)
    one = ended(stand, response)
    assert one.state == "settled"
    assert not stand.reader.show(one, one.quotes[0].candidate, "gen-other")
    assert stand.reservation() == one
    stand.audited()
