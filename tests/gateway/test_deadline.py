"""The platform's deadline: a function is killed at it, so a call ends, and is settled or held, before."""

import json
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.gateway.stand import Stand, chat, facts

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


def test_of_the_platform_s_names_only_what_the_adapter_writes_means_anything(stand: Stand) -> None:
    key = stand.open(ROOMY)
    spoofed = {
        "x-amzn-trace-id": "Root=CHOSEN",
        "x-amzn-oidc-identity": "CHOSEN",
        "x-amzn-requestid": "CHOSEN",
        "x-amz-security-token": "CHOSEN",
        "x-amzn-lambda-deadline": "CHOSEN",
        "x-amzn-request-context": json.dumps({"requestId": "CHOSEN\n", "identity": {"userArn": "CHOSEN"}}),
    }

    assert stand.chat(key, headers=until(stand, seconds=60) | spoofed).status_code == 200
    assert "CHOSEN" not in stand.log.getvalue() + stand.tables()
    (arrived,) = stand.provider.arrivals
    assert not any(name.startswith("x-amz") for name in arrived.headers)
    assert "CHOSEN" not in str(arrived.headers)


@pytest.mark.parametrize("name", [HEADER, "x-amzn-request-context"])
def test_a_context_of_the_callers_own_beside_the_adapter_s_is_refused(stand: Stand, name: str) -> None:
    # An adapter that added its header to a caller's, and did not write over it, would leave two.
    headers = [("authorization", f"Bearer {stand.open(ROOMY)}"), (name, "{}"), (name.title(), '{"deadline": 1e15}')]
    response = httpx.post(f"{stand.url}/v1/chat/completions", json=chat(), headers=headers, trust_env=False)

    assert code(response) == (400, "request_invalid")
    assert stand.hits == 0


def test_the_id_of_a_request_is_the_adapter_s_to_tell_and_a_plain_one(stand: Stand) -> None:
    key = stand.open(ROOMY)
    stand.chat(key, headers=until(stand, seconds=60) | {"x-amzn-request-context": '{"requestId": "c2a9-told"}'})

    assert '"request_id":"c2a9-told"' in stand.log.getvalue().replace('": "', '":"')
