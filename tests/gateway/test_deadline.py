"""The platform's deadline: a function is killed at it, so a call ends, and is settled or held, before."""

import json
from datetime import timedelta
from typing import Any

from tests.gateway.stand import Stand, facts

HEADER = "x-amzn-lambda-context"
SETTINGS = {"deadline_header": HEADER}

ROOMY = "$: {limits: {usd: {day: 1}}}"
# The gateway keeps five seconds of the platform's time for itself.
MARGIN = 5


def until(stand: Stand, **left: float) -> dict[str, str]:
    """Return the header by which the adapter tells the deadline."""
    deadline = stand.clock() + timedelta(**left)
    return {HEADER: json.dumps({"deadline": int(deadline.timestamp() * 1000)})}


def code(response: Any) -> tuple[int, str]:
    return response.status_code, facts(response)["code"]


def test_a_call_that_hangs_ends_before_the_platform_s_deadline(stand: Stand) -> None:
    stand.behave("hang")
    begun = stand.clock()
    assert code(stand.chat(stand.open(ROOMY), headers=until(stand, seconds=MARGIN + 1.5))) == (504, "outcome_unknown")
    assert stand.clock() - begun < timedelta(seconds=MARGIN)
    assert stand.ended().state == "unknown"


def test_the_reservation_s_deadline_follows_the_call_s(stand: Stand) -> None:
    stand.chat(stand.open(ROOMY), headers=until(stand, seconds=MARGIN + 20))
    one = stand.reservation()
    lasts = (one.deadline - one.created_at).total_seconds()
    assert 19 < lasts - stand.settings.deadline_grace_seconds <= 20


def test_a_platform_that_gives_more_time_than_a_call_may_last_changes_nothing(stand: Stand) -> None:
    stand.chat(stand.open(ROOMY), headers=until(stand, hours=1))
    one = stand.reservation()
    lasts = (one.deadline - one.created_at).total_seconds()
    assert lasts == stand.settings.call_seconds_max + stand.settings.deadline_grace_seconds


def test_without_time_left_nothing_is_reserved_or_sent(stand: Stand) -> None:
    response = stand.chat(stand.open(ROOMY), headers=until(stand, seconds=MARGIN))
    assert code(response) == (503, "ledger_unavailable")
    assert stand.hits == 0
    assert stand.reservations() == ()


def test_a_context_without_a_deadline_is_a_fault_and_nothing_is_sent(stand: Stand) -> None:
    key = stand.open(ROOMY)
    for text in (
        "",
        "{}",
        "[]",
        '{"deadline": "soon"}',
        '{"deadline": null}',
        '{"deadline": 1e400}',
        '{"deadline": 9e99}',
    ):
        assert code(stand.chat(key, headers={HEADER: text})) == (500, "internal_fault")
    assert stand.hits == 0
    assert stand.reservations() == ()
