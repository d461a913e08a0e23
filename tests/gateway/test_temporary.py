"""A limit that is raised for a while, through the gateway: what leaves is counted at the provider."""

from typing import Any

from spendgate.configuration_model import LimitsEntry
from spendgate.configuration_values import limits
from tests.gateway.stand import Stand, facts

# What "Hello" with 20 output tokens is bounded by, and what it costs.
COST = "0.000135"


def raise_limit(stand: Stand, path: str, until: str, **usd: str) -> dict[str, Any]:
    raised = limits(LimitsEntry.model_validate({"usd": usd}))
    return stand.admin.resume(path, reason="the launch", by="ana", limits=raised, until=until)


def code(response: Any) -> tuple[int, str | None]:
    return response.status_code, None if response.status_code == 200 else facts(response)["code"]


def test_a_raised_limit_is_seen_by_the_next_call_and_is_over_at_its_end_by_itself(stand: Stand) -> None:
    key = stand.open('$: {limits: {usd: {life: "0.0003", request: "0.0001"}}}')
    # The gateway remembers the policy of before, and its own limit on a request would refuse without a look.
    assert code(stand.chat(key)) == (402, "request_too_expensive")

    raise_limit(stand, stand.root, "30s", request="0.001", life="0.0007")
    assert [code(stand.chat(key)) for _ in range(3)] == [(200, None)] * 3
    shown = stand.get("/v1/budget", key).json()["budgets"][0]
    assert shown["temporary"]["limits"] == {"usd": {"request": "0.001", "life": "0.0007"}}
    assert [one["maximum"] for one in shown["windows"]] == ["0.001", "0.0007"]

    # What it remembers now is younger than a minute, and says itself that it is over.
    stand.store.operations.clear()
    stand.clock.turn(seconds=31)
    told = stand.chat(key, max_completion_tokens=1)
    assert code(told) == (402, "over_budget")
    assert facts(told)["limit"]["maximum"] == "0.0003"
    assert stand.store.operations.count("TransactGetItems") == 0
    assert code(stand.chat(key)) == (402, "request_too_expensive")
    assert stand.get("/v1/budget", key).json()["budgets"][0]["temporary"] is None
    assert stand.hits == 3
    stand.audited()


def test_a_run_that_was_refused_by_its_own_size_goes_on_with_a_raised_limit(stand: Stand) -> None:
    key = stand.open('$: {limits: {usd: {day: 1}}, runs: {limits: {usd: {request: "0.0003", life: "0.0004"}}}}')
    run = {"x-spendgate-run": "r"}
    assert code(stand.chat(key, headers=run)) == (200, None)
    assert code(stand.chat(key, headers=run, max_completion_tokens=40)) == (402, "request_too_expensive")

    # Other gateways know of no such run yet, and what a new one would be is not what this one is.
    for remembers in (True, False):
        raise_limit(stand, f"{stand.root}/run:r", "1h", request="0.0006", life="0.01")
        if not remembers:
            stand.run(forget(stand))
        assert code(stand.chat(key, headers=run, max_completion_tokens=40)) == (200, None)
        stand.admin.resume(f"{stand.root}/run:r", reason="enough", by="ana")
        assert code(stand.chat(key, headers=run, max_completion_tokens=40)) == (402, "request_too_expensive")
    assert stand.hits == 3
    stand.audited()


async def forget(stand: Stand) -> None:
    stand.wired.directory.forget()
