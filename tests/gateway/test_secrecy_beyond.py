"""What operators, alerts, the sweeper and the queue say and keep after calls of every end: no key, prompt or completion in any of it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from spendgate.admin_endpoints import ENDPOINTS
from spendgate.admin_resolver import AdminApi
from spendgate.alerts import alert, send_samples
from spendgate.asking import Asking
from spendgate.core.alert import AlertPolicy
from spendgate.core.alert_text import Message
from spendgate.core.reservation import Resolution
from spendgate.errors import AlertUndelivered
from spendgate.observability import EmbeddedMetrics, JsonLog
from spendgate.providers.recovery import Recovered
from spendgate.settlements import settle_message
from spendgate.store.queue import encode
from spendgate.sweep_minute import minute
from tests.gateway.stand import PROVIDER_KEY, Stand
from tests.store.builders import an_event
from tests.test_admin_resolver import asked

PROMPT = "CANARY-prompt of an agent, 0815"
COMPLETION = "The demo provider says"
# As somebody writes it into the wrong line of a file.
MISPLACED = "sk-CANARY-in-the-wrong-line-77aa"
FILE = f"""\
version: 1
providers:
  openai: {{dialect: openai, base_url: "https://api.openai.com/v1?key={MISPLACED}", secret: "{MISPLACED}", {MISPLACED}: 1}}
budgets:
  acme: {{limits: {{usd: {{day: "{MISPLACED}"}}}}, {MISPLACED}: 2}}
keys:
  one: {{budget: acme, secret: "{MISPLACED}"}}
"""
ENDS = ("ok", "cut", "no_usage", "garbage", "echo", "error_after_work", "overbill")


def called(stand: Stand) -> str:
    """Make a call of every end, each with the prompt and the caller's own key in it; return the key."""
    budgets = '$: {limits: {usd: {day: "0.05"}}}\n$/calls: {limits: {usd: {day: "0.02"}}}'
    key = stand.open(budgets, "$-one: {budget: $/calls}".replace("$", stand.root))
    for end in ENDS:
        stand.behave(end, after_frames=6)
        stand.chat(key, f"{PROMPT} {key}", stream=end == "cut")
    stand.chat(key, PROMPT, max_completion_tokens=4096, model="dear")
    stand.chat(key, PROMPT, unknown_field=PROMPT)
    stand.until(lambda: all(one.state != "in_flight" for one in stand.reservations()))
    return key


def administered(stand: Stand, log: JsonLog, key: str) -> list[str]:
    """Ask the admin API for everything that it shows, and for what it refuses; return its answers."""
    api = AdminApi(stand.admin, log)
    one = stand.reservations()[0].id
    paths = [shown.path.lstrip("/").replace("{id}", one) for shown in ENDPOINTS if shown.method == "GET"]
    events = [asked("GET", path) for path in paths]
    events += [
        asked("POST", name, {"file": text})
        for name in ("plan", "apply", "prices")
        for text in (FILE, PROMPT, f"{MISPLACED}: [")
    ]
    events.append(asked("POST", "apply", {"file": FILE, "plan_id": MISPLACED}))
    events.append(asked("POST", "keys", {"name": MISPLACED, "budget": "acme", MISPLACED: 1}))
    events.append(asked("POST", f"reservations/{one}/reconcile", {"action": MISPLACED}))
    events.append(asked("POST", f"reservations/{one}/reconcile", {"action": "ask"}))
    events.append(asked("POST", "stop", {"path": 7, MISPLACED: key}))
    events += [asked("GET", f"nowhere/{MISPLACED}"), {**asked("POST", "stop"), "body": f"{{{MISPLACED}"}]
    # Who writes a key for a name is told so with what they wrote; the log is not.
    for name in (key, MISPLACED):
        assert api(asked("POST", f"keys/{name}/revoke", {}), None)["statusCode"] == 404
    return [json.dumps(api(event, None)) for event in events]


def test_what_is_told_and_kept_beyond_the_calls_holds_no_secret_and_no_word_of_them(stand: Stand) -> None:
    key = called(stand)
    # After the file, which says nothing of alerts.
    stand.wired.config.put_alerts(AlertPolicy(warn_at=(1, 50), slack=True), an_event("alerts_changed", "alerts"))
    log = JsonLog(stream=stand.log)
    told = administered(stand, log, key)
    messages: list[Message] = []

    def post(message: Message) -> None:
        messages.append(message)
        if len(messages) == 1:
            raise AlertUndelivered("the topic takes no alert: Throttled")

    now = stand.clock()
    alert(stand.wired.ledger, stand.wired.config, post, now, log=log, stack="a-stack")
    alert(stand.wired.ledger, stand.wired.config, post, now + timedelta(minutes=2), log=log, stack="a-stack")
    send_samples(post, now)
    later = now + timedelta(days=4)
    asking = Asking(stand.wired.config.provider, lambda *_: Recovered(report=None, said="answered 404"), "sweeper")
    metrics = EmbeddedMetrics(namespace="Spendgate", service="s", stream=stand.log, now=lambda: later)
    minute(stand.wired.ledger, later, charge_after=timedelta(hours=72), metrics=metrics, log=log, asking=asking)
    queued = [encode(one.id, resolution) for one, resolution in _settled(stand)]
    for body in queued:
        settle_message(stand.wired.ledger, body, 1, now=later, log=log)

    kinds = {one.attributes["kind"] for one in messages if not one.subject.startswith("[test]")}
    # There was something to tell.
    assert {"warn", "bound_violated"} <= kinds
    assert len(told) > 25
    assert queued
    alerts = "\n".join(part for one in messages for part in (one.subject, one.email, one.chat, str(one.attributes)))
    places = {
        "the log": stand.log.getvalue(), "the tables": stand.tables(), "the admin API": "\n".join(told), "alerts": alerts,
        "the queue": "\n".join(queued),
    }  # fmt: skip
    for place, text in places.items():
        for canary in (PROMPT, COMPLETION, PROVIDER_KEY, key):
            assert canary not in text, f"{canary!r} is in {place}"
    for place in ("the log", "the tables", "alerts", "the queue"):
        assert MISPLACED not in places[place], place


def _settled(stand: Stand) -> list[Any]:
    """Return what each call came to, as a gateway would queue it that the ledger did not hear."""
    return [
        (one, Resolution(state="settled", reason="answered", actual=one.actual, usage=one.usage, provider=one.provider,
                         model=one.model, response_model=one.response_model, response_id=one.response_id))
        for one in stand.reservations() if one.state == "settled"
    ]  # fmt: skip
