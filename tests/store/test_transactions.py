"""The ledger's writes, read as data: which counters each one changes, and under which conditions."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from spendgate.core.block import Shape
from spendgate.core.bound import Quote
from spendgate.core.budget import Amounts, BudgetPolicy
from spendgate.core.price import PriceRow, RateCard, Rates, Terms
from spendgate.core.route import Candidate
from spendgate.core.usage import Usage
from spendgate.store import events, items
from spendgate.store.transactions import (
    EVICTIONS_MAX,
    STEPS_MAX,
    policy_steps,
    raise_rev_step,
    reserve_steps,
    resolve_steps,
    resume_steps,
    stop_steps,
    trim_steps,
    unknown_steps,
)
from spendgate.store.values import decode, decode_item
from spendgate.store.write import Step, Update
from tests.store.builders import (
    CHARGED,
    NOW,
    RELEASED,
    UNKNOWN,
    a_policy,
    a_reservation,
    a_stop,
    an_event,
    limit_of,
    settled,
    usd_limits,
)

TABLE = "ledger"
DAY, MONTH, LIFE = "usd.day.2026-11-29", "usd.month.2026-11", "usd.life"
BUCKET = "usd.hour.2026-11-29T23:10Z"
PATH = (
    a_policy("acme", rev=3, limits=usd_limits(day=100)),
    a_policy("acme/b", rev=5, limits=(*usd_limits(hour=90), limit_of("requests", "minute", 10))),
)


def update_of(step: Step) -> Mapping[str, Any]:
    return step.write["Update"]


def plain(step: Step, expression: str) -> str:
    """An expression with its names and values put in."""
    write: Any = next(iter(step.write.values()))
    text: str = write.get(expression, "")
    for name, attribute in sorted(write.get("ExpressionAttributeNames", {}).items(), key=lambda pair: -len(pair[0])):
        text = text.replace(name, attribute)
    values = write.get("ExpressionAttributeValues", {})
    for name, value in sorted(values.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(name, repr(decode(value)))
    return text


def added(step: Step) -> dict[str, int]:
    """What an update adds to each counter."""
    clause = re.search(r"ADD (.*?)(?= SET | REMOVE |$)", plain(step, "UpdateExpression"))
    return {} if clause is None else {part.split()[0]: int(part.split()[1]) for part in clause[1].split(", ")}


def conditions(step: Step) -> set[str]:
    """The clauses that must all hold."""
    return set(plain(step, "ConditionExpression").split(" AND "))


def removed(step: Step) -> set[str]:
    clause = re.search(r"REMOVE (.*?)(?= SET | ADD |$)", plain(step, "UpdateExpression"))
    return set() if clause is None else set(clause[1].split(", "))


def test_a_reserve_adds_what_is_asked_to_every_counter_of_every_budget() -> None:
    reservation = a_reservation(PATH, usd=40)

    record, root, leaf = reserve_steps(TABLE, reservation, PATH, evictions={})

    assert record.write["Put"]["Item"]["pk"] == {"S": f"RES#{reservation.id}"}
    assert added(root) == {"reserved": 40, DAY: 40, MONTH: 40, LIFE: 40}
    assert added(leaf) == {
        "reserved": 40,
        DAY: 40,
        MONTH: 40,
        LIFE: 40,
        "usd.hour": 40,
        "requests.minute.2026-11-29T23:14Z": 1,
    }


def test_a_reserve_stands_under_the_revision_the_stop_and_each_limit_less_what_is_asked() -> None:
    record, root, leaf = reserve_steps(TABLE, a_reservation(PATH, usd=40), PATH, evictions={})

    assert conditions(record) == {"attribute_not_exists(pk)"}
    assert conditions(root) == {
        "rev = 3",
        "attribute_not_exists(stop)",
        f"(attribute_not_exists({DAY}) OR {DAY} <= 60)",
    }
    assert conditions(leaf) == {
        "rev = 5",
        "attribute_not_exists(stop)",
        "(attribute_not_exists(usd.hour) OR usd.hour <= 50)",
        "(attribute_not_exists(requests.minute.2026-11-29T23:14Z) OR requests.minute.2026-11-29T23:14Z <= 9)",
    }


def test_a_budget_that_only_observes_has_its_revision_and_stop_as_conditions_and_no_limit() -> None:
    path = (a_policy("acme", rev=3, limits=usd_limits(day=10), mode="observe"),)

    _, root = reserve_steps(TABLE, a_reservation(path, usd=40), path, evictions={})

    assert conditions(root) == {"rev = 3", "attribute_not_exists(stop)"}
    assert added(root)[DAY] == 40


def test_an_eviction_takes_the_buckets_off_the_hour_under_their_values() -> None:
    path = (a_policy("acme", rev=3, limits=usd_limits(hour=90)),)
    old = {"usd.hour.2026-11-29T22:00Z": 30, "usd.hour.2026-11-29T22:05Z": 20}

    _, root = reserve_steps(TABLE, a_reservation(path, usd=40), path, evictions={"acme": old})

    assert added(root)["usd.hour"] == 40 - 50
    assert removed(root) == set(old)
    assert conditions(root) == {
        "rev = 3",
        "attribute_not_exists(stop)",
        "usd.hour.2026-11-29T22:00Z = 30",
        "usd.hour.2026-11-29T22:05Z = 20",
        "(attribute_not_exists(usd.hour) OR usd.hour <= 100)",
    }


def test_the_first_call_of_a_run_makes_its_budget_under_the_condition_that_nobody_has() -> None:
    run = a_policy("acme/run:1", limits=usd_limits(life=90), expires_at=NOW + timedelta(hours=1))
    path = (a_policy("acme", rev=3), run)

    _, _, step = reserve_steps(TABLE, a_reservation(path, usd=40), path, evictions={})

    assert conditions(step) == {"attribute_not_exists(pk)"}
    assert added(step)[LIFE] == 40
    assert "rev = 1" in plain(step, "UpdateExpression")


def test_an_idempotency_key_is_claimed_in_the_same_transaction_below_the_leaf() -> None:
    steps = reserve_steps(TABLE, a_reservation(PATH, idempotency_key="k-1"), PATH, evictions={})

    claim = steps[1]
    assert claim.subject == "idempotency"
    assert claim.write["Put"]["Item"]["pk"] == {"S": "IDEM#acme/b#k-1"}
    assert conditions(claim) == {"attribute_not_exists(pk)"}


def test_a_call_that_costs_nothing_still_writes_so_that_its_conditions_hold() -> None:
    path = (a_policy("acme", rev=3, unbudgeted=True),)

    _, root = reserve_steps(TABLE, a_reservation(path, asked=Amounts()), path, evictions={})

    assert added(root) == {"reserved": 0}
    assert conditions(root) == {"rev = 3", "attribute_not_exists(stop)"}


def test_a_settlement_replaces_what_was_reserved_by_what_it_came_to() -> None:
    reservation = a_reservation(PATH, usd=40)

    record, root, leaf, usage = resolve_steps(TABLE, reservation, settled(25), NOW, expected="in_flight")

    assert conditions(record) == {"state = 'in_flight'"}
    assert removed(record) == {"open_pk", "open_sk"}
    assert added(root) == {"reserved": -40, DAY: -15, MONTH: -15, LIFE: -15}
    assert added(leaf) == {"reserved": -40, DAY: -15, MONTH: -15, LIFE: -15, "usd.hour": -15, BUCKET: 25}
    assert conditions(root) == conditions(leaf) == {"attribute_exists(pk)"}
    assert added(usage) == {"calls": 1, "calls_settled": 1, "cost": 25, "tokens": 7}


def test_a_release_gives_the_money_back_and_keeps_the_request() -> None:
    _, root, leaf, usage = resolve_steps(TABLE, a_reservation(PATH), RELEASED, NOW, expected="in_flight")

    assert added(root) == {"reserved": -40, DAY: -40, MONTH: -40, LIFE: -40}
    assert added(leaf) == {"reserved": -40, DAY: -40, MONTH: -40, LIFE: -40, "usd.hour": -40}
    assert added(usage) == {"calls": 1, "calls_released": 1}


def test_a_charge_of_an_unknown_call_takes_it_off_what_is_reserved_and_unknown_alone() -> None:
    record, root, leaf, usage = resolve_steps(TABLE, a_reservation(PATH), CHARGED, NOW, expected="unknown")

    assert conditions(record) == {"state = 'unknown'"}
    assert added(root) == {"reserved": -40, "unknown": -40}
    assert added(leaf) == {"reserved": -40, "unknown": -40, BUCKET: 40}
    assert added(usage)["cost"] == 40


def test_an_unknown_outcome_frees_nothing_and_keeps_the_reservation_open() -> None:
    record, root, leaf = unknown_steps(TABLE, a_reservation(PATH), UNKNOWN, NOW)

    assert conditions(record) == {"state = 'in_flight'"}
    assert removed(record) == set()
    assert "expires_at" not in plain(record, "UpdateExpression")
    assert added(root) == added(leaf) == {"unknown": 40}
    assert conditions(root) == conditions(leaf) == {"attribute_exists(pk)"}


def test_an_unknown_outcome_stops_the_budgets_that_asked_for_it_and_no_other() -> None:
    path = (a_policy("acme", rev=3), a_policy("acme/b", rev=1, stop_on_unknown=True))

    _, root, leaf = unknown_steps(TABLE, a_reservation(path), UNKNOWN, NOW)

    assert added(leaf) == {"unknown": 40, "rev": 1}
    assert "stop = if_not_exists(stop" in plain(leaf, "UpdateExpression")
    assert "stop" not in plain(root, "UpdateExpression")


def test_a_bill_above_the_bound_is_booked_and_stops_the_leaf_in_the_same_transaction() -> None:
    steps = resolve_steps(TABLE, a_reservation(PATH, usd=40), settled(41), NOW, expected="in_flight")
    _, root, leaf, usage = steps[:4]

    assert added(root)[DAY] == 1
    assert "stop" not in plain(root, "UpdateExpression")
    assert (added(leaf)[DAY], added(leaf)["rev"]) == (1, 1)
    assert "stop = if_not_exists(stop" in plain(leaf, "UpdateExpression")
    assert added(usage)["cost"] == 41


def test_a_broken_bound_blocks_its_feature_where_it_was_served_and_keeps_the_first_cause() -> None:
    reservation = a_reservation(PATH, usd=40, shape=Shape(features=("image", "text"), stream=True))
    served = replace(settled(41), provider="openai", model="house")

    *_, block = resolve_steps(TABLE, reservation, served, NOW, expected="in_flight")

    assert block.subject == "block"
    assert decode_item(update_of(block)["Key"]) == {"pk": "BLOCK", "sk": "openai#house#image"}
    assert added(block) == {"violations": 1}
    for name in ("reservation", "at", "reserved", "billed", "shape"):
        assert f"{name} = if_not_exists({name}, " in plain(block, "UpdateExpression")


def test_a_broken_bound_of_which_nobody_knows_who_served_blocks_all_that_may_have() -> None:
    quotes = tuple(Quote(candidate=Candidate(provider="openai", model=one), rows=(), terms=Terms()) for one in "ab")
    reservation = a_reservation(PATH, usd=40, quotes=quotes)
    billed = replace(settled(41), provider=None, model=None)

    steps = resolve_steps(TABLE, reservation, billed, NOW, expected="in_flight")

    keys = [decode_item(update_of(one)["Key"])["sk"] for one in steps if one.subject == "block"]
    assert keys == ["openai#a#text", "openai#b#text"]


def test_a_bill_of_exactly_the_bound_stops_nothing() -> None:
    steps = resolve_steps(TABLE, a_reservation(PATH, usd=40), settled(40), NOW, expected="in_flight")

    assert not any("stop" in plain(step, "UpdateExpression") for step in steps)


def test_a_call_that_nobody_could_price_stops_nothing_whatever_it_cost() -> None:
    reservation = a_reservation(PATH, asked=Amounts(requests=1), unpriced=True)

    steps = resolve_steps(TABLE, reservation, settled(41), NOW, expected="in_flight")

    assert not any("stop" in plain(step, "UpdateExpression") for step in steps)


def test_the_usage_record_counts_each_bucket_under_the_price_row_of_the_candidate_that_served() -> None:
    rates = Rates(input=1, cache_read=1, cache_write=1, cache_write_long=2, output=3)
    quotes = tuple(
        Quote(
            candidate=Candidate(provider="openai", model=model),
            rows=(PriceRow(provider="openai", model=model, valid_from=NOW, card=RateCard(rates=rates)),),
            terms=Terms(),
        )
        for model in ("small", "house")
    )
    usage = Usage(input_uncached=3, output=4, fees=(("web_search", 2),))

    steps = resolve_steps(
        TABLE, a_reservation(PATH, quotes=quotes), settled(25, usage=usage), NOW, expected="in_flight"
    )

    record = steps[-1]
    assert update_of(record)["Key"] == {
        "pk": {"S": "USAGE#acme/b"},
        "sk": {"S": "2026-11-29#openai#house#openai#house#2026-11-29T23:14:30Z"},
    }
    assert added(record) == {
        "calls": 1,
        "calls_settled": 1,
        "cost": 25,
        "tokens": 7,
        "input_uncached": 3,
        "output": 4,
        "fee:web_search": 2,
    }


def test_a_stop_keeps_what_stands_and_raises_the_revision() -> None:
    (step,) = stop_steps(TABLE, "acme", a_stop("enough"), NOW)

    assert conditions(step) == {"attribute_exists(pk)"}
    assert added(step) == {"rev": 1}
    assert "stop = if_not_exists(stop, {'reason': 'enough'" in plain(step, "UpdateExpression")


def test_a_resume_needs_the_revision_that_was_read() -> None:
    (step,) = resume_steps(TABLE, "acme", 7)

    assert conditions(step) == {"attribute_exists(pk)", "rev = 7"}
    assert removed(step) == {"stop", "temporary"}
    assert "rev = 8" in plain(step, "UpdateExpression")


def test_a_policy_is_written_over_the_revision_that_was_read_and_touches_no_counter_and_no_stop() -> None:
    (new,) = policy_steps(TABLE, a_policy(limits=usd_limits(day=1)), NOW, expected_rev=None)
    (over,) = policy_steps(TABLE, a_policy(limits=usd_limits(day=1)), NOW, expected_rev=7)

    assert conditions(new) == {"attribute_not_exists(pk)"}
    assert conditions(over) == {"rev = 7"}
    assert added(over) == {}
    names = set(update_of(over)["ExpressionAttributeNames"].values())
    assert names.isdisjoint({"stop", "reserved", "unknown", "created_at"})
    assert not any(items.is_counter(name) for name in names)


def test_a_key_raises_the_revision_of_a_budget_that_exists() -> None:
    step = raise_rev_step(TABLE, "acme")

    assert conditions(step) == {"attribute_exists(pk)"}
    assert added(step) == {"rev": 1}


def test_a_trim_takes_each_bucket_off_its_hour_under_its_value() -> None:
    old = {"usd.hour.2026-11-29T22:00Z": 30, "usd.hour.2026-11-29T22:05Z": 20}

    (step,) = trim_steps(TABLE, "acme", {"usd.hour": old}, ["usd.day.2026-11-28"])

    assert added(step) == {"usd.hour": -50}
    assert removed(step) == {*old, "usd.day.2026-11-28"}
    assert conditions(step) == {
        "attribute_exists(pk)",
        "usd.hour.2026-11-29T22:00Z = 30",
        "usd.hour.2026-11-29T22:05Z = 20",
    }


def test_more_than_a_budget_ever_allows_makes_no_transaction_since_a_counter_not_begun_would_pass() -> None:
    with pytest.raises(ValueError, match="more is asked"):
        reserve_steps(TABLE, a_reservation(PATH, usd=101), PATH, evictions={})


def test_a_limit_whose_counter_the_reservation_does_not_move_makes_no_transaction() -> None:
    reservation = a_reservation(PATH)
    with_hour = (replace(PATH[0], limits=usd_limits(hour=90)), PATH[1])

    with pytest.raises(ValueError, match="does not count what limits budget acme"):
        reserve_steps(TABLE, reservation, with_hour, evictions={})


def test_holds_of_another_path_make_no_transaction() -> None:
    with pytest.raises(ValueError, match="does not count"):
        reserve_steps(TABLE, a_reservation(PATH), (PATH[1], PATH[0]), evictions={})


@pytest.mark.parametrize("amounts", [Amounts(usd=-1), Amounts(requests=-1), Amounts(tokens=-1), Amounts(tool_calls=-1)])
def test_a_negative_amount_makes_no_transaction(amounts: Amounts) -> None:
    settlement = replace(settled(0), actual=amounts)

    with pytest.raises(ValueError, match="not negative"):
        reserve_steps(TABLE, a_reservation(PATH, asked=amounts), PATH, evictions={})
    with pytest.raises(ValueError, match="not negative"):
        resolve_steps(TABLE, a_reservation(PATH), settlement, NOW, expected="in_flight")


def test_a_settlement_without_amounts_makes_no_transaction() -> None:
    with pytest.raises(ValueError, match="names its amounts"):
        resolve_steps(TABLE, a_reservation(PATH), replace(settled(0), actual=None), NOW, expected="in_flight")


def test_what_does_not_end_a_reservation_resolves_none() -> None:
    with pytest.raises(ValueError, match="does not end"):
        resolve_steps(TABLE, a_reservation(PATH), UNKNOWN, NOW, expected="in_flight")


@pytest.mark.parametrize(
    "write",
    [
        lambda update: update.set({"pk": "x"}),
        lambda update: update.remove("sk"),
        lambda update: update.add({"pk": 1}),
        lambda update: update.set({"a": 1}).set({"a": 2}),
        lambda update: update.add({"a": 1}).remove("a"),
        lambda update: update.set_once("a", 1).add({"a": 1}),
        lambda update: update.touch("a").add({"a": 1}),
    ],
    ids=["set key", "remove key", "add key", "set twice", "add and remove", "latch and add", "touch and add"],
)
def test_an_update_refuses_key_attributes_and_an_attribute_written_twice(write: Callable[[Update], Update]) -> None:
    with pytest.raises(ValueError, match="cannot be written here"):
        write(Update(TABLE, {"pk": "x", "sk": "y"}))


def test_an_update_without_a_change_says_so() -> None:
    update = Update(TABLE, {"pk": "x", "sk": "y"}).add({"a": 0}).exists()

    assert not update.writes


def all_steps() -> list[Step]:
    deep = tuple(
        a_policy("/".join("abcdefgh"[: depth + 1]), rev=depth + 1, limits=every_limit(), stop_on_unknown=True)
        for depth in range(8)
    )
    reservation = a_reservation(deep, idempotency_key="k")
    old = {f"usd.hour.2026-11-{day:02}T00:{minute:02}Z": 1 for day in range(1, 5) for minute in range(0, 60, 5)}
    many = {f"usd.hour.2026-{i // 28 + 1:02}-{i % 28 + 1:02}T00:00Z": 10**35 for i in range(EVICTIONS_MAX)}
    return [
        *reserve_steps(TABLE, reservation, deep, evictions={"a": old, "a/b": many}),
        *reserve_steps(TABLE, reservation, (replace(deep[0], rev=0), *deep[1:]), evictions={}),
        *unknown_steps(TABLE, reservation, UNKNOWN, NOW),
        *resolve_steps(TABLE, reservation, settled(4000, usage=Usage(output=3)), NOW, expected="unknown"),
        *resolve_steps(TABLE, reservation, RELEASED, NOW, expected="in_flight"),
        *resolve_steps(TABLE, reservation, CHARGED, NOW, expected="in_flight"),
        *stop_steps(TABLE, "a", a_stop(), NOW),
        *resume_steps(TABLE, "a", 1),
        *policy_steps(TABLE, deep[0], NOW, expected_rev=None),
        *policy_steps(TABLE, a_policy("a"), NOW, expected_rev=3),
        *trim_steps(TABLE, "a", {"usd.hour": many}, [f"usd.day.2026-11-{day:02}" for day in range(1, 29)]),
        raise_rev_step(TABLE, "a"),
        events.event_step(TABLE, an_event(), bytes(10)),
    ]


def every_limit() -> Sequence[Any]:
    measures: Any = ("usd", "requests", "tokens", "tool_calls")
    windows = ("request", "minute", "hour", "day", "month", "life")
    return [limit_of(measure, window, 10**36) for measure in measures for window in windows]


EXPRESSIONS = ("UpdateExpression", "ConditionExpression")


@pytest.mark.parametrize("step", all_steps(), ids=lambda step: f"{step.subject}-{step.name}"[:40])
def test_each_step_is_one_that_dynamodb_takes(step: Step) -> None:
    (kind,) = step.write
    write: Any = dict(step.write)[kind]
    text = " ".join(write.get(expression, "") for expression in EXPRESSIONS)
    names, values = write.get("ExpressionAttributeNames", {}), write.get("ExpressionAttributeValues", {})

    # Every name and value is used, and every one that is used is there.
    assert set(re.findall(r"#\w+", text)) == set(names)
    assert set(re.findall(r":\w+", text)) == set(values)
    # Nothing but placeholders, operators and functions stands in an expression: no word can be a reserved one.
    words = set(re.findall(r"(?<![#:\w])[A-Za-z_]\w*", text))
    assert words <= {
        *("ADD", "SET", "REMOVE", "AND", "OR", "attribute_exists", "attribute_not_exists", "if_not_exists"),
        *(("pk",) if kind == "Put" else ()),
    }
    # Amazon DynamoDB, "Expressions and operators": 4 KB an expression, 300 operators.
    for expression in EXPRESSIONS:
        assert len(write.get(expression, "")) <= 4096
    assert len(re.findall(r"AND|OR|<=|=|\+|,|attribute_\w+|if_not_exists", text)) <= 300
    # A failed condition shows the item that it met.
    if "ConditionExpression" in write:
        assert write["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"


def test_the_deepest_path_fits_a_transaction() -> None:
    path: list[BudgetPolicy] = [a_policy("/".join("a" * depth), rev=1) for depth in range(1, 10)]

    assert len(reserve_steps(TABLE, a_reservation(path, idempotency_key="k"), path, evictions={})) == 11


def test_a_transaction_of_more_steps_than_dynamodb_takes_is_refused() -> None:
    path = [a_policy(f"a{n}", rev=1) for n in range(STEPS_MAX)]

    with pytest.raises(ValueError, match="at most 100 steps"):
        reserve_steps(TABLE, a_reservation(path), path, evictions={})
