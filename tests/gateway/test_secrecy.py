"""Nothing of a prompt, a completion or a key is kept, logged or told: looked for as canaries, after every kind of end."""

import pytest

from tests.gateway.stand import PROVIDER_KEY, Stand

SETTINGS = {"call_seconds_max": 1}

PROMPT = "CANARY-prompt-patient-0815"
# The demo provider's own words.
COMPLETION = "The demo provider says"
ENDS = [
    "ok",
    "refuse",
    "error_after_work",
    "reset",
    "hang",
    "cut",
    "error_in_stream",
    "no_usage",
    "garbage",
    "echo",
    "overbill",
]


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
@pytest.mark.parametrize("stream", [False, True])
def test_no_prompt_completion_or_key_is_in_the_log_the_tables_or_an_error(
    stand: Stand, dialect: str, stream: bool
) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}}}")
    told = []
    for end in ENDS:
        stand.behave(end, after_frames=6, status=None if end != "refuse" else 403)
        response = stand.call(dialect, key, f"{PROMPT} {key}", stream=stream, headers={"idempotency-key": end})
        if response.status_code != 200:
            told.append(response.text)
        if end == "overbill":
            assert stand.call(dialect, key, PROMPT).status_code == 402
    told.append(stand.call(dialect, key, PROMPT, model="nobody-knows").text)
    told.append(stand.call(dialect, key, PROMPT, unknown_field=PROMPT).text)
    told.append(stand.call(dialect, key, PROMPT, temperature=PROMPT).text)
    told.append(stand.call(dialect, key, PROMPT, messages=[{"role": PROMPT, "content": PROMPT}]).text)
    told.append(stand.call(dialect, key + "x", PROMPT).text)
    stand.until(lambda: all(one.state != "in_flight" for one in stand.reservations()))
    assert len(told) > 5
    for place in (stand.log.getvalue(), stand.tables(), "\n".join(told)):
        assert place
        for canary in (PROMPT, key, PROVIDER_KEY, COMPLETION):
            assert canary not in place


def test_a_fault_of_our_own_is_logged_without_what_was_asked(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}}}")

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("spendgate.exchange.answered", broken)
    response = stand.chat(key, PROMPT)
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal_fault"
    assert "defect" not in response.text
    assert response.headers["x-should-retry"] == "false"
    # Sent, and nobody knows: the money stays.
    assert stand.ended().state == "unknown"
    logged = stand.log.getvalue()
    assert "a defect" in logged
    for canary in (PROMPT, key, PROVIDER_KEY, COMPLETION):
        assert canary not in logged
    stand.audited()


def test_a_defect_before_anything_was_sent_gives_the_money_back(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}}}")

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("spendgate.exchange.Outbound", broken)
    assert stand.chat(key, PROMPT).status_code == 500
    assert stand.ended().state == "released"
    assert stand.hits == 0
    stand.audited()
