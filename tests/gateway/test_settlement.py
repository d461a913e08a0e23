"""When the money is settled: before the last byte, or later where the store fails, and never twice."""

from collections.abc import Callable
from typing import Any

import pytest

from spendgate.core.money import usd_text
from spendgate.local.settlements import Settlements
from spendgate.observability import JsonLog
from tests.gateway.stand import Stand, facts

# Short, so that a store that cannot be reached is soon given up.
SETTINGS = {"ledger_deadline_seconds": 1}

ROOMY = "$: {limits: {usd: {day: 1}}}"
HELLO: Any = [{"role": "user", "content": "Hello"}]

both = pytest.mark.parametrize("dialect", ["openai", "anthropic"])
whole_or_not = pytest.mark.parametrize("stream", [False, True])


def after_the_reservation() -> Callable[[str], bool]:
    """Let the first transaction pass and fail every further one."""
    seen: list[str] = []

    def failing(operation: str) -> bool:
        seen.append(operation)
        return seen.count("TransactWriteItems") > 1

    return failing


def test_the_ledger_shows_the_cost_when_the_openai_client_sees_its_last_chunk(stand: Stand) -> None:
    seen: list[str] = []
    with stand.openai(stand.open(ROOMY)) as client:
        stream = client.chat.completions.create(model="gpt", messages=HELLO, max_completion_tokens=20, stream=True)
        for _ in stream:
            pass
        # The client stops at [DONE], which it was sent after the settlement.
        seen.append(stand.reservation().state)
    assert seen == ["settled"]


def test_the_ledger_shows_the_cost_when_the_anthropic_client_sees_message_stop(stand: Stand) -> None:
    seen: dict[str, str] = {}
    with stand.anthropic(stand.open(ROOMY)) as client:
        stream = client.messages.create(model="claude", messages=HELLO, max_tokens=20, stream=True)
        for event in stream:
            if event.type in {"message_start", "message_stop"}:
                seen[event.type] = stand.reservation().state
    assert seen["message_stop"] == "settled"


@both
def test_the_last_frame_of_a_stream_waits_for_the_settlement(stand: Stand, dialect: str) -> None:
    end = b"[DONE]" if dialect == "openai" else b"message_stop"
    key = stand.open(ROOMY)
    found: list[tuple[bool, int]] = []

    def settling(operation: str) -> bool:
        if operation == "TransactWriteItems":
            found.append((any(end in piece for piece in sent), len(sent)))
        return False

    sent: list[bytes] = stand.gateway.sent
    with stand.store.failing(settling):
        assert stand.call(dialect, key, stream=True).status_code == 200
    assert [ended for ended, _ in found] == [False, False]
    # The frames before it did not wait.
    assert found[1][1] > found[0][1]
    assert end in sent[-1] or end in sent[-2]


@both
def test_the_headers_of_a_whole_answer_tell_the_cost_that_ledger_and_provider_agree_on(
    stand: Stand, dialect: str
) -> None:
    response = stand.call(dialect, stand.open(ROOMY))
    one = stand.reservation()
    assert one.actual is not None
    assert response.headers["x-spendgate-reservation"] == one.id
    assert response.headers["x-spendgate-reserved-usd"] == usd_text(one.asked.usd) == "0.0002325"
    assert response.headers["x-spendgate-cost-usd"] == usd_text(one.actual.usd)
    assert one.actual.usd == stand.book.billed_picodollars
    assert response.headers["x-spendgate-provider"] == ("gpt-host" if dialect == "openai" else "claude-host")
    assert response.headers["x-spendgate-model"] == "demo"
    assert response.headers["x-spendgate-state"] == "settled"


@both
def test_the_headers_of_a_stream_tell_what_is_known_before_it_begins(stand: Stand, dialect: str) -> None:
    response = stand.call(dialect, stand.open(ROOMY), stream=True)
    assert response.headers["x-spendgate-reservation"] == stand.reservation().id
    assert response.headers["x-spendgate-reserved-usd"] == "0.0002325"
    assert "x-spendgate-cost-usd" not in response.headers


def test_a_settlement_writes_one_usage_record_of_the_day(stand: Stand) -> None:
    key = stand.open(ROOMY)
    for _ in range(2):
        stand.chat(key)
    (record,) = stand.reader.usage_records(stand.root)
    assert record["calls"] == 2
    assert record["cost"] == stand.book.billed_picodollars


# --- a store that cannot be reached


@both
def test_a_store_that_cannot_be_reached_is_a_503_and_nothing_is_sent(stand: Stand, dialect: str) -> None:
    """B60, case (a): no reservation, no egress."""
    key = stand.open(ROOMY)
    assert stand.call(dialect, key).status_code == 200
    with stand.store.failing():
        response = stand.call(dialect, key)
    told = facts(response)
    assert (response.status_code, told["code"]) == (503, "ledger_unavailable")
    assert int(response.headers["retry-after"]) >= 1
    assert stand.hits == 1
    assert len(stand.reservations()) == 1
    assert stand.call(dialect, key).status_code == 200


def test_a_store_that_cannot_be_reached_for_the_key_is_a_503_and_nothing_is_sent(stand: Stand) -> None:
    key = stand.open(ROOMY)
    with stand.store.failing():
        assert stand.chat(key).status_code == 503
    assert stand.hits == 0


@both
@whole_or_not
def test_a_settlement_that_fails_leaves_the_answer_whole_and_the_money_held(
    stand: Stand, dialect: str, stream: bool
) -> None:
    """B60, case (b): the answer is the caller's; the resolution goes to the fallback."""
    key = stand.open(ROOMY)
    with stand.store.failing(after_the_reservation()):
        response = stand.call(dialect, key, stream=stream)
    assert response.status_code == 200
    assert ("[DONE]" in response.text or "message_stop" in response.text) or not stream
    one = stand.reservation()
    assert one.state == "in_flight"
    assert stand.state().reserved == one.asked.usd
    ((deferred, resolution),) = stand.deferred.given
    assert deferred.id == one.id
    assert resolution.actual is not None
    assert resolution.actual.usd == stand.book.billed_picodollars
    stand.audited()


@both
def test_a_deferred_settlement_is_one_settlement_however_often_it_is_tried(stand: Stand, dialect: str) -> None:
    key = stand.open(ROOMY)
    with stand.store.failing(after_the_reservation()):
        stand.call(dialect, key)
    settlements = Settlements(JsonLog(stream=stand.log))
    for _ in range(2):
        for reservation, resolution in stand.deferred.given:
            settlements.defer(reservation, resolution)
        assert settlements.drain(stand.reader, stand.clock) == 0
    one = stand.reservation()
    assert one.actual is not None
    assert one.state == "settled"
    assert stand.state().counters["usd.life"] == one.actual.usd == stand.book.billed_picodollars
    (record,) = stand.reader.usage_records(stand.root)
    assert record["calls"] == 1
    stand.audited()


def test_the_answer_to_a_settlement_that_got_lost_is_no_second_settlement(stand: Stand) -> None:
    """B60: a settle that may have happened is repeated with the same token, and counts once."""
    key = stand.open(ROOMY)
    with stand.store.losing_answers(after_the_reservation(), times=1):
        assert stand.chat(key).status_code == 200
    one = stand.reservation()
    assert one.actual is not None
    assert one.state == "settled"
    assert stand.state().counters["usd.life"] == one.actual.usd
    assert stand.deferred.given == []
    stand.audited()


def test_the_answer_to_a_reservation_that_got_lost_sends_the_call_once(stand: Stand) -> None:
    key = stand.open(ROOMY)
    stand.chat(key)
    with stand.store.losing_answers(lambda operation: operation == "TransactWriteItems", times=1):
        assert stand.chat(key).status_code == 200
    assert stand.hits == 2
    assert [one.state for one in stand.reservations()] == ["settled", "settled"]
    stand.audited()


@both
def test_a_release_that_fails_keeps_the_money_until_it_is_done(stand: Stand, dialect: str) -> None:
    key = stand.open(ROOMY)
    stand.behave("refuse", status=429)
    with stand.store.failing(after_the_reservation()):
        assert stand.call(dialect, key).status_code == 429
    assert stand.state().reserved > 0
    ((_, resolution),) = stand.deferred.given
    assert resolution.state == "released"
    stand.audited()


@both
@whole_or_not
def test_an_answer_that_comes_byte_by_byte_is_settled_like_any_other(stand: Stand, dialect: str, stream: bool) -> None:
    stand.behave("byte_by_byte")
    assert stand.call(dialect, stand.open(ROOMY), stream=stream).status_code == 200
    one = stand.ended()
    assert (one.state, one.reason) == ("settled", "answered")
    assert one.actual is not None
    assert one.actual.usd == stand.state().counters["usd.life"] == stand.book.billed_picodollars > 0
    stand.audited()
