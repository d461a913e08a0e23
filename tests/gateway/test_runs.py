"""Runs: what ends one, the keys that are minted for them, and what such a key may never do."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest

from spendgate.core.run import KEYS_PER_HOUR_MAX
from tests.gateway.stand import NO_TLS, Stand, facts

COST = 135_000_000
DELEGATING = "$: {limits: {usd: {day: 1}}, runs: {limits: {usd: {life: 1}}, expire_after: 2h, delegate: 1}}"


def refused(response: Any, status: int, code: str) -> dict[str, Any]:
    told = facts(response)
    assert (response.status_code, told["code"]) == (status, code), told
    return told


def in_run(stand: Stand, key: str, name: str = "r", **fields: Any) -> Any:
    return stand.chat(key, headers={"x-spendgate-run": name}, **fields)


def mint(stand: Stand, key: str, **body: Any) -> Any:
    return stand.post("/v1/runs", body, key)


def minted(stand: Stand, key: str, **body: Any) -> str:
    answer = mint(stand, key, **body)
    assert answer.status_code == 201, answer.text
    secret: str = answer.json()["key"]
    return secret


def ended(stand: Stand, key: str, run: str) -> httpx.Response:
    with httpx.Client(base_url=stand.url, trust_env=False, verify=NO_TLS) as client:
        return client.delete(f"/v1/runs/{run}", headers={"authorization": f"Bearer {key}"})


# --- what ends a run


@pytest.mark.parametrize(
    ("limits", "measure", "fields"),
    [
        ('{usd: {life: "0.0003"}}', "usd", {}),
        ("{requests: {life: 1}}", "requests", {}),
        ("{tokens: {life: 33}}", "tokens", {}),
        (
            "{tool_calls: {life: 1}}",
            "tool_calls",
            {
                "messages": [
                    {"role": "user", "content": "Hello"},
                    {
                        "role": "assistant",
                        "tool_calls": [
                            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
                        ],
                    },
                    {"role": "tool", "tool_call_id": "c1", "content": "found"},
                ]
            },
        ),
    ],
)
def test_a_run_is_refused_once_a_limit_of_its_life_is_used_up(
    stand: Stand, limits: str, measure: str, fields: dict[str, Any]
) -> None:
    key = stand.open(f"$: {{limits: {{usd: {{day: 1}}}}, runs: {{limits: {limits}}}}}")
    assert in_run(stand, key, **fields).status_code == 200

    told = refused(in_run(stand, key, **fields), 402, "over_budget")

    assert (told["budget"], told["limit"]["measure"], told["limit"]["window"]) == (
        f"{stand.root}/run:r",
        measure,
        "life",
    )
    assert in_run(stand, key, "another", **fields).status_code == 200
    assert stand.hits == 2
    stand.audited()


def test_a_run_may_last_so_long_since_its_first_call(stand: Stand) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}}, runs: {elapsed_max: 30m}}")
    assert in_run(stand, key).status_code == 200
    stand.clock.turn(minutes=29)
    assert in_run(stand, key).status_code == 200
    stand.clock.turn(minutes=1, seconds=1)
    assert "has had its time" in refused(in_run(stand, key), 402, "budget_stopped")["message"]
    seen = stand.get("/v1/budget", key, headers={"x-spendgate-run": "r"}).json()["budgets"][-1]["elapsed"]
    assert seen["maximum"] == "30m"
    assert seen["started_at"] < seen["ends_at"]
    assert stand.hits == 2


def test_a_minted_run_s_time_begins_with_its_first_call_and_not_with_its_key(stand: Stand) -> None:
    key = minted(stand, stand.open(DELEGATING), elapsed_max="10m")
    stand.clock.turn(minutes=20)
    assert stand.chat(key).status_code == 200
    stand.clock.turn(minutes=11)
    refused(stand.chat(key), 402, "budget_stopped")


def test_the_time_that_a_run_s_calls_take_together_is_counted_and_refused_when_it_is_used_up(stand: Stand) -> None:
    run = minted(stand, stand.open(DELEGATING), run="busy", active_max="20s")
    stand.behave(delay_seconds=0.5)
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(stand.chat, run)
        stand.until(lambda: stand.hits == 1)
        # The idle hours of an agent don't count, the time in which it waits for a model does.
        stand.clock.turn(seconds=25)
        assert slow.result().status_code == 200

    told = refused(stand.chat(run), 402, "over_budget")

    assert told["limit"]["measure"] == "active_milliseconds"
    assert stand.state("$/run:busy").counters["active_milliseconds.life"] >= 25_000
    assert stand.hits == 1
    stand.audited()


def test_a_call_whose_length_nobody_saw_counts_with_all_that_it_may_have_taken(stand: Stand) -> None:
    run = minted(stand, stand.open(DELEGATING), run="lost", active_max="10m")
    stand.behave("reset")
    stand.chat(run)
    lost = stand.ended()
    assert lost.state == "unknown"
    stand.admin.reconcile(lost.id, action="charge", cost=None, evidence="a test", by="ada")
    longest = (lost.deadline - lost.created_at).total_seconds() * 1000
    assert stand.state("$/run:lost").counters["active_milliseconds.life"] == longest
    stand.audited()


def test_a_run_that_its_own_limits_refused_makes_no_smaller_call_either(stand: Stand) -> None:
    key = stand.open('$: {limits: {usd: {day: 1}}, runs: {limits: {usd: {life: "0.0003"}}, stop_on_refusal: true}}')
    assert in_run(stand, key).status_code == 200
    refused(in_run(stand, key), 402, "over_budget")

    # It would fit; the loop ends all the same.
    told = refused(in_run(stand, key, max_completion_tokens=1), 402, "budget_stopped")

    assert "refused by its own limits" in told["message"]
    assert in_run(stand, key, "next").status_code == 200
    assert stand.state().policy.stop is None
    assert stand.hits == 2
    stand.audited()


def test_a_run_is_not_stopped_by_a_refusal_of_a_budget_above_it(stand: Stand) -> None:
    key = stand.open('$: {limits: {usd: {day: "0.0003"}}, runs: {limits: {usd: {life: 1}}, stop_on_refusal: true}}')
    assert in_run(stand, key).status_code == 200
    assert refused(in_run(stand, key), 402, "over_budget")["budget"] == stand.root
    assert stand.state("$/run:r").policy.stop is None


def test_many_refusals_of_a_run_at_once_stop_it_once(stand: Stand) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}}, runs: {limits: {requests: {life: 1}}, stop_on_refusal: true}}")
    assert in_run(stand, key).status_code == 200
    with ThreadPoolExecutor(6) as pool:
        found = [one.status_code for one in pool.map(lambda _: in_run(stand, key), range(6))]
    assert found == [402] * 6
    assert stand.state("$/run:r").policy.rev == 2


# --- minting


def test_a_minted_key_calls_on_its_own_run_below_the_same_budget(stand: Stand) -> None:
    parent = stand.open(DELEGATING)
    answer = mint(stand, parent, run="agent-1", limits={"usd": {"life": "0.0003"}})
    document = answer.json()
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    assert (document["run"], document["budget"]) == ("agent-1", f"{stand.root}/run:agent-1")

    with stand.openai(document["key"], max_retries=0) as client:
        said = client.chat.completions.create(
            model="gpt", messages=[{"role": "user", "content": "Hello"}], max_completion_tokens=20
        )
        assert said.choices[0].message.content
        with pytest.raises(openai.APIStatusError) as denied:
            client.chat.completions.create(
                model="gpt", messages=[{"role": "user", "content": "Hello"}], max_completion_tokens=20
            )

    assert denied.value.status_code == 402
    assert stand.state().counters["usd.life"] == stand.state("$/run:agent-1").counters["usd.life"] == COST
    assert document["key"] not in stand.tables() + stand.log.getvalue()
    stand.audited()


def test_a_minted_key_that_is_never_used_holds_nothing(stand: Stand) -> None:
    minted(stand, stand.open(DELEGATING), run="idle")
    assert (stand.state().reserved, dict(stand.state().counters)) == (0, {})
    assert dict(stand.state("$/run:idle").counters) == {}
    stand.audited()


def test_a_warm_call_with_a_minted_key_goes_to_the_ledger_once_before_egress_and_once_after(stand: Stand) -> None:
    run = minted(stand, stand.open(DELEGATING))
    assert stand.chat(run).status_code == 200
    stand.store.operations.clear()
    assert stand.chat(run).status_code == 200
    assert stand.store.operations == ["TransactWriteItems"] * 2


def test_a_key_that_may_not_delegate_mints_none(stand: Stand) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}}, runs: {limits: {usd: {life: 1}}}}")
    assert "mint" in refused(mint(stand, key), 400, "request_invalid")["message"]
    refused(mint(stand, "sg-" + "x" * 32), 401, "key_invalid")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"limits": {"usd": {"life": "1.000000000001"}}}, "limits.usd.life"),
        ({"limits": {"usd": {"life": 0.5}}}, "limits.usd.life"),
        ({"limits": {"usd": {"life": -1}}}, "limits.usd.life"),
        ({"limits": {"eur": {"life": 1}}}, "limits.eur"),
        ({"limits": {"requests": {"life": True}}}, "limits.requests.life"),
        ({"limits": {"requests": {"year": 1}}}, "limits.requests.year"),
        ({"limits": 5}, "limits"),
        ({"expires_after": "3h"}, "expires_after"),
        ({"expires_after": "soon"}, "expires_after"),
        ({"delegate": 1}, "delegate"),
        ({"models": []}, "models"),
        ({"models": ["claude"]}, "models"),
        ({"budget": "other"}, "budget"),
        ({"run": "../x"}, "run"),
        ({"run": 7}, "run"),
    ],
)
def test_nothing_that_is_asked_of_a_run_is_wider_than_what_the_key_has(
    stand: Stand, body: dict[str, Any], field: str
) -> None:
    """G10: a body narrows, and names no budget."""
    key = stand.open(DELEGATING, "$-narrow: {budget: $, models: [gpt]}")
    assert refused(mint(stand, key, **body), 400, "request_invalid")["field"] == field
    assert [state.policy.path for state in stand.reader.budgets()] == [stand.root]


def test_a_run_that_was_begun_is_not_begun_again_by_a_key(stand: Stand) -> None:
    """G10: what a run has used stays used."""
    key = stand.open(DELEGATING)
    assert in_run(stand, key, "r").status_code == 200
    refused(mint(stand, key, run="r"), 409, "request_conflict")
    minted(stand, key, run="s")
    refused(mint(stand, key, run="s"), 409, "request_conflict")


def test_a_minted_key_may_call_what_it_was_given_of_what_its_parent_may(stand: Stand) -> None:
    parent = stand.open(DELEGATING, "$-two: {budget: $, models: [gpt, claude]}")
    run = minted(stand, parent, models=["gpt"])
    assert stand.chat(run).status_code == 200
    refused(stand.message(run), 403, "model_not_allowed")
    assert [one["id"] for one in stand.get("/v1/models", run).json()["data"]] == ["gpt"]
    # What is taken from the parent is taken from the child.
    stand.open_all(DELEGATING, "$-two: {budget: $, models: [claude]}")
    refused(stand.chat(run), 403, "model_not_allowed")
    assert stand.hits == 1


def test_a_minted_key_mints_as_deep_as_its_parent_allows_and_no_deeper(stand: Stand) -> None:
    parent = stand.open(DELEGATING.replace("delegate: 1", "delegate: 2"))
    refused(mint(stand, parent, delegate=2), 400, "request_invalid")
    child = minted(stand, parent, run="a", delegate=1, limits={"usd": {"life": "0.0005"}})
    refused(mint(stand, child, limits={"usd": {"life": "0.0006"}}), 400, "request_invalid")
    refused(mint(stand, child, delegate=1), 400, "request_invalid")
    grandchild = minted(stand, child, run="b")
    refused(mint(stand, grandchild), 400, "request_invalid")

    assert stand.chat(grandchild).status_code == 200

    for path in ("$", "$/run:a", "$/run:a/run:b"):
        assert stand.state(path).counters["usd.life"] == COST
    stand.audited()


# --- what a minted key dies with


def test_keys_below_a_revoked_key_are_refused_from_the_next_call_on_without_egress(stand: Stand) -> None:
    keys = stand.open_all(DELEGATING.replace("delegate: 1", "delegate: 2"), "$-one: {budget: $}\n$-two: {budget: $}")
    child = minted(stand, keys[f"{stand.root}-one"], delegate=1)
    grandchild = minted(stand, child)
    other = minted(stand, keys[f"{stand.root}-two"])
    assert [stand.chat(one).status_code for one in (child, grandchild, other)] == [200] * 3

    stand.admin.keys.revoke(f"{stand.root}-one", by="ada")

    for dead in (child, grandchild):
        assert "was revoked" in refused(stand.chat(dead), 401, "key_invalid")["message"]
        refused(mint(stand, dead), 401, "key_invalid")
    assert stand.chat(other).status_code == 200
    assert stand.hits == 4


def test_a_minted_key_lives_no_longer_than_its_parent(stand: Stand) -> None:
    ends = f"{stand.clock():%Y-%m-%dT%H}:40:00Z"
    parent = stand.open(DELEGATING, f'$-brief: {{budget: $, expires: "{ends}"}}')
    answer = mint(stand, parent, expires_after="2h").json()
    assert answer["expires_at"] == ends
    assert stand.chat(answer["key"]).status_code == 200
    stand.clock.turn(minutes=45)
    refused(stand.chat(answer["key"]), 401, "key_invalid")
    assert stand.hits == 1


def test_a_minted_key_expires_when_it_was_asked_to(stand: Stand) -> None:
    run = minted(stand, stand.open(DELEGATING), expires_after="5m")
    assert stand.chat(run).status_code == 200
    stand.clock.turn(minutes=6)
    refused(stand.chat(run), 401, "key_invalid")


def test_a_stop_of_the_parent_s_budget_stops_its_runs_and_mints_no_more(stand: Stand) -> None:
    parent = stand.open(DELEGATING)
    run = minted(stand, parent)
    assert stand.chat(run).status_code == 200
    stand.admin.stop(stand.root, reason="ticket 7", by="ada")
    assert refused(stand.chat(run), 402, "budget_stopped")["budget"] == stand.root
    refused(mint(stand, parent), 402, "budget_stopped")
    assert stand.hits == 1


def test_a_key_ends_the_runs_of_its_own_budget_and_no_others(stand: Stand) -> None:
    one, other = stand.open_all(
        f"{DELEGATING}\n{DELEGATING.replace('$', '$2', 1)}", "$-1: {budget: $}\n$-2: {budget: $2}"
    ).values()
    run = minted(stand, one, run="r")
    assert stand.chat(run).status_code == 200

    refused(ended(stand, other, "r"), 404, "not_found")
    refused(ended(stand, run, "r"), 404, "not_found")
    assert ended(stand, one, "r").json()["stop"]["reason"] == "the run was ended"
    assert ended(stand, one, "r").status_code == 200
    refused(stand.chat(run), 402, "budget_stopped")
    assert stand.hits == 1


# --- many at once


def test_many_agents_at_once_spend_no_more_than_the_budget_above_them_has(stand: Stand) -> None:
    parent = stand.open(DELEGATING.replace("{usd: {day: 1}}", '{usd: {day: "0.0012"}}', 1))
    runs = [minted(stand, parent) for _ in range(6)]
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda number: stand.chat(runs[number % 6]).status_code, range(24)))
    assert set(statuses) <= {200, 402, 429}
    assert 0 < stand.hits == statuses.count(200)
    assert stand.state().counters["usd.life"] <= 1_200_000_000
    stand.audited()


def test_so_many_keys_are_minted_within_an_hour_and_no_more(stand: Stand) -> None:
    parent = stand.open(DELEGATING)
    minted(stand, parent)
    key = {"pk": {"S": f"MINTED#{stand.root}"}, "sk": {"S": f"{stand.clock():%Y-%m-%dT%HZ}"}}
    stand.reader.client.update_item(
        TableName=stand.settings.ledger_table,
        Key=key,
        UpdateExpression="SET #k = :k",
        ExpressionAttributeNames={"#k": "keys"},
        ExpressionAttributeValues={":k": {"N": str(KEYS_PER_HOUR_MAX)}},
    )
    answer = mint(stand, parent)
    refused(answer, 429, "rate_limited")
    assert 0 < int(answer.headers["retry-after"]) <= 3600
    stand.clock.next_hour()
    minted(stand, parent)


def test_a_mint_whose_answer_was_lost_is_made_once(stand: Stand) -> None:
    parent = stand.open(DELEGATING)
    with stand.store.losing_answers(lambda operation: operation == "TransactWriteItems", times=1):
        run = minted(stand, parent, run="r")
    assert stand.chat(run).status_code == 200


# --- the trail


def test_the_trail_keeps_who_minted_a_key_with_what_and_who_ended_a_run_each_once_and_no_secret(stand: Stand) -> None:
    key = stand.open(DELEGATING, keys="$-boss: {budget: $}")
    secret = minted(stand, key, run="a", limits={"usd": {"life": "0.5"}}, expires_after="1h", elapsed_max="30m")
    assert mint(stand, key, run="a").status_code == 409
    stand.store.operations.clear()
    assert ended(stand, key, "a").status_code == 200
    assert stand.store.operations.count("TransactWriteItems") == 1
    assert ended(stand, key, "a").status_code == 200
    assert ended(stand, key, "never").status_code == 404

    path, by = f"{stand.root}/run:a", f"key {stand.root}-boss"
    ending, minting = [one for one in stand.admin.events()["events"] if one["kind"].startswith("run_")]
    assert (minting["kind"], minting["subject"], minting["by"], minting["before"]) == ("run_key_minted", path, by, None)
    assert minting["after"].pop("expires") > minting["at"]
    assert minting["after"] == {
        "key": f"{stand.root}-boss/run:a",
        "limits": {"usd": {"life": "0.5"}},
        "elapsed_max": "30m",
    }
    assert (ending["kind"], ending["subject"], ending["by"], ending["reason"]) == (
        "run_ended",
        path,
        by,
        "the run was ended",
    )
    assert secret not in stand.tables()
    of_keys, of_operators = (stand.admin.events(1000, by)["events"] for by in ("keys", "operators"))
    assert [one["kind"] for one in of_keys] == ["run_ended", "run_key_minted"]
    assert sorted(one["at"] for one in (*of_keys, *of_operators)) == sorted(
        one["at"] for one in stand.admin.events(1000)["events"]
    )
