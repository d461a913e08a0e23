"""An alert as a message: an email as a person would write it, and the same for a chat. Its words are those of ``alert_words.py``.

``nextSteps`` and the rest of the chat's form are those of custom notifications of Amazon Q Developer in chat applications
(docs.aws.amazon.com/chatbot/latest/adminguide/custom-notifs.html): whatever has another form it drops without a word.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spendgate.core.alert import Alert
from spendgate.core.alert_words import WORDS, Words, when
from spendgate.core.window import instant

# Amazon SNS, Publish: a subject is ASCII, without line breaks, and has fewer than 100 characters.
SUBJECT_LENGTH_MAX: Final = 99
TITLE_LENGTH_MAX: Final = 250
DESCRIPTION_LENGTH_MAX: Final = 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An alert as it is sent: by email, to a chat, and with the attributes that a subscription can be filtered by."""

    subject: str
    email: str
    chat: str
    attributes: Mapping[str, str]


def message(alert: Alert, *, stack: str | None = None, slack: bool = True, test: bool = False) -> Message:
    """Return the texts of an alert. ``stack`` is the stack that the commands name, None for a local run."""
    words = WORDS[alert.kind](alert.scope, alert.facts)
    at = f" --stack {stack}" if stack else ""
    steps = tuple((why, f"{command}{at}" if command else "") for why, command in words.steps)
    mark = "[test] " if test else ""
    return Message(
        subject=_ascii(f"{mark}Spendgate: {words.headline}")[:SUBJECT_LENGTH_MAX],
        email=_email(words, steps, seen=instant(alert.at), stack=stack, test=test),
        chat=_chat(alert, words, steps, mark=mark) if slack else words.said,
        attributes={"severity": alert.severity, "scope": alert.scope, "kind": alert.kind},
    )


def _email(words: Words, steps: tuple[tuple[str, str], ...], *, seen: str, stack: str | None, test: bool) -> str:
    width = max((len(name) for name, _ in words.table), default=0)
    parts = [
        "This is a test: nothing happened, and the figures are made up." if test else "",
        words.said,
        "\n".join(f"  {name.ljust(width)}  {value}" for name, value in words.table),
        words.then,
        "What to do:",
        "\n\n".join(f"- {why}" + (f"\n    {command}" if command else "") for why, command in steps),
        f"Spendgate{f', stack {stack}' if stack else ''}, {when(seen)}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _chat(alert: Alert, words: Words, steps: tuple[tuple[str, str], ...], *, mark: str) -> str:
    icon = {"critical": ":rotating_light:", "warning": ":warning:", "info": ":information_source:"}[alert.severity]
    lines = [_safe(words.said), *(f"*{name}*: {_safe(value)}" for name, value in words.table), _safe(words.then)]
    content: dict[str, Any] = {
        "textType": "client-markdown",
        "title": f"{icon} {_safe(mark + words.headline)}"[:TITLE_LENGTH_MAX],
        "description": "\n".join(line for line in lines if line)[:DESCRIPTION_LENGTH_MAX],
        "nextSteps": [f"{_safe(why)} `{_safe(command)}`" if command else _safe(why) for why, command in steps],
        "keywords": ["spendgate", alert.kind, alert.severity],
    }
    # Follow-ups of one budget stand below each other, where the channel allows threads.
    metadata = {"threadId": f"spendgate/{alert.scope}", "summary": _safe(words.headline), "eventType": alert.kind}
    return json.dumps({"version": "1.0", "source": "custom", "content": content, "metadata": metadata})


def _ascii(text: str) -> str:
    return "".join(character if " " <= character <= "~" else "?" for character in text)


def _safe(text: str) -> str:
    """Return a text in which Slack sees no mention and no link: words of others must not ring a whole channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("`", "'")
