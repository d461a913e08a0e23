"""Raising limits for a while: what may be asked for, what the trail keeps, and what an apply does with it."""

import secrets
from datetime import timedelta
from typing import Any

import pytest

from spendgate.admin import Admin
from spendgate.admin_view import instant_text
from spendgate.configuration_model import LimitsEntry
from spendgate.configuration_values import limits
from spendgate.errors import RequestConflict, RequestInvalid
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from tests.operators import FILE, LEAF, Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def admin(ledger: Ledger, config: Config, clock: Clock) -> Admin:
    admin = Admin(ledger, config, clock=clock, randomness=secrets.token_bytes, loopback_http=True)
    admin.apply(FILE, by="ana")
    return admin


def resume(admin: Admin, until: str | None = "6h", **measures: Any) -> dict[str, Any]:
    raised = limits(LimitsEntry.model_validate(measures))
    return admin.resume(LEAF, reason="the launch", by="ana", limits=raised, until=until)


def now_shown(admin: Admin) -> dict[str, str]:
    """Return the maximums that count now, by measure and window."""
    (leaf,) = admin.budgets(LEAF)["budgets"]
    return {f"{one['measure']}.{one['window']}": one["maximum"] for one in leaf["windows"]}


def test_a_raised_limit_is_shown_with_its_end_its_approver_and_why_and_is_gone_at_the_end(
    admin: Admin, clock: Clock
) -> None:
    before = now_shown(admin)
    end = clock.now + timedelta(hours=6)

    budget = resume(admin, instant_text(end), usd={"day": "80"}, requests={"minute": 120})

    assert budget["temporary"] == {
        "limits": {"usd": {"day": "80"}, "requests": {"minute": "120"}},
        "until": instant_text(end),
        "at": budget["temporary"]["at"],
        "by": "ana",
        "reason": "the launch",
    }
    assert now_shown(admin) == {**before, "usd.day": "80", "requests.minute": "120"}
    assert budget["policy"]["limits"]["usd"]["day"] == "40"
    clock.now = end
    assert now_shown(admin) == before
    assert admin.budgets(LEAF)["budgets"][0]["temporary"] is None


def test_the_trail_tells_from_what_to_what_and_until_when(admin: Admin, clock: Clock) -> None:
    first = resume(admin, usd={"day": "80"})["temporary"]["until"]
    second = resume(admin, "1h", usd={"hour": "9"})["temporary"]["until"]
    admin.stop(LEAF, reason="it loops", by="bob")
    admin.resume(LEAF, reason="enough", by="eve")

    ended, _, replaced, raised = admin.events(4)["events"]

    assert (raised["kind"], raised["by"], raised["reason"]) == ("budget_raised", "ana", "the launch")
    assert raised["before"] == {"limits": {"usd": {"day": "40"}}}
    assert raised["after"] == {"limits": {"usd": {"day": "80"}}, "until": first}
    assert replaced["before"] == {"limits": {"usd": {"hour": "5", "day": "80"}}, "until": first}
    assert replaced["after"] == {"limits": {"usd": {"hour": "9"}}, "until": second}
    assert (ended["kind"], ended["by"]) == ("budget_resumed", "eve")
    assert ended["before"]["reason"] == "it loops"
    assert (ended["before"]["limits"], ended["before"]["until"]) == ({"usd": {"hour": "9"}}, second)
    assert ended["after"] == {"limits": {"usd": {"hour": "5"}}}
    assert admin.budgets(LEAF)["budgets"][0]["temporary"] is None


def test_one_resume_takes_the_stop_off_and_raises(admin: Admin) -> None:
    admin.stop(LEAF, reason="it loops", by="bob")

    budget = resume(admin, usd={"day": "80"})

    assert (budget["stop"], budget["temporary"]["limits"]) == (None, {"usd": {"day": "80"}})
    (event,) = admin.events(1)["events"]
    assert (event["kind"], event["before"]["reason"]) == ("budget_resumed", "it loops")


def test_raised_limits_are_ended_by_a_resume_without_any_and_what_has_none_has_nothing_to_resume(
    admin: Admin, clock: Clock
) -> None:
    resume(admin, usd={"day": "80"})
    assert admin.resume(LEAF, reason="enough", by="ana")["temporary"] is None
    with pytest.raises(RequestConflict, match=r"is not stopped$"):
        admin.resume(LEAF, reason="enough", by="ana")
    resume(admin, "10m", usd={"day": "80"})
    clock.turn(minutes=11)
    with pytest.raises(RequestConflict, match=r"is not stopped$"):
        admin.resume(LEAF, reason="enough", by="ana")


@pytest.mark.parametrize(
    ("until", "measures", "said"),
    [
        (None, {"usd": {"day": "80"}}, r"^until: a temporary limit needs its end"),
        ("6h", {}, r"^until: goes with limits"),
        ("2026-11-30T02:13:59Z", {"usd": {"day": "80"}}, r"^until: in the future, and at most 31 days ahead"),
        ("2026-11-30", {"usd": {"day": "80"}}, r"^until: in the future"),
        ("32d", {"usd": {"day": "80"}}, r"^until: .*at most 31 days ahead"),
        ("999999d", {"usd": {"day": "80"}}, r"^until: .*at most 31 days ahead"),
        ("9999-12-31", {"usd": {"day": "80"}}, r"^until: .*at most 31 days ahead"),
        ("0h", {"usd": {"day": "80"}}, r"^until: a span like"),
        ("soon", {"usd": {"day": "80"}}, r"^until: a span like"),
        ("6h", {"usd": {"day": "40"}}, r"^limits.usd.day: .* higher than the budget's own, which is 40$"),
        ("6h", {"usd": {"month": "80"}}, r"^limits.usd.month: .*has no such limit to raise; it has: .*usd\.day"),
    ],
)
def test_what_is_no_raise_with_a_near_end_is_refused_and_changes_nothing(
    admin: Admin, until: str | None, measures: dict[str, Any], said: str
) -> None:
    before = admin.budgets(LEAF)["budgets"]

    with pytest.raises(RequestInvalid, match=said):
        resume(admin, until, **measures)

    assert admin.budgets(LEAF)["budgets"] == before


def test_an_apply_of_other_fields_keeps_a_temporary_limit_and_the_plan_says_so(admin: Admin) -> None:
    raised = resume(admin, usd={"day": "80"}, requests={"minute": 120})["temporary"]
    changed = FILE.replace("default_output_tokens: 8192", "default_output_tokens: 100").replace("hour: 5", "hour: 6")

    (said,) = admin.plan(changed)["warnings"]
    admin.apply(changed, by="bob")

    assert said.startswith(f"budget {LEAF}: a temporary limit of 120 requests a minute and 80 USD a day stands until ")
    assert said.endswith("(by ana: the launch), and an apply keeps it")
    (leaf,) = admin.budgets(LEAF)["budgets"]
    assert (leaf["temporary"], leaf["policy"]["default_output_tokens"]) == (raised, 100)


def test_an_apply_that_changes_the_very_limit_ends_its_raise_and_no_other(admin: Admin, clock: Clock) -> None:
    resume(admin, usd={"day": "80"}, requests={"minute": 120})
    changed = FILE.replace("day: 40}", "day: 30}")

    (said,) = admin.plan(changed)["warnings"]
    admin.apply(changed, by="bob")

    assert "this apply changes the limit that is raised to 80 USD a day until " in said
    assert now_shown(admin)["usd.day"] == "30"
    assert now_shown(admin)["requests.minute"] == "120"
    clock.turn(hours=7)
    assert admin.plan(changed)["warnings"] == []


def test_a_plan_that_leaves_the_budget_alone_says_what_stands(admin: Admin) -> None:
    resume(admin, usd={"day": "80"})

    assert "and an apply keeps it" in admin.plan(FILE)["warnings"][0]
    admin.apply(FILE, by="bob")
    assert now_shown(admin)["usd.day"] == "80"
