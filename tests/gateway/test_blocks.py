"""A bill above the bound: booked, its budget stopped, and the feature of that model blocked until a person lifts it."""

from typing import Any

import pytest

from spendgate.core.money import usd_text
from spendgate.errors import NotFound, RevisionConflict
from tests.gateway.stand import Stand, facts

TWO = """\
$: {limits: {usd: {day: 9}}}
$/a: {limits: {usd: {day: 8}}}
$/b: {limits: {usd: {day: 8}}}"""
KEYS = "$-a: {budget: $/a}\n$-b: {budget: $/b}"
DEAR = '{"prompt_tokens": 60000, "completion_tokens": 12, "total_tokens": 60012}'


def broken(stand: Stand, key: str, **fields: Any) -> str:
    """Make a call that is billed far above its bound, and return its reservation's id."""
    stand.behave("usage", usage_text=DEAR)
    response = stand.chat(key, **fields)
    assert response.status_code == 200
    made = response.headers["x-spendgate-reservation"]
    one = stand.reservation_of(made)
    assert one.state == "settled"
    assert one.actual is not None
    assert one.actual.usd > one.asked.usd
    return made


def keys_of(stand: Stand) -> tuple[str, str]:
    keys = stand.open_all(TWO, KEYS)
    return keys[f"{stand.root}-a"], keys[f"{stand.root}-b"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_broken_bound_refuses_the_feature_to_every_budget_and_says_which_call_showed_it(
    stand: Stand, stream: bool
) -> None:
    first, second = keys_of(stand)
    stand.behave("usage", usage_text=DEAR)
    made = stand.chat(first, stream=stream).headers["x-spendgate-reservation"]
    stand.until(lambda: stand.reservation_of(made).state == "settled")
    hits = stand.hits

    response = stand.chat(second)

    told = facts(response)
    assert (response.status_code, told["code"]) == (402, "cost_bound_unknown")
    assert told["reservation"] == made
    assert "spendgate blocks lift gpt-host demo text --reason" in told["next_action"]
    one = stand.reservation_of(made)
    assert one.actual is not None
    assert usd_text(one.actual.usd) in told["message"]
    assert stand.hits == hits
    # Another provider's is another promise.
    assert stand.message(second).status_code == 200
    stand.audited()


def test_a_block_keeps_what_the_request_looked_like_and_none_of_its_words(stand: Stand) -> None:
    first, _ = keys_of(stand)
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    made = broken(stand, first, text="CANARY words", stream=False, tools=[tool])

    (block,) = stand.admin.blocks.list()["blocks"]

    assert (block["provider"], block["model"], block["feature"]) == ("gpt-host", "demo", "text")
    assert (block["reservation"], block["budget"], block["dialect"]) == (made, f"{stand.root}/a", "openai")
    assert (block["tools"], block["stream"], block["violations"]) == (1, False, 1)
    assert "CANARY words" not in stand.tables()


def test_a_gateway_that_did_not_see_the_bill_refuses_within_a_minute(stand: Stand) -> None:
    first, second = keys_of(stand)
    assert stand.chat(second).status_code == 200
    made = stand.chat(first).headers["x-spendgate-reservation"]
    # Another process settles: nothing in this one is told.
    stand.behave("no_usage")
    unclear = stand.chat(first).headers["x-spendgate-reservation"]
    assert stand.reservation_of(unclear).state == "unknown"
    stand.admin.reconcile(unclear, action="settle", cost="5", evidence="the bill", by="ana")
    assert stand.admin.blocks.list()["blocks"][0]["reservation"] == unclear != made
    assert stand.chat(second).status_code == 200

    stand.clock.turn(seconds=61)

    assert facts(stand.chat(second))["code"] == "cost_bound_unknown"


def test_a_person_lifts_a_block_with_a_reason_that_stays_in_the_trail(stand: Stand) -> None:
    first, second = keys_of(stand)
    made = broken(stand, first)
    lift = {"provider": "gpt-host", "model": "demo", "feature": "text", "by": "ana"}

    done = stand.admin.blocks.lift(reason="the row has the new price", **lift)

    assert done["lifted"]["reservation"] == made
    assert stand.admin.blocks.list() == {"blocks": []}
    event = next(one for one in stand.admin.events()["events"] if one["kind"] == "block_lifted")
    assert (event["subject"], event["by"]) == ("block:gpt-host/demo/text", "ana")
    assert event["before"]["reservation"] == made
    stand.clock.turn(seconds=61)
    assert stand.chat(second).status_code == 200
    # The budget that paid is another matter: it stays stopped.
    assert facts(stand.chat(first))["code"] == "budget_stopped"
    with pytest.raises(NotFound, match="text of model demo at provider gpt-host is not blocked"):
        stand.admin.blocks.lift(reason="once more", **lift)


def test_a_block_that_another_bill_has_met_meanwhile_is_not_lifted_unseen(stand: Stand) -> None:
    first, _ = keys_of(stand)
    broken(stand, first)
    (seen,) = stand.reader.blocks()
    stand.admin.resume(f"{stand.root}/a", reason="to see", by="ana")
    stand.behave("no_usage")
    stand.admin.blocks.lift(provider="gpt-host", model="demo", feature="text", reason="to see", by="ana")
    stand.clock.turn(seconds=61)
    for _ in range(2):
        stand.behave("no_usage")
        unclear = stand.chat(first).headers["x-spendgate-reservation"]
        stand.admin.reconcile(unclear, action="settle", cost="1", evidence="the bill", by="ana")
        stand.admin.resume(f"{stand.root}/a", reason="to see", by="ana")
    event = stand.reader.events(f"{stand.clock():%Y-%m-%d}")[0]

    with pytest.raises(RevisionConflict, match="has changed"):
        stand.reader.lift(seen, event)

    (block,) = stand.reader.blocks()
    assert block.violations == 2


def test_a_caller_whose_path_is_unbudgeted_relies_on_no_bound_and_passes(stand: Stand) -> None:
    keys = stand.open_all(
        "$: {unbudgeted: true}\n$-b: {limits: {usd: {day: 9}}}", "$-a: {budget: $}\n$-b: {budget: $-b}"
    )
    broken(stand, keys[f"{stand.root}-b"])
    assert stand.chat(keys[f"{stand.root}-a"]).status_code == 200
