"""Budgets: paths, runs, and who is unbudgeted."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.budget import (
    PATH_DEPTH_MAX,
    PATH_LENGTH_MAX,
    Amounts,
    BudgetPolicy,
    RunPolicy,
    is_unbudgeted,
    is_within,
    new_run,
    parent,
    parse_path,
    prefixes,
    run_path,
)
from tests.builders import NOW, a_limit, a_policy

segments = st.sampled_from(["a", "b", "a-2", "Acme", "x.y_z", "0" * 30])
paths = st.lists(segments, min_size=1, max_size=PATH_DEPTH_MAX).map("/".join)


@given(paths)
def test_a_path_s_prefixes_lead_from_its_root_to_itself(path: str) -> None:
    line = prefixes(parse_path(path))

    assert line[-1] == path
    assert [parent(prefix) for prefix in line] == [None, *line[:-1]]
    assert all(is_within(path, prefix) for prefix in line)


@given(paths, paths)
def test_within_is_being_the_budget_or_having_it_as_a_prefix(path: str, budget: str) -> None:
    assert is_within(path, budget) == (budget in prefixes(path))


def test_a_name_that_only_begins_alike_is_not_within() -> None:
    assert not is_within("acme-2/a", "acme")
    assert not is_within("acme", "acme/a")


@pytest.mark.parametrize(
    "path",
    ["", "/", "a/", "/a", "a//b", "a b", "a\n", "ä", ".a", "-a", "a/run:1", "a#b", "a\u0000", "../a", "x" * 65,
     "/".join(["a"] * (PATH_DEPTH_MAX + 1)), "/".join(["x" * 40] * 7)],
)  # fmt: skip
def test_a_path_that_a_person_may_not_write_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="a budget"):
        parse_path(path)


def test_the_longest_path_is_allowed() -> None:
    path = "/".join(["x" * 63] * 3 + ["x" * 64])

    assert len(path) == PATH_LENGTH_MAX
    assert parse_path(path) == path


@given(st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}\Z"))
def test_b32_a_run_lies_below_its_budget_and_nowhere_else(run_id: str) -> None:
    """B32: a run id may come from the caller, but only inside its own agent."""
    path = run_path("acme/search", run_id)

    assert prefixes(path) == ("acme", "acme/search", path)


@pytest.mark.parametrize(
    "run_id",
    ["", "a/b", "../x", "a b", "a\n", "a\r\nx: y", "ä", "-a", ":a", "x" * 65, "a#b", "a*", "a\u0000", "../../other"],
)
def test_b32_a_run_id_that_could_reach_elsewhere_is_refused(run_id: str) -> None:
    """B32: length and characters are limited."""
    with pytest.raises(ValueError, match="a run id has"):
        run_path("acme", run_id)


def test_b32_a_new_run_widens_no_limit_above_it() -> None:
    """B32: it has limits of its own; those of its parents are untouched and still count."""
    above = a_policy(
        a_limit("10"),
        runs=RunPolicy(limits=(a_limit("2", window="life"),), expire_after=timedelta(hours=24), stop_on_unknown=True),
        mode="observe",
    )

    run = new_run(above, "acme/run:7", NOW)

    assert (run.path, run.rev, run.limits, run.mode) == ("acme/run:7", 0, (a_limit("2", window="life"),), "observe")
    assert (run.expires_at, run.stop_on_unknown) == (NOW + timedelta(hours=24), True)


def test_a_run_without_a_lifetime_does_not_expire() -> None:
    assert new_run(a_policy(runs=RunPolicy()), "acme/run:7", NOW).expires_at is None


def test_a_budget_that_allows_no_runs_has_none() -> None:
    with pytest.raises(ValueError, match="allows no runs"):
        new_run(a_policy(), "acme/run:7", NOW)


@pytest.mark.parametrize(
    ("path", "unbudgeted"),
    [
        ((a_policy(),), False),
        ((a_policy(unbudgeted=True),), True),
        ((a_policy(), a_policy(unbudgeted=True)), True),
        ((a_policy(unbudgeted=True), a_policy()), True),
        ((a_policy(a_limit("1")), a_policy(unbudgeted=True)), False),
        ((a_policy(unbudgeted=True), a_policy(a_limit(0))), False),
    ],
)
def test_b30_a_path_is_unbudgeted_only_where_it_is_said_and_nothing_limits_it(
    path: tuple[BudgetPolicy, ...],
    unbudgeted: bool,
) -> None:
    """B30: a limit of 0 is a limit; no limit anywhere must be said aloud."""
    assert is_unbudgeted(path) is unbudgeted


def test_amounts_are_found_by_measure() -> None:
    amounts = Amounts(usd=1, requests=2, tokens=3, tool_calls=4)

    assert [amounts.of(measure) for measure in ("usd", "requests", "tokens", "tool_calls")] == [1, 2, 3, 4]
