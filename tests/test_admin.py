"""The operators' use cases on an emulated store: what a plan says, what applying it writes, and the trail it leaves."""

import secrets
from typing import Any

import pytest

from spendgate.admin import Admin
from spendgate.admin_view import instant_text
from spendgate.core.key import Key, hash_secret
from spendgate.errors import (
    BudgetMissing,
    ConfigurationInvalid,
    LedgerUnavailable,
    NotFound,
    RequestConflict,
    RequestInvalid,
    ReservationMissing,
    RevisionConflict,
    TransitionIllegal,
)
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from tests.operators import FILE, LEAF, Clock, admit, lose, settle


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def admin(ledger: Ledger, config: Config, clock: Clock) -> Admin:
    return Admin(ledger, config, clock=clock, randomness=secrets.token_bytes, loopback_http=True)


@pytest.fixture
def applied(admin: Admin) -> Admin:
    admin.apply(FILE, by="ana")
    return admin


def keys_of(config: Config) -> tuple[Key, ...]:
    return config.keys()


def actions(document: dict[str, Any]) -> dict[str, str]:
    """Return what a plan does, by kind and name; what stays as it is left out."""
    return {f"{one['kind']} {one['name']}": one["action"] for one in document["changes"] if one["action"] != "keep"}


def change(document: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    (found,) = [one for one in document["changes"] if (one["kind"], one["name"]) == (kind, name)]
    return dict(found)


# --- plan and apply


def test_a_plan_on_an_empty_store_creates_everything_keys_last_and_writes_nothing(admin: Admin, ledger: Ledger) -> None:
    planned = admin.plan(FILE)

    assert [(one["kind"], one["name"], one["action"]) for one in planned["changes"]] == [
        ("budget", "acme", "create"),
        ("budget", "acme/search", "create"),
        ("budget", "acme/search/triage", "create"),
        ("price", "openai/house-model from 2026-01-01", "create"),
        ("provider", "openai", "create"),
        ("route", "agent-model", "create"),
        ("key", "triage-prod", "create"),
    ]
    assert planned["writes"] == 7
    assert planned["warnings"] == []
    assert ledger.budgets() == ()


def test_applying_writes_what_the_file_says_and_shows_each_new_secret_once(admin: Admin, config: Config) -> None:
    first = admin.apply(FILE, by="ana")
    again = admin.apply(FILE, by="ana")

    secret = first["keys"]["triage-prod"]
    key = config.key(hash_secret(secret))
    assert key is not None
    assert (key.name, key.budget, key.models) == ("triage-prod", LEAF, ("agent-model",))
    assert len(secret) == len("sg-") + 32
    assert again["keys"] == {}
    assert again["writes"] == 0
    assert actions(again) == {}


def test_no_answer_and_no_event_holds_a_secret_after_it_was_shown(admin: Admin) -> None:
    secret = admin.apply(FILE, by="ana")["keys"]["triage-prod"]

    for later in (admin.plan(FILE), admin.apply(FILE, by="ana"), admin.keys.list(), admin.events(), admin.budgets()):
        assert secret not in str(later)
        assert hash_secret(secret) not in str(later)


def test_a_plan_id_is_good_for_exactly_that_file_on_exactly_that_store(admin: Admin) -> None:
    planned = admin.plan(FILE)

    with pytest.raises(RevisionConflict, match="plan again"):
        admin.apply(FILE + "# another file\n", by="ana", plan_id=planned["plan_id"])
    assert admin.apply(FILE, by="ana", plan_id=planned["plan_id"])["complete"]


def test_a_change_by_somebody_else_between_plan_and_apply_refuses_the_apply(applied: Admin) -> None:
    changed = FILE.replace("day: 40}", "day: 50}")
    planned = applied.plan(changed)
    applied.stop(LEAF, reason="it loops", by="bob")

    with pytest.raises(RevisionConflict):
        applied.apply(changed, by="ana", plan_id=planned["plan_id"])
    assert "day" not in actions(applied.plan(FILE))


def test_calls_between_plan_and_apply_are_no_change(applied: Admin, ledger: Ledger, clock: Clock) -> None:
    changed = FILE.replace("day: 40}", "day: 50}")
    planned = applied.plan(changed)
    admit(ledger, clock.now, held="0.1")

    assert applied.apply(changed, by="ana", plan_id=planned["plan_id"])["complete"]


def test_an_update_changes_the_limits_and_touches_neither_counters_nor_a_stop(
    applied: Admin, ledger: Ledger, clock: Clock
) -> None:
    settle(ledger, admit(ledger, clock.now, held="0.4"), clock.now, cost="0.25")
    applied.stop(LEAF, reason="it loops", by="bob")
    before = ledger.budget(LEAF)

    done = applied.apply(FILE.replace("day: 40}", "day: 50}"), by="ana")

    after = ledger.budget(LEAF)
    assert before is not None
    assert after is not None
    assert actions(done) == {f"budget {LEAF}": "update"}
    assert change(done, "budget", LEAF)["before"]["limits"]["usd"]["day"] == "40"
    assert change(done, "budget", LEAF)["after"]["limits"]["usd"]["day"] == "50"
    assert after.counters == before.counters
    assert after.policy.stop == before.policy.stop
    assert after.policy.rev == before.policy.rev + 1


def test_a_limit_below_what_is_already_committed_is_warned_about(applied: Admin, ledger: Ledger, clock: Clock) -> None:
    settle(ledger, admit(ledger, clock.now, held="0.4"), clock.now, cost="0.25")

    planned = applied.plan(FILE.replace("day: 40}", 'day: "0.2"}'))

    assert planned["warnings"] == [
        "budget acme/search/triage: 0.25 USD is already committed in this day, more than 0.2: paid calls are refused"
    ]


def test_a_price_row_is_never_overwritten_and_the_plan_says_so(applied: Admin, config: Config) -> None:
    rows = config.all_prices()

    done = applied.apply(FILE.replace('input: "2.50"', 'input: "1.00"'), by="ana")

    kept = change(done, "price", "openai/house-model from 2026-01-01")
    assert kept["action"] == "kept"
    assert "never overwritten" in kept["note"]
    assert config.all_prices() == rows


def test_a_new_rate_from_a_new_instant_is_added_beside_the_old_one(applied: Admin, config: Config) -> None:
    done = applied.apply(FILE.replace("from: 2026-01-01", "from: 2026-12-01").replace("2.50", "1.00"), by="ana")

    assert actions(done) == {"price openai/house-model from 2026-12-01": "create"}
    assert [instant_text(row.valid_from)[:10] for row in config.prices("openai", "house-model")] == [
        "2026-01-01",
        "2026-12-01",
    ]


def test_a_key_and_a_route_that_leave_the_file_are_taken_away(applied: Admin, config: Config) -> None:
    shorter = FILE[: FILE.index("keys:")].replace("agent-model:", "other-model:")

    done = applied.apply(shorter, by="ana")

    assert actions(done) == {
        "key triage-prod": "revoke",
        "route agent-model": "delete",
        "route other-model": "create",
    }
    assert [key.revoked_at is not None for key in keys_of(config)] == [True]
    assert [route.name for route in config.routes()] == ["other-model"]


def test_a_key_that_a_command_made_stays_whatever_the_file_says(applied: Admin) -> None:
    applied.keys.create("by-hand", budget=LEAF, by="ana")

    done = applied.apply(FILE, by="ana")

    assert actions(done) == {"key by-hand": "kept"}
    assert [key["state"] for key in applied.keys.list()["keys"]] == ["live", "live"]


def test_a_budget_that_leaves_the_file_is_kept_and_the_plan_says_so(applied: Admin, ledger: Ledger) -> None:
    fewer = FILE[: FILE.index("  acme/search/triage:")] + FILE[FILE.index("keys:") :].replace(LEAF, "acme")

    done = applied.apply(fewer, by="ana")

    assert change(done, "budget", LEAF)["action"] == "kept"
    assert "never deleted" in change(done, "budget", LEAF)["note"]
    assert ledger.budget(LEAF) is not None


def test_a_budget_that_the_file_only_implies_keeps_its_limits(applied: Admin, ledger: Ledger) -> None:
    implied = FILE.replace("  acme: {limits: {usd: {month: 5000, day: 400}}}\n", "")

    done = applied.apply(implied, by="ana")

    state = ledger.budget("acme")
    assert change(done, "budget", "acme")["action"] == "kept"
    assert state is not None
    assert len(state.policy.limits) == 2


def test_a_key_that_moves_to_another_budget_raises_the_revision_of_both(
    applied: Admin, ledger: Ledger, config: Config
) -> None:
    revisions = {state.policy.path: state.policy.rev for state in ledger.budgets()}

    done = applied.apply(FILE.replace(f"budget: {LEAF}", "budget: acme"), by="ana")

    assert actions(done) == {"key triage-prod": "update"}
    assert [key.budget for key in keys_of(config)] == ["acme"]
    raised = {s.policy.path for s in ledger.budgets() if s.policy.rev > revisions[s.policy.path]}
    assert raised == {LEAF, "acme"}


def test_a_key_and_its_budget_can_change_in_one_apply(applied: Admin, ledger: Ledger, config: Config) -> None:
    changed = FILE.replace("day: 40}", "day: 50}").replace("2027-01-01", "2027-02-01")

    done = applied.apply(changed, by="ana")

    assert actions(done) == {f"budget {LEAF}": "update", "key triage-prod": "update"}
    assert actions(applied.plan(changed)) == {}


def test_revoking_by_the_file_and_changing_the_budget_in_one_apply_is_no_conflict(applied: Admin) -> None:
    changed = FILE[: FILE.index("keys:")].replace("day: 40}", "day: 50}")

    done = applied.apply(changed, by="ana")

    assert actions(done) == {f"budget {LEAF}": "update", "key triage-prod": "revoke"}
    assert actions(applied.plan(changed)) == {}


def test_a_key_that_was_revoked_by_hand_gets_a_new_secret_and_the_old_one_stays_dead(
    admin: Admin, config: Config
) -> None:
    old = admin.apply(FILE, by="ana")["keys"]["triage-prod"]
    admin.keys.revoke("triage-prod", by="ana")

    done = admin.apply(FILE, by="ana")

    new = done["keys"]["triage-prod"]
    dead, live = config.key(hash_secret(old)), config.key(hash_secret(new))
    assert new != old
    assert dead is not None
    assert dead.revoked_at is not None
    assert live is not None
    assert live.revoked_at is None


def test_a_fixed_secret_that_was_revoked_is_never_used_again(admin: Admin, config: Config) -> None:
    fixed = FILE.replace("models: [agent-model],", "models: [agent-model], secret: sg-fixed-for-local-runs,")
    admin.apply(fixed, by="ana")
    admin.keys.revoke("triage-prod", by="ana")

    done = admin.apply(fixed, by="ana")

    assert actions(done) == {"key triage-prod": "kept"}
    assert [key.revoked_at is not None for key in keys_of(config)] == [True]


def test_another_fixed_secret_revokes_the_one_before(admin: Admin, config: Config) -> None:
    fixed = FILE.replace("models: [agent-model],", "models: [agent-model], secret: sg-fixed-for-local-runs,")
    admin.apply(fixed, by="ana")

    done = admin.apply(fixed.replace("sg-fixed", "sg-other"), by="ana")

    assert done["keys"] == {"triage-prod": "sg-other-for-local-runs"}
    states = {key.hash: key.revoked_at is None for key in keys_of(config)}
    assert states == {hash_secret("sg-fixed-for-local-runs"): False, hash_secret("sg-other-for-local-runs"): True}


def test_a_secret_that_another_key_has_is_a_problem_of_the_file(admin: Admin) -> None:
    fixed = FILE.replace("models: [agent-model],", "models: [agent-model], secret: sg-fixed-for-local-runs,")
    admin.apply(fixed, by="ana")

    with pytest.raises(ConfigurationInvalid) as raised:
        admin.plan(fixed.replace("triage-prod:", "thief:"))
    assert [problem.place for problem in raised.value.problems] == ["keys.thief.secret"]


def test_a_route_candidate_without_a_price_is_warned_about(admin: Admin) -> None:
    planned = admin.plan(FILE.replace("model: house-model}]", "model: other-model}]"))

    assert planned["warnings"] == [
        "route agent-model: openai/other-model has no price row: calls that can reach it are refused (price_unknown)"
    ]


def test_a_price_that_is_not_yet_in_force_is_warned_about(admin: Admin) -> None:
    planned = admin.plan(FILE.replace("from: 2026-01-01", "from: 2026-12-24"))

    assert "has no price before 2026-12-24T00:00:00Z" in planned["warnings"][0]


def test_a_file_with_problems_is_refused_whole(admin: Admin, ledger: Ledger) -> None:
    with pytest.raises(ConfigurationInvalid):
        admin.apply(FILE.replace("month: 5000", "month: -1"), by="ana")
    assert ledger.budgets() == ()


class Crashing(Config):
    """A configuration store that is out of reach for one of its writes, at that write or just after it."""

    __slots__ = ()
    left = 0

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if not name.startswith(("put_", "add_", "delete_", "revoke_")):
            return found

        def write(*args: Any, **more: Any) -> Any:
            Crashing.left -= 1
            if Crashing.left < 0:
                raise LedgerUnavailable("the store cannot be reached")
            return found(*args, **more)

        return write


@pytest.mark.parametrize("writes_before", range(6))
def test_an_apply_that_breaks_off_anywhere_is_finished_by_the_next_one(
    ledger: Ledger, config: Config, clock: Clock, writes_before: int
) -> None:
    crashing = Crashing(config.table, config.ledger_table, config.client, config.timing)
    Crashing.left = writes_before
    shown: dict[str, str] = {}
    try:
        shown |= Admin(ledger, crashing, clock=clock, randomness=secrets.token_bytes).apply(FILE, by="ana")["keys"]
    except LedgerUnavailable:
        assert writes_before < 5

    admin = Admin(ledger, config, clock=clock, randomness=secrets.token_bytes)
    shown |= admin.apply(FILE, by="ana")["keys"]

    assert actions(admin.plan(FILE)) == {}
    assert [key.name for key in keys_of(config)] == ["triage-prod"]
    assert [hash_secret(secret) for secret in shown.values()] == [key.hash for key in keys_of(config)]
    assert config.managed() == {"key:triage-prod", "route:agent-model"}


def test_an_apply_that_breaks_off_after_making_a_key_still_shows_its_secret(
    ledger: Ledger, config: Config, clock: Clock
) -> None:
    two = FILE + "  second: {budget: acme}\n"
    crashing = Crashing(config.table, config.ledger_table, config.client, config.timing)
    # The names that the file manages, a price, a provider, a route, a key; and then no more.
    Crashing.left = 5

    done = Admin(ledger, crashing, clock=clock, randomness=secrets.token_bytes).apply(two, by="ana")

    assert list(done["keys"]) == ["triage-prod"]
    assert not done["complete"]
    assert done["failure"] == "the store cannot be reached"


# --- keys


def test_a_key_is_made_for_a_budget_and_its_routes(applied: Admin, config: Config) -> None:
    made = applied.keys.create("ci", budget="acme/search", models=["agent-model"], by="ana")

    key = config.key(hash_secret(made["secret"]))
    assert key is not None
    assert (key.name, key.budget, key.models) == ("ci", "acme/search", ("agent-model",))
    assert made["key"]["state"] == "live"


def test_a_key_name_that_is_none_is_refused(applied: Admin) -> None:
    for name in ("", "-x", "A", "a b", "x" * 65, "a/b", "a\n", "ä"):
        with pytest.raises(RequestInvalid, match=r"^name: "):
            applied.keys.create(name, budget=LEAF, by="ana")


def test_a_key_needs_a_budget_that_is_there_routes_that_are_there_and_a_future(applied: Admin, clock: Clock) -> None:
    with pytest.raises(BudgetMissing):
        applied.keys.create("ci", budget="acme/nowhere", by="ana")
    with pytest.raises(RequestInvalid, match="routes: agent-model"):
        applied.keys.create("ci", budget=LEAF, models=["agent-modle"], by="ana")
    with pytest.raises(RequestInvalid, match="future"):
        applied.keys.create("ci", budget=LEAF, expires_at=clock.now, by="ana")
    with pytest.raises(RequestInvalid, match="run"):
        applied.keys.create("ci", budget=f"{LEAF}/run:1", by="ana")


def test_a_name_that_is_taken_is_free_again_after_its_key_was_revoked(applied: Admin) -> None:
    with pytest.raises(RequestConflict, match="revoke it first"):
        applied.keys.create("triage-prod", budget=LEAF, by="ana")
    applied.keys.revoke("triage-prod", by="ana")

    applied.keys.create("triage-prod", budget=LEAF, by="ana")

    assert sorted(key["state"] for key in applied.keys.list()["keys"]) == ["live", "revoked"]


def test_revoking_raises_the_budgets_revision_and_again_is_a_no_op(applied: Admin, ledger: Ledger) -> None:
    before = ledger.budget(LEAF)
    first = applied.keys.revoke("triage-prod", by="ana")
    after = ledger.budget(LEAF)
    again = applied.keys.revoke("triage-prod", by="ana")

    assert before is not None
    assert after is not None
    assert after.policy.rev == before.policy.rev + 1
    assert first["keys"][0]["state"] == "revoked"
    assert again == first
    assert ledger.budget(LEAF) == after


def test_a_key_that_is_not_there_cannot_be_revoked(applied: Admin) -> None:
    with pytest.raises(NotFound, match="no key nobody"):
        applied.keys.revoke("nobody", by="ana")


# --- budgets


def test_every_window_adds_up_settled_reserved_and_free_exactly(applied: Admin, ledger: Ledger, clock: Clock) -> None:
    settle(ledger, admit(ledger, clock.now, held="0.4", number=1), clock.now, cost="0.0002825")
    admit(ledger, clock.now, held="0.3", number=2)
    lose(ledger, admit(ledger, clock.now, held="0.2", number=3), clock.now)

    (leaf,) = applied.budgets(LEAF)["budgets"]

    windows = {f"{one['measure']}.{one['window']}": one for one in leaf["windows"]}
    assert windows["usd.day"] == {
        "measure": "usd",
        "window": "day",
        "maximum": "40",
        "committed": "0.5002825",
        "settled": "0.0002825",
        "reserved": "0.5",
        "unknown": "0.2",
        "free": "39.4997175",
        "resets_at": "2026-12-01T00:00:00Z",
    }
    assert windows["usd.request"] == {"measure": "usd", "window": "request", "maximum": "0.5"}
    assert windows["requests.minute"]["free"] == "57"
    assert leaf["committed"] == {"day": "0.5002825", "month": "0.5002825", "life": "0.5002825"}


def test_what_has_left_the_rolling_hour_is_free_in_it(applied: Admin, ledger: Ledger, clock: Clock) -> None:
    settle(ledger, admit(ledger, clock.now, held="0.4"), clock.now, cost="0.25")
    clock.turn(minutes=66)

    (leaf,) = applied.budgets(LEAF)["budgets"]

    (hour,) = [one for one in leaf["windows"] if one["window"] == "hour"]
    assert (hour["committed"], hour["free"], hour["resets_at"]) == ("0", "5", None)


def test_a_budget_that_is_not_there_is_named(applied: Admin) -> None:
    for path in ("acme/nowhere", "x" * 300, ""):
        with pytest.raises(BudgetMissing):
            applied.budgets(path)


def test_a_stop_says_who_and_why_and_the_first_one_stays(applied: Admin) -> None:
    applied.stop("acme/search", reason="  it loops ", by="ana")
    again = applied.stop("acme/search", reason="me too", by="bob")

    assert (again["stop"]["reason"], again["stop"]["by"]) == ("it loops", "ana")
    assert [event["kind"] for event in applied.events(2)["events"]].count("budget_stopped") == 1


def test_a_budget_is_resumed_with_a_reason_and_only_if_it_is_stopped_itself(applied: Admin) -> None:
    applied.stop("acme/search", reason="it loops", by="ana")

    with pytest.raises(RequestConflict, match="acme/search, above it, is"):
        applied.resume(LEAF, reason="fixed", by="ana")
    assert applied.resume("acme/search", reason="fixed", by="ana")["stop"] is None
    with pytest.raises(RequestConflict, match=r"is not stopped$"):
        applied.resume("acme/search", reason="fixed", by="ana")


def test_a_reason_is_one_printable_line(applied: Admin) -> None:
    for reason in ("", "   ", "x" * 1001, "two\nlines", "\x1b[31mred"):
        with pytest.raises(RequestInvalid, match=r"^reason: "):
            applied.stop(LEAF, reason=reason, by="ana")
        with pytest.raises(RequestInvalid, match=r"^reason: "):
            applied.resume(LEAF, reason=reason, by="ana")


# --- reservations


def test_reservations_are_listed_newest_first_by_budget_and_state(applied: Admin, ledger: Ledger, clock: Clock) -> None:
    first = admit(ledger, clock.now, held="0.4", number=1)
    settle(ledger, first, clock.now, cost="0.25")
    clock.turn(seconds=1)
    second = admit(ledger, clock.now, held="0.3", number=2)

    def ids(**which: Any) -> list[str]:
        return [one["id"] for one in applied.reservations(**which)["reservations"]]

    assert ids() == [second.id, first.id]
    assert ids(limit=1) == [second.id]
    assert ids(state="settled") == [first.id]
    assert ids(state="in_flight", budget="acme/search") == [second.id]
    for mistake in ({"state": "done"}, {"limit": 0}, {"limit": 1001}):
        with pytest.raises(RequestInvalid):
            applied.reservations(**mistake)
    with pytest.raises(BudgetMissing):
        applied.reservations(budget="acme/nowhere")


def test_a_reservation_is_shown_with_exact_amounts(applied: Admin, ledger: Ledger, clock: Clock) -> None:
    reservation = admit(ledger, clock.now, held="0.0000123")

    shown = applied.reservation(reservation.id)

    assert shown["state"] == "in_flight"
    assert shown["reserved"] == {"usd": "0.0000123", "requests": "1", "tokens": "1000", "tool_calls": "0"}
    assert shown["budgets"] == ["acme", "acme/search", LEAF]
    with pytest.raises(ReservationMissing):
        applied.reservation("0" * 26)
    with pytest.raises(RequestInvalid):
        applied.reservation("nonsense")


@pytest.mark.parametrize(
    ("action", "cost", "state", "actual", "free"),
    [
        ("settle", "0.0125", "settled", "0.0125", "39.9875"),
        ("release", None, "released", "0", "40"),
        ("charge", None, "charged", "0.4", "39.6"),
    ],
)
def test_an_unknown_reservation_is_ended_by_hand_and_the_counters_follow(
    applied: Admin, ledger: Ledger, clock: Clock, action: str, cost: str | None, state: str, actual: str, free: str
) -> None:
    reservation = admit(ledger, clock.now, held="0.4")
    lose(ledger, reservation, clock.now)

    done = applied.reconcile(reservation.id, action=action, cost=cost, evidence="ticket 311", by="ana")
    again = applied.reconcile(reservation.id, action=action, cost=cost, evidence="ticket 311", by="ana")

    (leaf,) = applied.budgets(LEAF)["budgets"]
    (day,) = [one for one in leaf["windows"] if (one["measure"], one["window"]) == ("usd", "day")]
    shown = done["reservation"]
    assert (shown["state"], shown["actual"]["usd"], shown["evidence"], shown["by"]) == (
        state,
        actual,
        "ticket 311",
        "ana",
    )
    assert (day["free"], day["unknown"], day["reserved"]) == (free, "0", "0")
    assert again["reservation"]["state"] == state
    assert applied.audit()["clean"]
    assert [event["kind"] for event in applied.events(1)["events"]] == [f"reservation_{state}"]


def test_more_than_was_reserved_is_booked_truthfully_and_stops_the_budget(
    applied: Admin, ledger: Ledger, clock: Clock
) -> None:
    reservation = admit(ledger, clock.now, held="0.4")
    lose(ledger, reservation, clock.now)

    done = applied.reconcile(reservation.id, action="settle", cost="0.7", evidence="the bill", by="ana")

    (leaf,) = applied.budgets(LEAF)["budgets"]
    assert done["exceeds_reserved"]
    assert done["reservation"]["actual"]["usd"] == "0.7"
    assert leaf["stop"]["reservation"] == reservation.id
    assert leaf["committed"]["day"] == "0.7"


def test_a_resolved_reservation_takes_no_other_outcome_and_stops_nothing(
    applied: Admin, ledger: Ledger, clock: Clock
) -> None:
    reservation = admit(ledger, clock.now, held="0.4")
    settle(ledger, reservation, clock.now, cost="0.25")

    for action, cost in (("settle", "0.3"), ("release", None), ("charge", None)):
        with pytest.raises(TransitionIllegal, match=r"already settled at 0\.25 USD"):
            applied.reconcile(reservation.id, action=action, cost=cost, evidence="ticket 311", by="ana")
    (leaf,) = applied.budgets(LEAF)["budgets"]
    assert leaf["stop"] is None


def test_a_call_in_flight_is_left_to_its_gateway_until_its_deadline(
    applied: Admin, ledger: Ledger, clock: Clock
) -> None:
    reservation = admit(ledger, clock.now, held="0.4")

    with pytest.raises(TransitionIllegal, match="still in flight"):
        applied.reconcile(reservation.id, action="release", cost=None, evidence="ticket 311", by="ana")
    clock.turn(minutes=15)
    done = applied.reconcile(reservation.id, action="release", cost=None, evidence="ticket 311", by="ana")

    assert done["reservation"]["state"] == "released"


def test_a_reconciliation_that_makes_no_sense_is_refused_before_anything_is_read(admin: Admin) -> None:
    for action, cost, evidence, field in (
        ("settle", None, "ticket", "cost"),
        ("settle", "-1", "ticket", "cost"),
        ("settle", "1e-3", "ticket", "cost"),
        ("settle", "0.0000000000001", "ticket", "cost"),
        ("settle", "NaN", "ticket", "cost"),
        ("release", "0", "ticket", "cost"),
        ("charge", "1", "ticket", "cost"),
        ("forgive", None, "ticket", "action"),
        ("charge", None, "", "evidence"),
        ("charge", None, " \t ", "evidence"),
        ("charge", None, "x" * 1001, "evidence"),
    ):
        with pytest.raises(RequestInvalid, match=rf"^{field}: "):
            admin.reconcile("0" * 26, action=action, cost=cost, evidence=evidence, by="ana")


# --- proof and trail


def test_an_audit_names_the_counter_that_is_wrong_and_by_how_much(applied: Admin, ledger: Ledger, clock: Clock) -> None:
    admit(ledger, clock.now, held="0.4")
    ledger.client.update_item(
        TableName=ledger.table,
        Key={"pk": {"S": f"BUDGET#{LEAF}"}, "sk": {"S": "BUDGET"}},
        UpdateExpression="ADD #r :x",
        ExpressionAttributeNames={"#r": "reserved"},
        ExpressionAttributeValues={":x": {"N": "1"}},
    )

    report = applied.audit()

    assert not report["clean"]
    assert report["differences"] == [
        {"budget": LEAF, "counter": "reserved", "expected": "0.4", "found": "0.400000000001"}
    ]


def test_every_write_leaves_an_event_that_says_who_when_and_from_what_to_what(applied: Admin, clock: Clock) -> None:
    clock.turn(days=1)
    applied.apply(FILE.replace("day: 40}", "day: 50}"), by="bob")
    applied.stop(LEAF, reason="it loops", by="carol")

    events = applied.events()["events"]

    assert len(events) == 9
    assert (events[0]["kind"], events[0]["by"], events[0]["reason"]) == ("budget_stopped", "carol", "it loops")
    assert (events[1]["kind"], events[1]["by"]) == ("budget_updated", "bob")
    assert events[1]["before"]["limits"]["usd"]["day"] == "40"
    assert events[1]["after"]["limits"]["usd"]["day"] == "50"
    assert {event["by"] for event in events[2:]} == {"ana"}
    assert applied.events(1)["events"] == events[:1]


def test_only_a_number_of_events_that_is_allowed_is_listed(applied: Admin) -> None:
    for limit in (0, 1001):
        with pytest.raises(RequestInvalid):
            applied.events(limit)
