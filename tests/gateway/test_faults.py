"""Faults seen in the open in other gateways, each as a call through this one; the number in a docstring is its name."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from spendgate.core.budget import is_within
from tests.gateway.stand import Stand, chat, facts
from tests.store.faults import CONFLICT, MIXED_CONFLICT, Fault

# Short, so that a store that stays in conflict is soon given up.
SETTINGS = {"ledger_deadline_seconds": 2, "call_seconds_max": 30}

ROOMY = "$: {limits: {usd: {day: 1}}}"
BOUND, COST = 232_500_000, 135_000_000

both = pytest.mark.parametrize("dialect", ["openai", "anthropic"])


def code(response: Any) -> tuple[int, str]:
    return response.status_code, facts(response)["code"]


# --- prices


def test_no_second_formula_stands_beside_the_one_that_reserves_and_settles(stand: Stand) -> None:
    """B03: a fully cached call is priced by its buckets, like any other."""
    key = stand.open(ROOMY)
    usage = {"prompt_tokens": 12, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 12}}
    stand.behave("usage", usage=usage)
    stand.chat(key)
    # Without a cached rate in the row, what was read costs what input costs.
    assert stand.state().counters["usd.life"] == 12 * 2_500_000 + 4 * 10_000_000
    one = stand.ended()
    assert one.actual is not None
    assert (one.state, one.actual.usd, one.asked.usd) == ("settled", stand.state().counters["usd.life"], BOUND)
    assert (stand.hits, stand.state().reserved) == (1, 0)


PRICED = """\
  house: [{provider: gpt-host, model: house}]
  arn: [{provider: gpt-host, model: "arn:aws:bedrock:eu-west-1:1:application-inference-profile/x"}]
  tuned: [{provider: gpt-host, model: "ft:demo:org::id"}]
"""


def test_an_operator_s_own_price_is_what_the_budget_is_checked_with(stand: Stand) -> None:
    """B10: no stand-in of price zero."""
    key = stand.open('$: {limits: {usd: {day: "0.0005"}}}')
    # "dear" is priced by the file alone, at twice the rates.
    assert stand.chat(key, model="two", max_completion_tokens=20).status_code == 200
    assert stand.reservation().asked.usd == 2 * BOUND
    stand.ended()
    spent = stand.state().counters["usd.life"]
    assert spent > 0
    assert code(stand.chat(key, model="two")) == (402, "over_budget")
    assert (stand.hits, stand.state().counters["usd.life"], stand.state().reserved) == (1, spent, 0)


@pytest.mark.parametrize("route", ["house", "arn", "tuned"])
def test_a_name_that_looks_like_a_priced_one_has_no_price(stand: Stand, route: str) -> None:
    """B11, B15: an ARN is opaque, and a fine-tuned name is not its base."""
    key = stand.open(ROOMY, routes=PRICED)
    assert code(stand.chat(key, model=route)) == (402, "price_unknown")
    assert (stand.hits, stand.reservations()) == (0, ())


def test_unpriced_calls_at_once_are_all_refused(stand: Stand) -> None:
    """B13: no bound, no reservation, no egress."""
    key = stand.open(ROOMY, routes=PRICED)
    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(lambda _: stand.chat(key, model="house"), range(10)))
    assert {code(answer) for answer in answers} == {(402, "price_unknown")}
    assert (stand.hits, stand.reservations()) == (0, ())


def test_a_price_that_is_gone_at_the_settlement_changes_nothing(stand: Stand) -> None:
    """B13: settled with the rows that were pinned when it was reserved."""
    key = stand.open(ROOMY)
    stand.behave("slow", delay_seconds=0.5)
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(stand.chat, key)
        stand.until(lambda: stand.hits == 1)
        stand.reader.client.delete_item(
            TableName=stand.settings.config_table,
            Key={"pk": {"S": "PRICE#gpt-host#demo"}, "sk": {"S": "1970-01-01T00:00:00.000000Z"}},
        )
        prices = stand.admin.config.prices("gpt-host", "demo")
        assert call.result().status_code == 200
    assert prices == ()
    assert stand.state().counters["usd.life"] == COST == stand.book.billed_picodollars
    stand.audited()
    # The next hour's test finds its price again.
    stand.wired.directory.forget()
    assert code(stand.chat(key)) == (402, "price_unknown")


# --- admission


def test_of_calls_at_once_on_a_run_as_many_pass_as_fit(stand: Stand) -> None:
    """B17: the reservation is inside the condition, not a check before an addition."""
    key = stand.open('$: {limits: {usd: {day: 1}}, runs: {limits: {usd: {life: "0.0007"}}}}')
    stand.behave("slow", delay_seconds=1.0, calls=None)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: stand.chat(key, headers={"x-spendgate-run": "r"}), range(8)))
    assert sorted({answer.status_code for answer in answers}) == [200, 429]
    # Three bounds fit into 0.0007, and none of the others was sent.
    assert stand.hits == 3
    assert [answer.status_code for answer in answers].count(200) == 3
    assert stand.state("$/run:r").counters["usd.life"] == stand.book.billed_picodollars
    stand.audited()


def test_a_budget_that_cannot_be_read_denies(stand: Stand) -> None:
    """B19: a link that leads nowhere is no missing limit."""
    key = stand.open("$: {limits: {usd: {day: 1}}}\n$/a: {limits: {usd: {day: 1}}}")
    assert stand.chat(key).status_code == 200
    for path in (stand.root, f"{stand.root}/a"):
        item = {"pk": {"S": f"BUDGET#{path}"}, "sk": {"S": "BUDGET"}}
        stand.reader.client.delete_item(TableName=stand.settings.ledger_table, Key=item)
        assert code(stand.chat(key)) == (401, "key_invalid")
        stand.wired.directory.forget()
        assert code(stand.chat(key)) == (401, "key_invalid")
    assert stand.hits == 1


@both
def test_after_every_kind_of_end_the_counters_are_the_sum_of_the_reservations(stand: Stand, dialect: str) -> None:
    """B21, B23: nothing is held for good by an end that was forgotten, and nothing is freed that may be billed."""
    key = stand.open(ROOMY)
    released = [("refuse", {"status": 429}), ("refuse", {"status": 400})]
    kept = [
        ("reset", {}),
        ("error_after_work", {}),
        ("cut", {"after_frames": 3}),
        ("error_in_stream", {}),
        ("no_usage", {}),
    ]
    settled: list[tuple[str, dict[str, Any]]] = [("ok", {}), ("byte_by_byte", {}), ("gzip", {}), ("model_echo", {})]
    ends: list[tuple[str, dict[str, Any]]] = [*released, *kept, *settled]
    for stream in (False, True):
        for name, options in ends:
            stand.behave(name, **options)
            stand.call(dialect, key, stream=stream)
    stand.until(lambda: all(one.state != "in_flight" for one in stand.reservations()))
    states = [one.state for one in stand.reservations()]
    # An error in a stream is only one in a stream.
    assert states.count("unknown") == 2 * len(kept) - 1
    assert states.count("released") == 2 * len(released)
    assert states.count("settled") == 2 * len(settled) + 1
    assert stand.state().reserved == stand.state().unknown == states.count("unknown") * BOUND
    stand.audited()


@both
@pytest.mark.parametrize("stream", [False, True])
def test_a_stream_that_is_refused_with_429_at_once_gives_its_money_back(
    stand: Stand, dialect: str, stream: bool
) -> None:
    """B23: also where the caller asked for a stream."""
    stand.behave("refuse", status=429)
    assert stand.call(dialect, stand.open(ROOMY), stream=stream).status_code == 429
    assert stand.ended().state == "released"
    assert stand.state().counters.get("usd.life", 0) == 0
    assert (stand.hits, stand.state().reserved) == (1, 0)


def test_a_call_without_a_cap_holds_the_policy_s_default_and_not_the_head_room(stand: Stand) -> None:
    """B24: the stamp bounds what is held."""
    key = stand.open("$: {limits: {usd: {day: 1}}, default_output_tokens: 100}")
    assert stand.chat(key, max_completion_tokens=...).status_code == 200
    assert stand.reservation().asked.usd == 13 * 2_500_000 + 100 * 10_000_000


def test_what_is_only_held_is_told_from_what_is_spent(stand: Stand) -> None:
    """B24, B22: busy while reservations are in the way, over budget when money is; each amount by itself."""
    key = stand.open('$: {limits: {usd: {day: "0.0004"}}}')
    stand.behave("slow", delay_seconds=1.0)
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(stand.chat, key)
        stand.until(lambda: stand.hits == 1)
        busy = stand.chat(key)
        assert call.result().status_code == 200
    assert code(busy) == (429, "budget_busy")
    told = facts(busy)
    assert (told["settled"], told["reserved"], told["unknown"]) == ("0", "0.0002325", "0")
    stand.behave("reset")
    assert stand.chat(key).status_code == 502
    over = stand.chat(key)
    assert code(over) == (402, "over_budget")
    told = facts(over)
    assert (told["settled"], told["reserved"], told["unknown"]) == ("0.000135", "0.0002325", "0.0002325")
    assert told["limit"]["maximum"] == "0.0004"


@pytest.mark.parametrize("fault", [CONFLICT, MIXED_CONFLICT], ids=["conflict", "mixed"])
def test_a_conflict_between_transactions_is_tried_again_and_is_no_denial(stand: Stand, fault: Fault) -> None:
    """B25: only a failed condition by itself denies."""
    key = stand.open(ROOMY)
    with stand.store.answering(fault, times=3):
        assert stand.chat(key).status_code == 200
    assert stand.hits == 1
    stand.audited()


@pytest.mark.parametrize("fault", [CONFLICT, MIXED_CONFLICT], ids=["conflict", "mixed"])
def test_a_conflict_that_does_not_pass_is_a_503_and_nothing_is_sent(stand: Stand, fault: Fault) -> None:
    """B25: out of tries is not 402."""
    key = stand.open(ROOMY)
    with stand.store.answering(fault, times=10_000):
        response = stand.chat(key)
    assert code(response) == (503, "ledger_unavailable")
    assert "retry-after" in response.headers
    assert stand.hits == 0
    assert stand.reservations() == ()


def test_calls_at_once_on_one_budget_are_none_of_them_denied_for_being_at_once(stand: Stand) -> None:
    """B25: twenty at once, all fit, all pass."""
    key = stand.open(ROOMY)
    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(lambda _: stand.chat(key), range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert stand.state().counters["usd.life"] == 20 * COST == stand.book.billed_picodollars
    stand.audited()


def test_an_unbudgeted_caller_is_one_by_declaration_only(stand: Stand) -> None:
    """B30: a budget without a limit above one with a limit is no way around it."""
    key = stand.open('$: {unbudgeted: true}\n$/a: {limits: {usd: {day: "0.0003"}}}')
    assert stand.chat(key).status_code == 200
    assert code(stand.chat(key)) == (402, "over_budget")


def test_what_a_caller_names_moves_no_money_elsewhere(stand: Stand) -> None:
    """B32: everything is booked below the key's own budget."""
    key = stand.open(
        "$/a: {limits: {usd: {day: 1}}, runs: {limits: {usd: {life: 1}}}}\n$/b: {limits: {usd: {day: 1}}}",
        "$-a: {budget: $/a}",
    )
    for run in ("b", f"{stand.root}:b", "run:1"):
        assert stand.chat(key, headers={"x-spendgate-run": run}, user="b").status_code == 200
    assert all(is_within(one.path, f"{stand.root}/a") for one in stand.reservations())
    assert stand.state("$/b").counters == {}


@pytest.mark.parametrize("path", ["/v1/batches", "/v1/messages/batches", "/v1/files", "/v1/rerank"])
def test_what_has_no_price_of_its_own_has_no_path(stand: Stand, path: str) -> None:
    """B33, B52, B53: batches and rerank are not served, so they are not free either."""
    assert code(stand.post(path, chat(), stand.open(ROOMY))) == (404, "not_found")
    assert stand.hits == 0


@both
def test_a_stream_without_usage_costs_its_bound_until_somebody_knows_better(stand: Stand, dialect: str) -> None:
    """B36: asked for upstream; still absent, the money is held."""
    key = stand.open(ROOMY)
    stand.behave("no_usage")
    stand.call(dialect, key, stream=True)
    assert stand.ended().state == "unknown"
    assert stand.state().counters["usd.life"] == stand.state().unknown == BOUND
    assert stand.hits == 1
    stand.audited()


@both
@pytest.mark.parametrize("end", ["cut", "error_in_stream"])
def test_what_was_seen_of_a_broken_stream_is_kept_as_a_floor_and_settles_nothing(
    stand: Stand, dialect: str, end: str
) -> None:
    """B41, B42: neither a guess nor nothing."""
    stand.behave(end, after_frames=6)
    stand.call(dialect, stand.open(ROOMY), stream=True)
    one = stand.ended()
    assert (one.state, one.actual) == ("unknown", None)
    assert stand.state().counters["usd.life"] == stand.state().unknown == BOUND
    assert stand.hits == 1
    stand.audited()
    if dialect == "anthropic":
        assert one.usage is not None
        assert one.usage.input_uncached == 6


class Undecodable:
    """A provider that answers in a compression that it was not asked for, and that nobody here can read."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", b"application/json"), (b"content-encoding", b"zstd")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"\x28\xb5\x2f\xfd" + b"\xff" * 40})


@both
def test_an_answer_that_nobody_can_decode_keeps_its_money(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, dialect: str
) -> None:
    """B44: what cannot be read may have been worked for."""
    key = stand.open(ROOMY)
    monkeypatch.setattr(stand.provider, "_app", Undecodable())
    stand.call(dialect, key)
    assert stand.ended().state == "unknown"
    assert stand.state().counters["usd.life"] == stand.state().unknown == BOUND


# --- money, errors


def test_a_budget_of_exactly_so_many_calls_takes_exactly_so_many(stand: Stand) -> None:
    """B55: no rounding anywhere, so nothing is left over and nothing is missing."""
    # One call's bound, and 24 calls' cost.
    limit = (BOUND + 24 * COST) / 10**12
    key = stand.open(f'$: {{limits: {{usd: {{life: "{limit:.7f}"}}}}}}')
    answers = [stand.chat(key).status_code for _ in range(26)]
    assert answers == [200] * 25 + [402]
    assert stand.state().counters["usd.life"] == 25 * COST
    assert stand.hits == 25


@both
def test_a_refusal_of_money_is_never_a_status_that_clients_repeat(stand: Stand, dialect: str) -> None:
    """B58: 402 and told not to retry; 429 only where waiting helps; never 401, 409 or 5xx."""
    key = stand.open('$: {limits: {usd: {day: "0.0003"}, requests: {minute: 2}}}')
    stand.call(dialect, key)
    over = stand.call(dialect, key)
    assert code(over) == (402, "over_budget")
    assert over.headers["x-should-retry"] == "false"
    assert "retry-after" not in over.headers
    told = facts(over)
    for fact in ("budget", "limit", "settled", "reserved", "unknown", "asked", "resets_at", "next_action"):
        assert told[fact] is not None
    stand.admin.stop(stand.root, reason="enough", by="ana")
    assert code(stand.call(dialect, key)) == (402, "budget_stopped")
