"""Before anything leaves: who may call what, what fits, and how each refusal is told."""

import gzip
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spendgate.core.reservation import is_id
from tests.gateway.stand import Stand, chat, facts, message

ROOMY = "$: {limits: {usd: {day: 1}}}"
# What "Hello" with 20 output tokens is bounded by, at 2.50 and 10 USD a million: 13 tokens in, 20 out.
BOUND = "0.0002325"
COST = "0.000135"

both = pytest.mark.parametrize("dialect", ["openai", "anthropic"])


def refused(response: Any, status: int, code: str) -> dict[str, Any]:
    """Check a refusal's status and code, and return its facts."""
    told = facts(response)
    assert (response.status_code, told["code"]) == (status, code)
    assert response.headers["x-should-retry"] == ("true" if told["retryable"] else "false")
    return told


def nothing_happened(stand: Stand) -> None:
    """Nothing was sent, and nothing reserved."""
    assert stand.provider.arrivals == []
    assert stand.reservations() == ()


# --- limits


@both
def test_a_call_larger_than_a_request_may_be_is_told_the_cap_that_fits_exactly(stand: Stand, dialect: str) -> None:
    key = stand.open('$: {limits: {usd: {request: "0.0002"}}}')
    told = refused(stand.call(dialect, key), 402, "request_too_expensive")
    nothing_happened(stand)
    fits = told["fits"]["max_output_tokens"]
    cap = "max_completion_tokens" if dialect == "openai" else "max_tokens"
    assert refused(stand.call(dialect, key, **{cap: fits + 1}), 402, "request_too_expensive")
    assert stand.call(dialect, key, **{cap: fits}).status_code == 200
    assert stand.hits == 1
    stand.audited()


def test_the_cap_that_fits_what_is_left_passes_and_one_token_more_is_refused(stand: Stand) -> None:
    key = stand.open('$: {limits: {usd: {day: "0.0003"}}}')
    assert stand.chat(key).headers["x-spendgate-cost-usd"] == COST
    fits = refused(stand.chat(key), 402, "over_budget")["fits"]["max_output_tokens"]
    refused(stand.chat(key, max_completion_tokens=fits + 1), 402, "over_budget")
    assert stand.chat(key, max_completion_tokens=fits).status_code == 200
    stand.audited()


def test_a_call_of_which_not_even_one_token_fits_says_so(stand: Stand) -> None:
    key = stand.open('$: {limits: {usd: {request: "0.00001"}}}')
    told = refused(stand.chat(key), 402, "request_too_expensive")
    assert told["fits"] == {"max_output_tokens": 0}


def test_the_last_picodollar_of_a_limit_may_be_used_and_not_one_more(stand: Stand) -> None:
    """B20: spent + held + asked <= limit."""
    key = stand.open(f'$: {{limits: {{usd: {{day: "{BOUND}"}}}}}}')
    assert stand.chat(key).status_code == 200
    refused(stand.chat(key), 402, "over_budget")
    stand.root += "x"
    tight = stand.open('$: {limits: {usd: {day: "0.000232499999"}}}')
    refused(stand.chat(tight), 402, "request_too_expensive")
    assert stand.hits == 1


def test_a_limit_of_zero_denies_every_paid_call(stand: Stand) -> None:
    """B30: zero is not none."""
    key = stand.open("$: {limits: {usd: {day: 0}}}")
    refused(stand.chat(key), 402, "request_too_expensive")
    nothing_happened(stand)


@pytest.mark.parametrize("tight", ["$", "$/a", "$/a/b"])
def test_the_tightest_budget_of_the_path_counts_and_the_refusal_names_it(stand: Stand, tight: str) -> None:
    """B31: all levels apply."""
    budgets = dict.fromkeys(("$", "$/a", "$/a/b"), "{limits: {usd: {day: 1}}}")
    budgets[tight] = '{limits: {usd: {day: "0.0003"}}}'
    key = stand.open("\n".join(f"{path}: {policy}" for path, policy in budgets.items()))
    assert stand.chat(key).status_code == 200
    told = refused(stand.chat(key), 402, "over_budget")
    assert told["budget"] == tight.replace("$", stand.root)
    assert stand.hits == 1
    stand.audited()


def test_requests_a_minute_are_limited_until_the_minute_ends(stand: Stand) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}, requests: {minute: 2}}}")
    assert [stand.chat(key).status_code for _ in range(2)] == [200, 200]
    response = stand.chat(key)
    told = refused(response, 429, "rate_limited")
    assert told["limit"] == {"measure": "requests", "window": "minute", "maximum": "2"}
    assert 1 <= int(response.headers["retry-after"]) <= 50
    stand.clock.turn(seconds=int(response.headers["retry-after"]))
    assert stand.chat(key).status_code == 200
    assert stand.hits == 3
    stand.audited()


def test_tokens_a_minute_are_limited_by_what_a_call_may_use(stand: Stand) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}, tokens: {minute: 50}}}")
    assert stand.chat(key).status_code == 200
    told = refused(stand.chat(key, max_completion_tokens=30), 429, "rate_limited")
    assert told["limit"] == {"measure": "tokens", "window": "minute", "maximum": "50"}
    # 18 of the 50 were used, and 13 are what the input may be.
    assert told["fits"] == {"max_output_tokens": 19}
    assert stand.chat(key, max_completion_tokens=19).status_code == 200


def test_an_observed_budget_counts_and_never_refuses(stand: Stand) -> None:
    key = stand.open('$: {mode: observe, limits: {usd: {day: "0.0001"}}}')
    assert [stand.chat(key).status_code for _ in range(2)] == [200, 200]
    assert stand.state().counters["usd.life"] == stand.book.billed_picodollars
    stand.audited()


# --- stops


@pytest.mark.parametrize("stopped", ["$", "$/a"])
@both
def test_a_stop_here_or_above_refuses_at_once_and_a_resume_lets_the_next_call_through(
    stand: Stand, stopped: str, dialect: str
) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}}}\n$/a: {limits: {usd: {day: 1}}}")
    assert stand.call(dialect, key).status_code == 200
    path = stopped.replace("$", stand.root)
    stand.admin.stop(path, reason="it loops", by="ana")
    told = refused(stand.call(dialect, key), 402, "budget_stopped")
    assert told["budget"] == path
    assert "it loops" in told["message"]
    assert "ana" in told["message"]
    assert f"resume {path}" in told["next_action"]
    refused(stand.call(dialect, key), 402, "budget_stopped")
    stand.admin.resume(path, reason="mended", by="ana")
    assert stand.call(dialect, key).status_code == 200
    assert stand.hits == 2


# --- what is remembered


def test_a_warm_call_costs_one_round_trip_before_egress_and_one_after(stand: Stand) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}}}\n$/a: {limits: {usd: {day: 1}}}\n$/a/b: {limits: {usd: {day: 1}}}")
    stand.chat(key)
    stand.store.operations.clear()
    assert stand.chat(key).status_code == 200
    assert stand.store.operations == ["TransactWriteItems", "TransactWriteItems"]


def test_a_limit_that_changed_above_costs_one_more_transaction_and_no_read(stand: Stand) -> None:
    keys = stand.open_all("$: {limits: {usd: {day: 1}}}\n$/a: {limits: {usd: {day: 1}}}", "$-one: {budget: $/a}")
    (key,) = keys.values()
    stand.chat(key)
    stand.open_all("$: {limits: {usd: {day: 2}}}\n$/a: {limits: {usd: {day: 1}}}", "$-one: {budget: $/a}")
    stand.store.operations.clear()
    assert stand.chat(key).status_code == 200
    assert stand.store.operations == ["TransactWriteItems"] * 3
    stand.store.operations.clear()
    assert stand.chat(key).status_code == 200
    assert stand.store.operations == ["TransactWriteItems"] * 2


def test_a_limit_of_the_key_s_own_budget_that_changed_has_the_key_read_again(stand: Stand) -> None:
    (key,) = stand.open_all(ROOMY, "$-one: {budget: $}").values()
    stand.chat(key)
    stand.open_all('$: {limits: {usd: {day: "0.0003"}}}', "$-one: {budget: $}")
    stand.store.operations.clear()
    told = refused(stand.chat(key), 402, "over_budget")
    assert told["limit"]["maximum"] == "0.0003"
    # The last is the word that is left of the first refusal of a window, for people to be told.
    reserved, read, again, *left = stand.store.operations
    assert [reserved, read, again] == ["TransactWriteItems", "TransactGetItems", "TransactWriteItems"]
    assert left in ([], ["TransactWriteItems"])
    assert stand.hits == 1


def test_a_limit_that_was_raised_lets_a_call_through_though_the_old_one_is_remembered(stand: Stand) -> None:
    keys = '$: {limits: {usd: {day: "0.0003"}}}', "$-one: {budget: $}"
    (key,) = stand.open_all(*keys).values()
    assert stand.chat(key).status_code == 200
    refused(stand.chat(key), 402, "over_budget")
    stand.open_all(ROOMY, "$-one: {budget: $}")
    assert stand.chat(key).status_code == 200


def test_a_request_limit_that_was_raised_lets_a_call_through_though_the_old_one_is_remembered(stand: Stand) -> None:
    # A size is compared with what is remembered, before the store is asked.
    (key,) = stand.open_all('$: {limits: {usd: {request: "0.0001"}}}', "$-one: {budget: $}").values()
    refused(stand.chat(key), 402, "request_too_expensive")
    stand.open_all('$: {limits: {usd: {request: "0.001"}}}', "$-one: {budget: $}")
    assert stand.chat(key).status_code == 200


@pytest.mark.parametrize("what", ["stop", "over_budget"])
def test_a_refusal_that_stands_costs_no_more_than_one_read(stand: Stand, what: str) -> None:
    key = stand.open('$: {limits: {usd: {day: "0.0003"}}}')
    stand.chat(key)
    if what == "stop":
        stand.admin.stop(stand.root, reason="enough", by="ana")
    stand.chat(key)
    stand.store.operations.clear()
    assert stand.chat(key).status_code == 402
    assert stand.store.operations.count("TransactGetItems") <= 1
    assert len(stand.store.operations) <= 3


# --- keys


def test_a_key_is_taken_from_every_header_that_an_sdk_uses(stand: Stand) -> None:
    key = stand.open(ROOMY)
    for headers in ({"x-api-key": key}, {"api-key": key}, {"x-goog-api-key": key}, {"authorization": f"bearer {key}"}):
        assert stand.post("/v1/chat/completions", chat(), None, headers=headers).status_code == 200
        assert stand.post("/v1/messages", message(), None, headers=headers).status_code == 200
    assert stand.hits == 8


def test_a_key_is_found_beside_a_value_that_is_none_of_ours(stand: Stand) -> None:
    key = stand.open(ROOMY)
    headers = {"x-api-key": key, "authorization": "Bearer sk-somebody-else"}
    assert stand.post("/v1/messages", message(), None, headers=headers).status_code == 200


def test_two_different_keys_are_refused_and_the_same_twice_is_one(stand: Stand) -> None:
    one, other = stand.open_all(ROOMY, "$-1: {budget: $}\n$-2: {budget: $}").values()
    told = refused(stand.post("/v1/messages", message(), one, headers={"x-api-key": other}), 401, "key_invalid")
    assert "two different keys" in told["message"]
    nothing_happened(stand)
    assert stand.post("/v1/messages", message(), one, headers={"x-api-key": one}).status_code == 200


@both
@pytest.mark.parametrize("key", [None, "", "sk-not-one-of-ours", "sg-short", "sg-" + "x" * 40, "sg-" + "x" * 100_0])
def test_without_a_known_key_nothing_is_looked_at(stand: Stand, dialect: str, key: str | None) -> None:
    response = stand.call(dialect, key)
    told = refused(response, 401, "key_invalid")
    assert "keys create" in told["next_action"]
    assert key is None or len(key) < 5 or key not in response.text
    nothing_happened(stand)


def test_a_key_in_the_query_opens_nothing_here_and_is_nowhere_logged(stand: Stand) -> None:
    key = stand.open(ROOMY)
    refused(stand.post(f"/v1/chat/completions?key={key}", chat(), None), 401, "key_invalid")
    refused(stand.post(f"/v1/chat/completions?key={key}", chat(), key), 400, "request_invalid")
    nothing_happened(stand)
    assert key not in stand.log.getvalue()


@both
def test_a_revoked_key_is_refused_from_the_next_call_on_though_it_is_remembered(stand: Stand, dialect: str) -> None:
    keys = stand.open_all(ROOMY, "$-one: {budget: $}\n$-two: {budget: $}")
    (name, key), (_, other) = keys.items()
    assert stand.call(dialect, key).status_code == 200
    assert stand.call(dialect, other).status_code == 200
    stand.admin.keys.revoke(name, by="ana")
    assert "revoked" in refused(stand.call(dialect, key), 401, "key_invalid")["message"]
    assert stand.call(dialect, other).status_code == 200
    assert stand.hits == 3


def test_a_key_expires_at_its_instant_though_it_is_remembered(stand: Stand) -> None:
    at = stand.clock() + timedelta(seconds=30)
    key = stand.open(ROOMY, f'$-one: {{budget: $, expires: "{at:%Y-%m-%dT%H:%M:%SZ}"}}')
    assert stand.chat(key).status_code == 200
    stand.clock.turn(seconds=31)
    assert "expired" in refused(stand.chat(key), 401, "key_invalid")["message"]
    assert stand.hits == 1


def test_a_key_that_was_moved_counts_on_its_new_budget_at_once_though_it_is_remembered(stand: Stand) -> None:
    """G10: a budget comes from the key as it stands."""
    budgets = "$/a: {limits: {usd: {day: 1}}}\n$/b: {limits: {usd: {day: 1}}}"
    (key,) = stand.open_all(budgets, "$-one: {budget: $/a}").values()
    assert stand.chat(key).status_code == 200
    stand.open_all(budgets, "$-one: {budget: $/b}")
    assert stand.chat(key).status_code == 200
    assert [one.path for one in stand.reservations()] == [f"{stand.root}/a", f"{stand.root}/b"]
    stand.audited()


# --- models, routes, prices


@both
def test_a_model_that_the_key_may_not_call_is_refused_and_the_allowed_ones_named(stand: Stand, dialect: str) -> None:
    key = stand.open(ROOMY, "$-one: {budget: $, models: [two]}")
    told = refused(stand.call(dialect, key), 403, "model_not_allowed")
    assert "two" in told["next_action"]
    nothing_happened(stand)


@both
@pytest.mark.parametrize("model", ["nobody-knows", "gpt2", "GPT", "gpt ", "gpt/demo", "demo"])
def test_a_name_is_exact_and_anything_close_to_it_is_not_found(stand: Stand, dialect: str, model: str) -> None:
    """B12: never a prefix, never the closest."""
    refused(stand.call(dialect, stand.open(ROOMY), model=model), 404, "not_found")
    nothing_happened(stand)


def test_a_route_of_the_other_dialect_is_not_found_on_this_path(stand: Stand) -> None:
    key = stand.open(ROOMY)
    assert "anthropic dialect" in refused(stand.chat(key, model="claude"), 404, "not_found")["message"]
    assert "openai dialect" in refused(stand.message(key, model="gpt"), 404, "not_found")["message"]
    nothing_happened(stand)


UNPRICED = """\
  unpriced: [{provider: gpt-host, model: nobody-knows}]
  unpriced-claude: [{provider: claude-host, model: nobody-knows}]
  half: [{provider: gpt-host, model: demo}, {provider: gpt-host, model: x-1}, {provider: gpt-host, model: x-2}]
"""


def test_a_model_without_a_price_is_refused_by_its_name_its_provider_and_how_many_more_there_are(stand: Stand) -> None:
    """B09: unknown is not free."""
    key = stand.open(ROOMY, routes=UNPRICED)
    told = refused(stand.chat(key, model="half"), 402, "price_unknown")
    assert "x-1" in told["message"]
    assert "gpt-host" in told["message"]
    assert "1 further candidate" in told["message"]
    refused(stand.message(key, model="unpriced-claude"), 402, "price_unknown")
    nothing_happened(stand)


def test_an_unbudgeted_caller_passes_without_a_price_and_is_recorded(stand: Stand) -> None:
    key = stand.open("$: {unbudgeted: true}", routes=UNPRICED)
    response = stand.chat(key, model="unpriced", max_completion_tokens=...)
    assert response.status_code == 200
    assert "x-spendgate-cost-usd" not in response.headers
    one = stand.reservation()
    assert (one.state, one.unpriced, one.asked.usd) == ("settled", True, 0)
    assert one.usage is not None
    # What nobody bounded is not stamped either.
    assert "max_completion_tokens" not in stand.calls[0].field_names


def test_an_unbudgeted_caller_of_a_priced_model_is_counted_in_money(stand: Stand) -> None:
    key = stand.open("$: {unbudgeted: true}")
    assert stand.chat(key).status_code == 200
    assert stand.state().counters["usd.life"] == stand.book.billed_picodollars
    stand.audited()


def test_an_absent_cap_is_stamped_and_the_stamp_is_what_was_bounded(stand: Stand) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}}, default_output_tokens: 77}")
    response = stand.chat(key, max_completion_tokens=...)
    assert response.headers["x-spendgate-output-cap"] == "77"
    assert stand.calls[0].output_cap == 77
    assert stand.reservation().output_cap == 77


# --- runs


RUNS = '$: {limits: {usd: {day: 1}}, runs: {limits: {usd: {life: "0.0004"}}, expire_after: 30m}}'


def run(stand: Stand, key: str, name: str) -> Any:
    return stand.chat(key, headers={"x-spendgate-run": name})


def test_a_run_begins_with_its_first_call_and_its_own_limit_holds_for_life(stand: Stand) -> None:
    key = stand.open(RUNS)
    assert [run(stand, key, "4471").status_code for _ in range(2)] == [200, 200]
    told = refused(run(stand, key, "4471"), 402, "over_budget")
    assert told["budget"] == f"{stand.root}/run:4471"
    assert told["resets_at"] is None
    assert run(stand, key, "4472").status_code == 200
    assert stand.state("$/run:4472").counters["usd.life"] > 0
    stand.audited()


def test_a_run_expires_by_the_policy_of_its_first_call(stand: Stand) -> None:
    key = stand.open(RUNS)
    assert run(stand, key, "a").status_code == 200
    stand.clock.turn(minutes=31)
    assert "expired" in refused(run(stand, key, "a"), 402, "budget_stopped")["message"]
    assert run(stand, key, "b").status_code == 200


def test_runs_of_one_name_below_two_agents_are_two_runs(stand: Stand) -> None:
    """B32: a run id counts inside its own agent alone."""
    policy = '{runs: {limits: {usd: {life: "0.0003"}}}, limits: {usd: {day: 1}}}'
    one, other = stand.open_all(f"$/a: {policy}\n$/b: {policy}", "$-a: {budget: $/a}\n$-b: {budget: $/b}").values()
    assert run(stand, one, "r").status_code == 200
    refused(run(stand, one, "r"), 402, "over_budget")
    assert run(stand, other, "r").status_code == 200


def test_a_new_run_widens_no_limit_above_it(stand: Stand) -> None:
    """B32: what a caller may name cannot give it more."""
    key = stand.open('$: {limits: {usd: {day: "0.0003"}}, runs: {limits: {usd: {life: 1}}}}')
    assert run(stand, key, "one").status_code == 200
    assert refused(run(stand, key, "two"), 402, "over_budget")["budget"] == stand.root
    assert stand.hits == 1


@pytest.mark.parametrize("name", ["", "a/b", "-a", "a" * 65, "ü", "../x", "a b"])
def test_a_run_whose_name_is_not_allowed_is_refused_by_the_header_s_name(stand: Stand, name: str) -> None:
    key = stand.open(RUNS)
    response = stand.post("/v1/chat/completions", chat(), key, headers={"x-spendgate-run": name.encode("latin-1")})
    told = refused(response, 400, "request_invalid")
    assert told["field"] == "x-spendgate-run"
    nothing_happened(stand)


def test_a_run_where_the_budget_allows_none_is_refused(stand: Stand) -> None:
    told = refused(run(stand, stand.open(ROOMY), "r"), 400, "request_invalid")
    assert "allows no runs" in told["message"]
    nothing_happened(stand)


def test_a_warm_call_of_a_run_costs_one_round_trip_before_egress_and_one_after(stand: Stand) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}}, runs: {limits: {usd: {life: 1}}}}")
    run(stand, key, "r")
    stand.store.operations.clear()
    assert run(stand, key, "r").status_code == 200
    assert stand.store.operations == ["TransactWriteItems", "TransactWriteItems"]


def test_a_run_that_another_gateway_has_begun_is_found_by_its_first_call_here(stand: Stand) -> None:
    key = stand.open(RUNS)
    assert [run(stand, key, "r").status_code for _ in range(2)] == [200, 200]
    # What this gateway knows of the run is forgotten, as it is by one that has just started.
    stand.wired.directory.forget()
    assert refused(run(stand, key, "r"), 402, "over_budget")["budget"] == f"{stand.root}/run:r"
    stand.audited()


def test_a_run_that_was_stopped_passes_again_as_soon_as_it_is_resumed(stand: Stand) -> None:
    key = stand.open("$: {limits: {usd: {day: 1}}, runs: {limits: {usd: {life: 1}}}}")
    assert run(stand, key, "r").status_code == 200
    path = f"{stand.root}/run:r"
    stand.admin.stop(path, reason="it loops", by="ana")
    assert refused(run(stand, key, "r"), 402, "budget_stopped")["budget"] == path
    stand.admin.resume(path, reason="mended", by="ana")
    assert run(stand, key, "r").status_code == 200
    stand.audited()


def test_a_run_shows_its_windows_to_its_own_key(stand: Stand) -> None:
    key = stand.open(RUNS)
    run(stand, key, "r")
    seen = stand.get("/v1/budget", key, headers={"x-spendgate-run": "r"}).json()
    assert seen["budget"] == f"{stand.root}/run:r"
    assert seen["budgets"][-1]["windows"][0]["committed"] == COST
    unknown = stand.get("/v1/budget", key, headers={"x-spendgate-run": "never-seen"}).json()
    assert unknown["budget"] == stand.root


# --- idempotency


def once(stand: Stand, key: str, name: str, *, header: str = "idempotency-key", **fields: Any) -> Any:
    return stand.chat(key, headers={header: name}, **fields)


@pytest.mark.parametrize("header", ["idempotency-key", "x-spendgate-request-id"])
def test_a_request_that_comes_twice_is_sent_once_and_the_second_told_of_the_first(stand: Stand, header: str) -> None:
    key = stand.open(ROOMY)
    first = once(stand, key, "a", header=header)
    told = refused(once(stand, key, "a", header=header), 409, "duplicate_request")
    assert told["reservation"] == first.headers["x-spendgate-reservation"]
    assert told["state"] == "settled"
    assert stand.hits == 1
    stand.audited()


def test_a_request_that_comes_again_while_the_first_is_in_flight_is_not_sent_either(stand: Stand) -> None:
    key = stand.open(ROOMY)
    stand.behave("slow", delay_seconds=1.0)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(once, stand, key, "a")
        stand.until(lambda: stand.hits == 1)
        told = refused(once(stand, key, "a"), 409, "duplicate_request")
        assert first.result().status_code == 200
    assert told["state"] == "in_flight"
    assert stand.hits == 1


def test_an_idempotency_key_with_another_body_is_a_conflict(stand: Stand) -> None:
    key = stand.open(ROOMY)
    once(stand, key, "a")
    refused(once(stand, key, "a", max_completion_tokens=19), 409, "request_conflict")
    assert stand.hits == 1


def test_an_idempotency_key_of_a_refused_request_may_be_used_again(stand: Stand) -> None:
    (key,) = stand.open_all('$: {limits: {usd: {day: "0.0001"}}}', "$-one: {budget: $}").values()
    refused(once(stand, key, "a"), 402, "request_too_expensive")
    stand.open_all(ROOMY, "$-one: {budget: $}")
    assert once(stand, key, "a").status_code == 200
    assert stand.hits == 1


def test_idempotency_keys_of_two_budgets_are_two(stand: Stand) -> None:
    one, other = stand.open_all(
        "$/a: {limits: {usd: {day: 1}}}\n$/b: {limits: {usd: {day: 1}}}", "$-a: {budget: $/a}\n$-b: {budget: $/b}"
    ).values()
    assert [once(stand, key, "same").status_code for key in (one, other)] == [200, 200]


@pytest.mark.parametrize("name", [b"", b"a" * 257, b"\xff", b"a\tb"])
def test_an_idempotency_key_that_is_none_is_refused_by_its_name(stand: Stand, name: bytes) -> None:
    key = stand.open(ROOMY)
    response = stand.post("/v1/chat/completions", chat(), key, headers={"idempotency-key": name})
    assert refused(response, 400, "request_invalid")["field"] == "idempotency-key"
    nothing_happened(stand)


# --- bad input


@both
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b'"text"',
        b"{",
        b'{"model": "gpt"}',
        b'{"model": "gpt", "messages": []}',
        b'{"model": "gpt", "model": "gpt", "messages": [{"role": "user", "content": "a"}], "max_tokens": 1}',
        b'{"model": NaN}',
        b"\xff\xfe",
        b'{"model": "\xff"}',
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b"[" * 100_000,
    ],
)
def test_a_body_that_cannot_be_read_is_refused_and_nothing_reserved(stand: Stand, dialect: str, body: bytes) -> None:
    path = "/v1/chat/completions" if dialect == "openai" else "/v1/messages"
    refused(stand.post(path, body, stand.open(ROOMY)), 400, "request_invalid")
    nothing_happened(stand)


@both
@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "zstd", "gzip, identity"])
def test_a_compressed_body_is_refused_by_its_header(stand: Stand, dialect: str, encoding: str) -> None:
    path, body = ("/v1/chat/completions", chat()) if dialect == "openai" else ("/v1/messages", message())
    packed = gzip.compress(str(body).encode())
    response = stand.post(path, packed, stand.open(ROOMY), headers={"content-encoding": encoding})
    assert "content-encoding" in refused(response, 400, "request_invalid")["message"].lower()
    nothing_happened(stand)


@both
def test_a_body_above_the_limit_is_refused_before_it_is_read_to_its_end(stand: Stand, dialect: str) -> None:
    path = "/v1/chat/completions" if dialect == "openai" else "/v1/messages"
    told = refused(stand.post(path, b" " * 10_000_001, stand.open(ROOMY)), 400, "request_invalid")
    assert "10000000 bytes" in told["message"]
    nothing_happened(stand)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/responses/",
        "/v1/responses/compact",
        "/v1/responses/input_tokens",
        "/v1/rerank",
        "/v1/batches",
        "/v1/images/generations",
        "/openai/v1/chat/completions",
        "/chat/completions",
        "/v1/chat/completions/",
        "/v1//chat/completions",
        "/v1/messages/batches",
        "/v1/messages/",
        "/",
        "/v1/files",
        "/v1/chat/completions/x",
        "/V1/chat/completions",
        "/v1/chat%2fcompletions/../../",
        "/docs",
        "/admin",
    ],
)
def test_a_path_that_is_not_served_is_a_404_and_never_a_way_around(stand: Stand, path: str) -> None:
    """B33: no proxying of what is not priced."""
    key = stand.open(ROOMY)
    for response in (stand.post(path, chat(), key), stand.get(path, key)):
        refused(response, 404, "not_found")
    nothing_happened(stand)


def test_another_method_is_a_404_in_the_shape_of_the_sdk_that_asks(stand: Stand) -> None:
    key = stand.open(ROOMY)
    assert stand.get("/v1/chat/completions", key).json()["error"]["code"] == "not_found"
    assert stand.get("/v1/messages", key).json()["error"]["details"]["error_code"] == "not_found"
    anthropic = stand.get("/v1/nothing", key, headers={"anthropic-version": "2023-06-01"}).json()
    assert anthropic["type"] == "error"
    assert anthropic["error"]["type"] == "not_found_error"


@pytest.mark.parametrize(
    "fields",
    [{"metadata": {"budget": "other"}}, {"user": "other-team"}, {"metadata": {"team": "x", "run": "y"}}],
)
def test_nothing_in_a_body_or_a_header_chooses_another_budget(stand: Stand, fields: dict[str, Any]) -> None:
    """B32, G10: the budget comes from the key."""
    key = stand.open("$: {limits: {usd: {day: 1}}}\n$/a: {limits: {usd: {day: 1}}}")
    headers = {"x-spendgate-budget": "other", "x-budget": "other", "openai-organization": "other", "x-team": "other"}
    assert stand.chat(key, headers=headers, **fields).status_code == 200
    assert stand.reservation().path == f"{stand.root}/a"


def test_a_budget_field_in_the_body_is_refused_by_its_name(stand: Stand) -> None:
    """B32: what is unknown is refused, so that nobody believes in it."""
    told = refused(stand.chat(stand.open(ROOMY), budget="other"), 402, "cost_bound_unknown")
    assert "budget" in told["message"]
    nothing_happened(stand)


# --- what a key may look at


def test_a_key_sees_every_window_of_every_budget_on_its_path(stand: Stand) -> None:
    key = stand.open("$: {limits: {usd: {month: 5, day: 1}}}\n$/a: {limits: {usd: {hour: 1}, requests: {minute: 9}}}")
    stand.chat(key)
    seen = stand.get("/v1/budget", key).json()
    assert seen["budget"] == f"{stand.root}/a"
    assert [budget["path"] for budget in seen["budgets"]] == [stand.root, f"{stand.root}/a"]
    windows = {(one["measure"], one["window"]): one["committed"] for one in seen["budgets"][1]["windows"]}
    assert windows == {("usd", "hour"): COST, ("requests", "minute"): "1"}


def test_a_key_sees_its_own_reservations_and_no_others(stand: Stand) -> None:
    one, other = stand.open_all(
        "$/a: {limits: {usd: {day: 1}}}\n$/b: {limits: {usd: {day: 1}}}", "$-a: {budget: $/a}\n$-b: {budget: $/b}"
    ).values()
    made = stand.chat(one).headers["x-spendgate-reservation"]
    assert is_id(made)
    assert stand.get(f"/v1/reservations/{made}", one).json()["state"] == "settled"
    refused(stand.get(f"/v1/reservations/{made}", other), 404, "not_found")
    refused(stand.get("/v1/reservations/no-such-id", one), 404, "not_found")
    refused(stand.get(f"/v1/reservations/{made}", None), 401, "key_invalid")


def test_the_health_path_needs_no_key_and_asks_nobody(stand: Stand) -> None:
    assert stand.get("/healthz", None).json() == {"status": "ok"}
    assert stand.store.operations == []


# --- windows


def test_windows_are_those_of_the_reservation_s_own_instant(stand: Stand) -> None:
    """B28: what is reserved a moment before midnight counts on the day that ends."""
    key = stand.open('$: {limits: {usd: {day: "0.0003"}}}')
    stand.clock.set(datetime(2028, 2, 29, 23, 59, 58, tzinfo=UTC))
    assert stand.chat(key).status_code == 200
    told = refused(stand.chat(key), 402, "over_budget")
    assert told["resets_at"] == "2028-03-01T00:00:00Z"
    stand.clock.set(datetime(2028, 3, 1, 0, 0, 0, tzinfo=UTC))
    assert stand.chat(key).status_code == 200
    counters = stand.state().counters
    assert counters["usd.day.2028-02-29"] == counters["usd.day.2028-03-01"] > 0


@pytest.mark.parametrize("model", ["a" * 2043, "a" * 100_000, "\N{SNOWMAN}" * 700])
def test_a_model_whose_name_is_longer_than_any_key_of_the_store_is_no_route(stand: Stand, model: str) -> None:
    response = stand.chat(stand.open("$: {limits: {usd: {day: 1}}}"), model=model)
    assert (response.status_code, stand.hits) == (404, 0)
    assert stand.reservations() == ()
