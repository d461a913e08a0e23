"""The alerts' function as Lambda calls it: its event in, figures and metrics out."""

import importlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from spendgate.core.alert import KINDS
from spendgate.core.alert_text import Message
from spendgate.core.budget import Stop
from spendgate.errors import AlertUndelivered
from spendgate.store.ledger import Ledger
from tests.store.builders import a_policy, opened

EVENT: Final = json.loads(
    (Path(__file__).parents[2] / "events" / "alerts-schedule.json").read_text(encoding="utf-8"),
)


class Post:
    """A topic that keeps what it is given; ``broken`` takes nothing."""

    def __init__(self) -> None:
        self.subjects: list[str] = []
        self.broken = False

    def __call__(self, message: Message) -> None:
        if self.broken:
            raise AlertUndelivered("the topic takes no alert: NotFound")
        self.subjects.append(message.subject)


@pytest.fixture
def post() -> Post:
    return Post()


@pytest.fixture
def app(ledger: Ledger, store_url: str, post: Post, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The function's module as it is when the platform has loaded it, with another topic."""
    environ = {
        "SPENDGATE_LEDGER_TABLE": ledger.table,
        "SPENDGATE_CONFIG_TABLE": f"{ledger.table}-config",
        "SPENDGATE_ENDPOINT_URL": store_url,
        "SPENDGATE_LEDGER_DEADLINE_SECONDS": "20",
        "SPENDGATE_STACK": "gate-eu",
        "SPENDGATE_ALERTS_TOPIC_ARN": "arn:aws:sns:eu-central-1:123456789012:alerts",
        "POWERTOOLS_METRICS_NAMESPACE": "Spendgate",
        "POWERTOOLS_SERVICE_NAME": "gate-eu",
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    module = importlib.import_module("functions.alerts.app")
    # Loaded anew for each test, as a new sandbox would.
    module = importlib.reload(module)
    monkeypatch.setattr(module, "topic", post)
    yield module
    module.ledger.client.close()


def metrics(printed: str) -> dict[str, Any]:
    """Return the figures of the one line in the embedded metric format."""
    (line,) = [json.loads(line) for line in printed.splitlines() if "_aws" in line]
    return {name: line[name] for name in ("AlertsPublished", "AlertsFailed", "service")}


def test_a_minute_tells_what_stands_once_and_counts_it(
    app: ModuleType, ledger: Ledger, post: Post, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(ledger, a_policy("acme"))
    ledger.stop("acme", Stop(reason="it loops", at=datetime(2026, 11, 30, tzinfo=UTC), by="ada"))

    first = app.handler(EVENT, object())
    counted = metrics(capsys.readouterr().out)
    second = app.handler(EVENT, object())

    assert first == {"posted": 1, "published": 1, "failed": 0}
    assert second == {"posted": 0, "published": 0, "failed": 0}
    assert post.subjects == ["Spendgate: acme is stopped"]
    assert counted == {"AlertsPublished": [1.0], "AlertsFailed": [0.0], "service": "gate-eu"}


def test_a_topic_that_takes_nothing_is_a_figure_and_no_crash(
    app: ModuleType, ledger: Ledger, post: Post, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(ledger, a_policy("acme"))
    ledger.stop("acme", Stop(reason="it loops", at=datetime(2026, 11, 30, tzinfo=UTC), by="ada"))
    post.broken = True

    assert app.handler(EVENT, object()) == {"posted": 1, "published": 0, "failed": 1}
    assert metrics(capsys.readouterr().out)["AlertsFailed"] == [1.0]


def test_a_test_sends_one_of_each_kind_marked_as_a_test_and_reads_no_ledger(app: ModuleType, post: Post) -> None:
    # Only the boolean is a test: whatever else the schedule may send is a minute's work.
    assert app.handler({"test": True}, object()) == {"posted": 0, "published": len(KINDS), "failed": 0}

    assert len(post.subjects) == len(KINDS)
    assert all(subject.startswith("[test] Spendgate: ") for subject in post.subjects)
    assert app.handler({"test": "true"}, object()) == {"posted": 0, "published": 0, "failed": 0}
