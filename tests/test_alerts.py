"""The use case: budgets in, messages out, each once, whatever breaks in between."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from spendgate.alerts import FAILURES_MAX, alert, recent, send_samples, store_of
from spendgate.core.alert import KINDS, AlertPolicy, CatalogueState
from spendgate.core.alert_text import Message
from spendgate.core.budget import Stop
from spendgate.core.reservation import Reservation
from spendgate.errors import AlertUndelivered, LedgerUnavailable, SettlementConflict
from spendgate.store.alerts import LEASE, AlertStore
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from tests.builders import USD, a_limit
from tests.operators import admit, lose, settle
from tests.store.builders import NOW, UNKNOWN, a_policy, a_reservation, an_event, opened, path_of, settled

PATH = "acme/search"
MINUTE = timedelta(minutes=1)


class Post:
    """Keeps what it is given; ``broken`` takes nothing."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.broken = False

    def __call__(self, message: Message) -> None:
        if self.broken:
            raise AlertUndelivered("the topic takes no alert: Throttled")
        self.messages.append(message)

    @property
    def kinds(self) -> list[tuple[str, str]]:
        return [(one.attributes["kind"], one.attributes["scope"]) for one in self.messages]


@pytest.fixture
def post() -> Post:
    return Post()


class Lines:
    """A log that keeps its messages."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def info(self, message: str, /, **fields: object) -> None:
        del fields
        self.told.append(message)

    exception = info


@pytest.fixture
def log() -> Lines:
    return Lines()


@pytest.fixture
def run(ledger: Ledger, config: Config, post: Post, log: Lines) -> Callable[..., dict[str, int]]:
    def minute(minutes: float = 0, *, notify: Callable[[Message], None] | None = None) -> dict[str, int]:
        report = alert(ledger, config, notify or post, NOW + minutes * MINUTE, log=log, stack="spendgate")
        return report.counted(lambda **_: None)

    return minute


@pytest.fixture
def tree(ledger: Ledger) -> Ledger:
    opened(ledger, a_policy("acme", limits=[a_limit("100")]), a_policy(PATH, limits=[a_limit("10")]))
    return ledger


def spend(ledger: Ledger, cost: str, number: int = 0, path: str = PATH) -> None:
    settle(ledger, admit(ledger, NOW, held=cost, path=path, number=number), NOW, cost=cost)


Run = Callable[..., dict[str, int]]


def test_b57_a_hundred_calls_after_80_percent_are_one_message(tree: Ledger, run: Run, post: Post) -> None:
    """B57: a mark, written on a condition, and not a message a call."""
    spend(tree, "8")
    for number in range(1, 21):
        spend(tree, "0.05", number)
        run(number)

    assert post.kinds == [("warn", PATH)]


def test_b57_80_and_100_are_both_told_of_one_jump_and_told_again_the_next_day(
    tree: Ledger, run: Run, post: Post
) -> None:
    """B57: both thresholds, and a new window re-arms."""
    spend(tree, "10")
    assert run() == {"posted": 2, "published": 2, "failed": 0}
    tomorrow = NOW + timedelta(days=1)
    settle(tree, admit(tree, tomorrow, held="8", path=PATH, number=1), tomorrow, cost="8")
    run(24 * 60)

    assert post.kinds == [("exceeded", PATH), ("warn", PATH), ("warn", PATH)]
    assert "has used 80% of its 10 USD a day" in post.messages[2].subject


def test_b57_a_topic_that_fails_is_tried_again_the_next_minute(tree: Ledger, run: Run, post: Post) -> None:
    """B57: nothing is lost, and nothing is told twice."""
    spend(tree, "8")
    post.broken = True
    assert run() == {"posted": 1, "published": 0, "failed": 1}
    post.broken = False

    assert run(1) == {"posted": 0, "published": 1, "failed": 0}
    assert run(2) == {"posted": 0, "published": 0, "failed": 0}


def test_an_alert_outlives_its_window_until_it_is_told(tree: Ledger, run: Run, post: Post) -> None:
    spend(tree, "8")
    post.broken = True
    run()
    post.broken = False
    run(60 * 24)

    assert post.kinds == [("warn", PATH)]
    assert "since 2026-11-29 00:00 UTC" in post.messages[0].email


def test_a_run_that_dies_before_it_publishes_loses_nothing(tree: Ledger, run: Run, post: Post) -> None:
    def dies(_: Message) -> None:
        raise KeyboardInterrupt

    spend(tree, "8")
    with pytest.raises(KeyboardInterrupt):
        run(notify=dies)

    assert run(1)["published"] == 0
    assert run(LEASE / MINUTE)["published"] == 1


def test_a_run_that_dies_before_it_records_tells_it_again(
    tree: Ledger, run: Run, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise LedgerUnavailable("away")

    spend(tree, "8")
    with monkeypatch.context() as broken:
        broken.setattr(AlertStore, "sent", dies)
        with pytest.raises(LedgerUnavailable):
            run()
    run(2)

    assert post.kinds == [("warn", PATH)] * 2


def test_a_topic_that_takes_nothing_is_not_asked_for_every_alert(tree: Ledger, run: Run, post: Post) -> None:
    for number in range(5):
        opened(tree, a_policy(f"b{number}", limits=[a_limit("1")]))
        spend(tree, "0.9", number, f"b{number}")
    post.broken = True

    assert run() == {"posted": 5, "published": 0, "failed": FAILURES_MAX}


def test_the_percentages_are_those_of_the_file(tree: Ledger, config: Config, run: Run, post: Post) -> None:
    config.put_alerts(AlertPolicy(warn_at=(50,), slack=False), an_event())
    spend(tree, "5")
    run()

    assert "50%" in post.messages[0].subject
    assert post.messages[0].chat.startswith("Budget acme/search has used 5 USD")


def test_stops_blocks_old_unknown_money_and_a_stale_catalogue_are_told(
    tree: Ledger, config: Config, run: Run, post: Post
) -> None:
    lost = admit(tree, NOW, held="0.5", path=PATH)
    lose(tree, lost, NOW)
    broken = admit(tree, NOW, held="0.25", path=PATH, number=1)
    tree.resolve(broken.id, settled(USD), NOW)
    tree.stop("acme", Stop(reason="the nightly job loops", at=NOW, by="ada"))
    config.put_catalogue_state(CatalogueState(rows=10, stale=9, age_days=50))
    run()
    run(61)

    assert sorted(post.kinds[:-1]) == [
        ("bound_violated", PATH),
        ("catalogue_stale", "catalogue"),
        ("stopped", "acme"),
        ("stopped", PATH),
    ]
    assert post.kinds[-1] == ("unknown_money", PATH)
    assert f"spendgate reconcile ask {lost.id} --stack spendgate" in post.messages[-1].email


def test_runs_are_not_walked(tree: Ledger, run: Run, post: Post) -> None:
    opened(tree, a_policy(f"{PATH}/run:1", limits=[a_limit("1", window="life")]))
    spend(tree, "1", path=f"{PATH}/run:1")
    run()

    assert post.kinds == []


def test_a_test_sends_one_of_each_kind_and_marks_nothing(ledger: Ledger, run: Run, post: Post) -> None:
    assert send_samples(post, NOW, stack="spendgate").published == len(KINDS)
    assert sorted(kind for kind, _ in post.kinds) == sorted(KINDS)
    assert all(one.subject.startswith("[test]") for one in post.messages)
    assert store_of(ledger).outbox() == ()
    post.broken = True
    assert send_samples(post, NOW).failed == len(KINDS)


def test_what_was_told_and_what_waits_can_be_looked_at(tree: Ledger, run: Run, post: Post) -> None:
    spend(tree, "8")
    run()
    post.broken = True
    tree.stop("acme", Stop(reason="enough", at=NOW, by="ada"))
    run(1)
    waiting, told = recent(tree, NOW + 2 * MINUTE, limit=10)

    assert [one.kind for one in waiting] == ["stopped"]
    assert [(one.alert.kind, one.at) for one in told] == [("warn", NOW)]


def test_two_runs_at_once_tell_it_once(tree: Ledger, config: Config, run: Run, post: Post) -> None:
    spend(tree, "8")

    def overtaken(message: Message) -> None:
        run(0.5)
        post(message)

    run(notify=overtaken)

    assert post.kinds == [("warn", PATH)]


RUN = f"{PATH}/run:7"


def lost_in_a_run(ledger: Ledger, path: str = RUN) -> Reservation:
    policies = path_of(ledger, path)
    reservation = a_reservation(policies, usd=USD)
    ledger.reserve(reservation, policies, NOW)
    return ledger.resolve(reservation.id, UNKNOWN, NOW)


def with_runs(ledger: Ledger) -> None:
    for number in (7, 8):
        opened(ledger, a_policy(f"{PATH}/run:{number}", limits=[a_limit("5")], stop_on_unknown=True))


def test_a_run_that_an_unknown_outcome_has_stopped_is_told_once_a_day_by_its_budget(
    tree: Ledger, run: Run, post: Post
) -> None:
    with_runs(tree)
    first = lost_in_a_run(tree)
    run(1)
    lost_in_a_run(tree, f"{PATH}/run:8")
    run(2)

    assert post.kinds == [("stopped", PATH)]
    assert post.messages[0].subject == f"Spendgate: a run of {PATH} is stopped"
    assert f"Run {RUN} is stopped: the outcome of a call is unknown." in post.messages[0].email
    assert f"spendgate reservations show {first.id}" in post.messages[0].email
    assert f"spendgate resume {RUN} --reason TEXT --stack spendgate" in post.messages[0].email
    run(24 * 60)
    assert sorted(post.kinds[1:]) == [("stopped", PATH), ("unknown_money", PATH)]


def test_a_run_that_was_resumed_is_not_told_of(tree: Ledger, run: Run, post: Post) -> None:
    with_runs(tree)
    lost_in_a_run(tree)
    assert tree.budgets_on([RUN])[0].policy.stop is not None
    tree.resume(RUN, an_event("budget_resumed"))
    run(1)

    assert post.kinds == []


def test_a_run_that_a_conflict_has_stopped_is_told_of_with_the_call_and_once(
    tree: Ledger, run: Run, post: Post
) -> None:
    with_runs(tree)
    reservation = admit(tree, NOW, held="1", path=RUN)
    tree.resolve(reservation.id, settled(1), NOW)
    for cost in (2, 2, 3):
        with pytest.raises(SettlementConflict):
            tree.resolve(reservation.id, settled(cost), NOW)
        run(1)

    assert post.kinds == [("stopped", PATH)]
    assert f"reservation {reservation.id} was settled and then settled with another amount" in post.messages[0].email
    stop = tree.budgets_on([RUN])[0].policy.stop
    assert stop is not None
    assert stop.reservation == reservation.id


def test_a_budget_that_a_conflict_has_stopped_is_told_of_once(tree: Ledger, run: Run, post: Post) -> None:
    reservation = admit(tree, NOW, held="1", path=PATH)
    tree.resolve(reservation.id, settled(1), NOW)
    for cost in (2, 3):
        with pytest.raises(SettlementConflict):
            tree.resolve(reservation.id, settled(cost), NOW)
        run(1)

    assert post.kinds == [("stopped", PATH)]
    assert f"Budget {PATH} is stopped" in post.messages[0].email
