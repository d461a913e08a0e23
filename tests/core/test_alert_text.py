"""The words of alerts, each kind as it arrives; ``golden_alerts/`` holds them. To write them anew: WRITE_GOLDEN=1."""

import json
import os
import re
import shlex
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from spendgate.cli.main import cli
from spendgate.core.alert import KINDS, Alert
from spendgate.core.alert_samples import samples
from spendgate.core.alert_text import SUBJECT_LENGTH_MAX, Message, message
from tests.chat_form import content_of

NOW = datetime(2026, 11, 30, 2, 14, tzinfo=UTC)
SAMPLES = {alert.kind: alert for alert in samples(NOW)}
GOLDEN = Path(__file__).with_name("golden_alerts")


def shown(text: Message) -> str:
    return f"{text.subject}\n\n{text.email}\n{json.dumps(json.loads(text.chat), indent=2)}\n\n{dict(text.attributes)}\n"


def of(kind: str, **facts: str) -> Alert:
    alert = SAMPLES[kind]  # type: ignore[index]
    return replace(alert, facts={**alert.facts, **facts})


@pytest.mark.parametrize("kind", KINDS)
def test_an_alert_reads_like_this(kind: str) -> None:
    text, file = shown(message(of(kind), stack="spendgate")), GOLDEN / f"{kind}.txt"
    if os.environ.get("WRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8")

    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_a_chat_gets_what_amazon_q_shows(kind: str) -> None:
    content = content_of(message(of(kind)).chat)

    assert kind in content["keywords"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_command_of_an_alert_is_one_that_exists(kind: str) -> None:
    for line in re.findall(r"^ {4}(spendgate .+)$", message(of(kind)).email, re.MULTILINE):
        command: click.Command = cli
        words = shlex.split(line)[1:]
        while isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        options = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= options, line


@pytest.mark.parametrize("kind", KINDS)
def test_a_subject_is_what_an_email_takes(kind: str) -> None:
    deep = replace(SAMPLES[kind], scope="/".join(["d" * 30] * 8))  # type: ignore[index]
    subject = message(deep).subject

    assert 0 < len(subject) <= SUBJECT_LENGTH_MAX < 100
    assert subject.isascii()
    assert subject.isprintable()


def test_a_model_with_a_name_beyond_ascii_does_not_spoil_the_subject() -> None:
    assert message(of("unpriced", model="modèle\n")).subject.isascii()


def test_words_of_others_ring_no_channel_and_fill_no_page() -> None:
    text = message(of("stopped", reason="<!channel> " + "x" * 5000 + "\nBcc: everybody"))

    assert "<!channel>" not in text.chat
    assert "&lt;!channel&gt;" in text.chat
    assert len(text.email) < 2000
    assert "\nBcc" not in text.email


def test_a_test_says_that_it_is_one() -> None:
    text = message(of("warn"), test=True)

    assert text.subject.startswith("[test] ")
    assert text.email.startswith("This is a test")
    assert "[test]" in json.loads(text.chat)["content"]["title"]


def test_without_slack_what_other_protocols_get_is_plain() -> None:
    assert message(of("warn"), slack=False).chat.startswith("Budget acme/search/triage has used 32.104817 USD")


def test_100_percent_says_what_follows_of_a_budget_that_enforces_and_of_one_that_observes() -> None:
    full = {"asked": "", "percent": "103", "used": "41.2"}

    assert "has used 41.2 USD of its limit of 40 USD a month: 103%" in message(of("exceeded", **full)).email
    observing = message(of("exceeded", **full, mode="observe")).email
    assert "its limit stops nothing" in observing
    assert "mode: enforce" in observing
    assert "only observes" in message(of("warn", mode="observe")).email


def test_counts_a_lifetime_and_what_has_no_end_read_right() -> None:
    facts = {"measure": "tool_calls", "window": "life", "maximum": "50", "used": "41", "left": "9", "reserved": ""}
    email = message(of("warn", **facts, unknown="", since="", resets_at="")).email

    assert "41 tool calls of its limit of 50 tool calls in its lifetime" in email
    assert "until there is room again" in email


def test_the_part_of_unknown_outcome_is_told_and_an_hour_is_an_hour() -> None:
    email = message(of("warn", window="hour", unknown="0.4")).email

    assert "reserved  1.2 USD, of it 0.4 USD of unknown outcome" in email
    assert "40 USD an hour" in email


def test_many_calls_of_unknown_outcome_of_nobody_known_are_counted() -> None:
    email = message(of("unknown_money", count="3", provider="")).email

    assert "for 3 calls whose outcome nobody knows" in email
    assert "provider  " not in email


def test_a_stop_that_a_call_caused_names_the_call() -> None:
    email = message(of("stopped", reservation="01M8N3P0J00000000000000000")).email

    assert "spendgate reservations show 01M8N3P0J00000000000000000" in email


def test_a_run_that_is_refused_for_its_time_is_not_told_to_raise_what_cannot_be_raised() -> None:
    facts = {"measure": "active_milliseconds", "window": "life", "maximum": "5000", "left": "0", "asked": "1"}

    assert (
        "spendgate resume acme/search/triage/run:4471 --reason TEXT --limit life=USD"
        in message(of("run_exceeded")).email
    )
    assert "spendgate resume" not in message(of("run_exceeded", **facts)).email
