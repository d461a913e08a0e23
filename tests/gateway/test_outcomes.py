"""How each end of a call is booked: by what was seen of the answer, whole and streamed, in both dialects."""

from typing import Any

import pytest

from spendgate.core.money import usd_text
from spendgate.core.reservation import Reservation
from tests.gateway.stand import PROVIDER_KEY, Stand, events, facts

# What a call may last: calls that hang end then.
SETTINGS = {"call_seconds_max": 2, "answer_bytes_max": 20_000}

ROOMY = "$: {limits: {usd: {day: 1}}}"
BOUND = 232_500_000

both = pytest.mark.parametrize("dialect", ["openai", "anthropic"])
whole_or_not = pytest.mark.parametrize("stream", [False, True])


def held(stand: Stand, response: Any, status: int) -> dict[str, Any]:
    """The money of the one call stays held, the caller is told so, and nobody tries again."""
    told = facts(response)
    one = stand.ended()
    assert (response.status_code, told["code"]) == (status, "outcome_unknown")
    assert response.headers["x-should-retry"] == "false"
    assert response.headers["x-spendgate-reservation"] == told["reservation"] == one.id
    assert told["state"] == one.state == "unknown"
    still_held(stand)
    return told


def still_held(stand: Stand) -> None:
    one = stand.ended()
    assert one.state == "unknown"
    state = stand.state()
    assert (state.reserved, state.unknown) == (BOUND, BOUND)
    assert state.counters["usd.life"] == BOUND
    assert stand.hits == 1
    stand.audited()


def released(stand: Stand) -> None:
    state = stand.state()
    assert stand.ended().state == "released"
    assert (state.reserved, state.unknown) == (0, 0)
    assert state.counters.get("usd.life", 0) == 0
    stand.audited()


def settled(stand: Stand) -> None:
    one = stand.ended()
    assert one.state == "settled"
    assert one.actual is not None
    assert one.actual.usd == stand.state().counters["usd.life"] == stand.book.billed_picodollars > 0
    assert stand.state().reserved == 0
    stand.audited()


def ended(stand: Stand, response: Any) -> Reservation:
    """Return the reservation of this very answer, once it has ended or is unknown."""
    made = response.headers["x-spendgate-reservation"]
    stand.until(lambda: stand.reservation_of(made).state != "in_flight")
    return stand.reservation_of(made)


def all_held(stand: Stand, count: int) -> None:
    """So many calls were sent, and the bound of each is held."""
    state = stand.state()
    assert stand.hits == count
    assert state.reserved == state.unknown == state.counters["usd.life"] == count * BOUND
    stand.audited()


# --- statuses: providers.md 13


REFUSED = (400, 404, 409, 413, 415, 422, 429)
UNBILLED = {"openai": REFUSED, "anthropic": (*REFUSED, 402, 529)}
UNCLEAR = {
    "openai": (402, 406, 408, 410, 418, 424, 425, 499, 500, 502, 503, 504, 529, 599),
    "anthropic": (406, 408, 418, 424, 499, 500, 502, 503, 504, 599),
}


@both
@whole_or_not
def test_a_status_that_proves_that_nothing_was_billed_gives_the_money_back(
    stand: Stand, dialect: str, stream: bool
) -> None:
    key = stand.open(ROOMY)
    for status in UNBILLED[dialect]:
        stand.behave("refuse", status=status)
        response = stand.call(dialect, key, stream=stream)
        assert response.status_code == status
        assert "as it was told to" in response.text
        assert response.headers["x-spendgate-state"] == ended(stand, response).state == "released"
        assert response.headers["x-spendgate-cost-usd"] == "0"
        state = stand.state()
        assert (state.reserved, state.counters.get("usd.life", 0)) == (0, 0)
    assert stand.hits == len(UNBILLED[dialect])
    stand.audited()


@both
@whole_or_not
def test_a_status_that_may_come_after_the_work_keeps_the_money(stand: Stand, dialect: str, stream: bool) -> None:
    key = stand.open(ROOMY)
    for status in UNCLEAR[dialect]:
        stand.behave("error_after_work", status=status)
        response = stand.call(dialect, key, stream=stream)
        told = facts(response)
        assert (response.status_code, told["code"], told["state"]) == (502, "outcome_unknown", "unknown")
        assert str(status) in told["message"]
        assert usd_text(BOUND) in told["message"]
        assert response.headers["x-should-retry"] == "false"
        assert ended(stand, response).state == "unknown"
    all_held(stand, len(UNCLEAR[dialect]))


@both
@whole_or_not
def test_a_redirect_is_not_followed_and_keeps_the_money(stand: Stand, dialect: str, stream: bool) -> None:
    key = stand.open(ROOMY)
    statuses = (301, 302, 303, 307, 308, 304)
    for status in statuses:
        stand.behave("redirect", status=status)
        response = stand.call(dialect, key, stream=stream)
        assert (response.status_code, facts(response)["code"]) == (502, "outcome_unknown")
    all_held(stand, len(statuses))
    assert not any("redirected" in arrival.path for arrival in stand.provider.arrivals)


@both
@whole_or_not
def test_a_429_reaches_the_caller_with_its_retry_after_and_the_money_comes_back(
    stand: Stand, dialect: str, stream: bool
) -> None:
    stand.behave("refuse", status=429, retry_after="17")
    response = stand.call(dialect, stand.open(ROOMY), stream=stream)
    assert (response.status_code, response.headers["retry-after"]) == (429, "17")
    released(stand)


@pytest.mark.parametrize("dialect, model", [("openai", "strange"), ("anthropic", "strange-claude")])
def test_a_provider_that_rejects_the_gateway_s_own_key_is_told_without_its_words(
    stand: Stand, dialect: str, model: str
) -> None:
    response = stand.call(dialect, stand.open(ROOMY), model=model)
    assert (response.status_code, facts(response)["code"]) == (502, "provider_refused_us")
    assert "expected" not in response.text
    assert "CANARY" not in response.text
    assert stand.hits == 1
    released(stand)


@both
@pytest.mark.parametrize("status", [401, 403])
def test_a_401_or_403_never_shows_the_provider_s_text(stand: Stand, dialect: str, status: int) -> None:
    stand.behave("refuse", status=status, code="secret_code")
    response = stand.call(dialect, stand.open(ROOMY))
    assert (response.status_code, facts(response)["code"]) == (502, "provider_refused_us")
    assert "as it was told to" not in response.text
    assert "secret_code" not in response.text
    released(stand)


def test_a_provider_whose_key_is_not_configured_is_told_and_costs_nothing(stand: Stand) -> None:
    response = stand.chat(stand.open(ROOMY), model="keyless")
    assert (response.status_code, facts(response)["code"]) == (502, "provider_refused_us")
    assert stand.hits == 0
    released(stand)


# --- connections that fail


@pytest.mark.parametrize("dialect, model", [("openai", "dead"), ("anthropic", "dead-claude")])
@whole_or_not
def test_a_connection_that_is_refused_sent_nothing_and_gives_the_money_back(
    stand: Stand, dialect: str, model: str, stream: bool
) -> None:
    response = stand.call(dialect, stand.open(ROOMY), model=model, stream=stream)
    told = facts(response)
    assert (response.status_code, told["code"]) == (502, "provider_unreachable")
    assert told["retryable"] is True
    assert "nothing was sent" in told["message"]
    assert stand.hits == 0
    released(stand)


@both
@whole_or_not
def test_a_connection_that_breaks_after_the_request_keeps_the_money(stand: Stand, dialect: str, stream: bool) -> None:
    stand.behave("reset")
    held(stand, stand.call(dialect, stand.open(ROOMY), stream=stream), 502)


@both
@whole_or_not
def test_a_provider_that_hangs_is_given_up_at_the_gateway_s_own_deadline(
    stand: Stand, dialect: str, stream: bool
) -> None:
    stand.behave("hang")
    begun = stand.clock()
    told = held(stand, stand.call(dialect, stand.open(ROOMY), stream=stream), 504)
    assert "in time" in told["message"]
    one = stand.reservation()
    # Before the instant from which the sweeper would take the outcome for lost.
    assert stand.clock() < one.deadline
    assert (stand.clock() - begun).total_seconds() >= 2


@both
def test_a_stream_that_hangs_half_way_ends_with_an_error_in_it_at_the_deadline(stand: Stand, dialect: str) -> None:
    stand.behave("hang_mid_stream", after_frames=3)
    response = stand.call(dialect, stand.open(ROOMY), stream=True)
    assert response.status_code == 200
    assert "outcome_unknown" in events(response)[-1]
    still_held(stand)


@both
@whole_or_not
def test_a_slow_answer_within_the_deadline_is_settled(stand: Stand, dialect: str, stream: bool) -> None:
    stand.behave("slow", delay_seconds=0.2, between_seconds=0.01)
    assert stand.call(dialect, stand.open(ROOMY), stream=stream).status_code == 200
    settled(stand)


# --- answers that are odd


FRAMES = {"openai": 16, "anthropic": 18}


@both
@pytest.mark.parametrize("clean", [False, True], ids=["broken", "ended"])
def test_a_stream_that_is_cut_after_any_frame_is_held_and_told_or_settled_exactly(
    stand: Stand, dialect: str, clean: bool
) -> None:
    """B41: neither a guess nor nothing; only usage that the protocol calls final is a bill."""
    key = stand.open(ROOMY)
    for after in range(FRAMES[dialect]):
        billed = stand.book.billed_picodollars
        stand.behave("cut", after_frames=after, clean=clean)
        response = stand.call(dialect, key, stream=True)
        made = response.headers["x-spendgate-reservation"]
        stand.until(lambda made=made: stand.reservation_of(made).state != "in_flight")  # type: ignore[misc]
        one = stand.reservation_of(made)
        if one.state == "settled":
            # OpenAI's last but one chunk is the usage; a body that ends after it has told its bill.
            assert (dialect, after) == ("openai", FRAMES[dialect] - 1)
            assert one.actual is not None
            assert one.actual.usd == stand.book.billed_picodollars - billed
        else:
            assert one.state == "unknown"
            assert "outcome_unknown" in events(response)[-1]
            assert made in events(response)[-1]
    assert stand.hits == FRAMES[dialect]
    stand.audited()


@both
def test_an_answer_that_is_cut_in_the_middle_keeps_the_money(stand: Stand, dialect: str) -> None:
    stand.behave("cut")
    held(stand, stand.call(dialect, stand.open(ROOMY)), 502)


@both
def test_an_error_within_a_stream_is_passed_on_and_keeps_the_money(stand: Stand, dialect: str) -> None:
    """B42: an error inside a 200; what was seen so far is a floor."""
    stand.behave("error_in_stream", after_frames=5)
    response = stand.call(dialect, stand.open(ROOMY), stream=True)
    assert "broke off, as it was told to" in response.text
    still_held(stand)
    assert stand.ended().reason == "error_in_stream"


@both
@whole_or_not
def test_an_answer_without_usage_keeps_the_money(stand: Stand, dialect: str, stream: bool) -> None:
    """B36: never 0."""
    stand.behave("no_usage")
    response = stand.call(dialect, stand.open(ROOMY), stream=stream)
    assert response.status_code == 200
    still_held(stand)
    assert stand.ended().reason == "usage_missing"


COUNTS = (
    "null",
    '"10"',
    "-5",
    "NaN",
    "1e400",
    "true",
    "Infinity",
    "1.5",
    "[1]",
    "{}",
    "9007199254740992",
    "1e999999999",
)


@both
@whole_or_not
def test_a_count_that_is_no_whole_number_keeps_the_money_and_hurts_nothing(
    stand: Stand, dialect: str, stream: bool
) -> None:
    """B46: no odd value may skip the settlement or poison a counter."""
    key = stand.open(ROOMY)
    names = ("prompt_tokens", "completion_tokens") if dialect == "openai" else ("input_tokens", "output_tokens")
    for count in COUNTS:
        stand.behave("usage", usage_text=f'{{"{names[0]}": 6, "{names[1]}": {count}}}')
        response = stand.call(dialect, key, stream=stream)
        assert response.status_code == 200
        assert ended(stand, response).state == "unknown", count
    all_held(stand, len(COUNTS))


@both
@whole_or_not
def test_integral_floats_are_counts(stand: Stand, dialect: str, stream: bool) -> None:
    """B46: 512.0 is 512."""
    names = ("prompt_tokens", "completion_tokens") if dialect == "openai" else ("input_tokens", "output_tokens")
    stand.behave("usage", usage_text=f'{{"{names[0]}": 6.0, "{names[1]}": 12.0}}')
    stand.call(dialect, stand.open(ROOMY), stream=stream)
    settled(stand)


@both
@whole_or_not
def test_a_usage_that_is_none_keeps_the_money(stand: Stand, dialect: str, stream: bool) -> None:
    key = stand.open(ROOMY)
    usages = ("[]", '"usage"', "7", "{}", '{"total_tokens": 18}')
    for usage in usages:
        stand.behave("usage", usage_text=usage)
        assert ended(stand, stand.call(dialect, key, stream=stream)).state == "unknown", usage
    all_held(stand, len(usages))


@both
@whole_or_not
def test_a_compressed_answer_nobody_asked_for_is_read_or_held_but_never_free(
    stand: Stand, dialect: str, stream: bool
) -> None:
    """B44: identity is what is asked for."""
    stand.behave("gzip")
    response = stand.call(dialect, stand.open(ROOMY), stream=stream, headers={"accept-encoding": "br, gzip, zstd"})
    assert response.status_code == 200
    assert "content-encoding" not in response.headers
    assert "bills" in response.text
    assert stand.calls[0].accept_encoding == "identity"
    settled(stand)


@both
@whole_or_not
def test_half_a_document_keeps_the_money(stand: Stand, dialect: str, stream: bool) -> None:
    key = stand.open(ROOMY)
    content_types = ("application/json", "text/html", "text/event-stream", "")
    for content_type in content_types:
        stand.behave("garbage", content_type=content_type)
        assert ended(stand, stand.call(dialect, key, stream=stream)).state == "unknown", content_type
    all_held(stand, len(content_types))


@both
def test_an_answer_larger_than_the_gateway_reads_keeps_the_money(stand: Stand, dialect: str) -> None:
    stand.behave("model_echo", model="m" * 30_000)
    held(stand, stand.call(dialect, stand.open(ROOMY)), 502)


@both
@whole_or_not
def test_another_model_s_name_in_the_answer_is_kept_and_the_reserved_price_counts(
    stand: Stand, dialect: str, stream: bool
) -> None:
    """B16: settled by the route entry that was reserved."""
    stand.behave("model_echo", model="dear")
    stand.call(dialect, stand.open(ROOMY), stream=stream)
    settled(stand)
    one = stand.reservation()
    assert (one.model, one.response_model) == ("demo", "dear")


@both
@whole_or_not
def test_a_provider_that_bills_more_than_the_bound_is_booked_in_truth_and_stops_the_budget(
    stand: Stand, dialect: str, stream: bool
) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}}}\n$/a: {limits: {usd: {day: 1}}}")
    stand.behave("overbill", factor=50)
    assert stand.call(dialect, key, stream=stream).status_code == 200
    settled(stand)
    assert stand.book.billed_picodollars > BOUND
    stop = stand.state("$/a").policy.stop
    assert stop is not None
    assert stop.reservation == stand.reservation().id
    assert stand.state().policy.stop is None
    # Beside the budget the model is blocked for everybody: its bound has shown to be wrong.
    refused = stand.call(dialect, key, stream=stream)
    assert (refused.status_code, facts(refused)["code"]) == (402, "cost_bound_unknown")
    assert stand.hits == 1


@both
@whole_or_not
def test_a_provider_that_repeats_the_gateway_s_key_is_silenced(stand: Stand, dialect: str, stream: bool) -> None:
    stand.behave("echo")
    response = stand.call(dialect, stand.open(ROOMY), stream=stream)
    assert PROVIDER_KEY not in response.text
    assert PROVIDER_KEY not in str(response.headers.raw)
    assert "x-demo-received-key" not in response.headers
    assert "[secret]" in response.text
    settled(stand)


# --- further candidates


def test_without_failover_a_second_candidate_is_never_tried(stand: Stand) -> None:
    key = stand.open(ROOMY)
    for behaviour in ({"name": "refuse", "status": 429}, {"name": "refuse", "status": 404}):
        stand.behave(**behaviour)  # type: ignore[arg-type]
        assert stand.chat(key, model="two").status_code == behaviour["status"]
    assert stand.chat(key, model="dead-then-dear").status_code == 502
    assert stand.hits == 2


FAILOVER = "$: {limits: {usd: {day: 1}}, failover: true}"


@pytest.mark.parametrize("status", [404, 429, 401, 403])
@whole_or_not
def test_with_failover_a_proven_unbilled_refusal_goes_to_the_next_under_the_same_reservation(
    stand: Stand, status: int, stream: bool
) -> None:
    stand.behave("refuse", status=status)
    key = stand.open(FAILOVER)
    # The dearer candidate bills at its own rates, which the demo provider is told.
    stand.behave("ok", billed_picodollars=6 * 5_000_000 + 12 * 20_000_000)
    response = stand.chat(key, model="two", stream=stream)
    assert response.status_code == 200
    assert response.headers["x-spendgate-model"] == "dear"
    one = stand.ended()
    assert (one.state, one.model) == ("settled", "dear")
    assert one.actual is not None
    assert one.actual.usd == stand.book.billed_picodollars == 6 * 5_000_000 + 12 * 20_000_000
    # Both are covered by the bound: it is the dearer one's.
    assert one.asked.usd == 13 * 5_000_000 + 20 * 20_000_000
    assert stand.hits == 2
    stand.audited()


def test_with_failover_a_connection_that_was_never_made_goes_to_the_next(stand: Stand) -> None:
    stand.behave("ok", billed_picodollars=6 * 5_000_000 + 12 * 20_000_000)
    response = stand.chat(stand.open(FAILOVER), model="dead-then-dear")
    assert response.headers["x-spendgate-provider"] == "gpt-host"
    assert stand.hits == 1
    settled(stand)


@pytest.mark.parametrize("behaviour", ["reset", "error_after_work", "redirect", "cut", "garbage", "no_usage"])
def test_even_with_failover_what_may_be_billed_is_never_sent_again(stand: Stand, behaviour: str) -> None:
    stand.behave(behaviour)
    stand.chat(stand.open(FAILOVER), model="two")
    assert stand.hits == 1
    assert stand.ended().state == "unknown"
    stand.audited()


@pytest.mark.parametrize("status", [400, 413, 422, 409])
def test_a_request_that_is_at_fault_itself_is_not_sent_to_another(stand: Stand, status: int) -> None:
    stand.behave("refuse", status=status)
    assert stand.chat(stand.open(FAILOVER), model="two").status_code == status
    assert stand.hits == 1
    released(stand)


def test_where_every_candidate_refuses_the_last_one_s_answer_is_the_caller_s(stand: Stand) -> None:
    stand.behave("refuse", status=404)
    stand.behave("refuse", status=429, retry_after="3")
    response = stand.chat(stand.open(FAILOVER), model="two")
    assert (response.status_code, response.headers["retry-after"]) == (429, "3")
    assert response.headers["x-spendgate-model"] == "dear"
    released(stand)


# --- runs that stop


def test_a_run_that_stops_on_an_unknown_outcome_refuses_its_next_call(stand: Stand) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}}, runs: {limits: {usd: {life: 1}}, stop_on_unknown: true}}")
    stand.behave("reset")
    assert stand.chat(key, headers={"x-spendgate-run": "r"}).status_code == 502
    refused = stand.chat(key, headers={"x-spendgate-run": "r"})
    assert (refused.status_code, facts(refused)["code"]) == (402, "budget_stopped")
    assert stand.chat(key).status_code == 200
    assert stand.hits == 2
