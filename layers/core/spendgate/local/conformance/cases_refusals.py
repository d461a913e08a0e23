"""Cases of what a refusal looks like, to a program and to the official clients."""

import contextlib
import json
import statistics
from typing import Final

from spendgate.local.conformance.case import Case, Missed, Stand
from spendgate.local.conformance.driver import Cannot
from spendgate.local.conformance.manner import Manner


def _exhausted(stand: Stand) -> None:
    stand.spend()


def _facts(stand: Stand) -> None:
    _exhausted(stand)
    before = stand.provider.hits
    refusal = stand.call()
    if stand.provider.hits > before:
        raise Missed("a call beyond the limit was sent to the provider")
    try:
        error = json.loads(refusal.text)["error"]
        message, kind = error["message"], error.get("code") or error["type"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Missed(f"the refusal is not in the dialect's shape: {refusal.status} {refusal.text[:100]}") from None
    stand.remarks.append(f"{refusal.status} {kind}: {message}")
    if not {"limit", "maximum", "spent", "settled"} & set(error):
        raise Missed(f"the refusal {refusal.status} {kind} has no figures that a program can read")


def _busy(stand: Stand) -> None:
    during = {answer.status for answer in stand.burst([stand.body()] * 24) if answer.refused}
    stand.provider.manner = Manner()
    stand.spend()
    after = stand.call()
    kinds = {_kind(answer.text) for answer in stand.answers if answer.refused}
    stand.remarks.append(
        f"while calls are in flight {sorted(during)}, when it is spent {after.status}; {sorted(kinds)}"
    )
    if len(kinds) < 2:
        raise Missed("a limit that is spent and one that is only held by calls in flight are refused alike")


def _kind(text: str) -> str:
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        error = json.loads(text)["error"]
        return str(error.get("code") or error["type"])
    return ""


def _openai_client(stand: Stand) -> None:
    try:
        import openai  # noqa: PLC0415 - only this case needs it
    except ImportError:
        raise Cannot("the openai client is not installed beside the suite") from None
    _exhausted(stand)
    caller = stand.session.callers[0]
    sent: list[object] = []
    with openai.DefaultHttpxClient(trust_env=False, event_hooks={"request": [sent.append]}) as http:
        client = openai.OpenAI(
            base_url=f"{stand.session.url}/v1",
            api_key=caller.key,
            default_headers=dict(caller.headers),
            http_client=http,
        )
        try:
            client.chat.completions.create(**stand.body())
        except openai.APIStatusError as error:
            refused = type(error).__name__
        else:
            raise Missed("the call beyond the limit was answered")
    _asked_once(stand, sent, refused)


def _anthropic_client(stand: Stand) -> None:
    try:
        import anthropic  # noqa: PLC0415 - only this case needs it
    except ImportError:
        raise Cannot("the anthropic client is not installed beside the suite") from None
    _exhausted(stand)
    caller = stand.session.callers[0]
    sent: list[object] = []
    with anthropic.DefaultHttpxClient(trust_env=False, event_hooks={"request": [sent.append]}) as http:
        client = anthropic.Anthropic(
            base_url=stand.session.url, api_key=caller.key, default_headers=dict(caller.headers), http_client=http
        )
        try:
            client.messages.create(**stand.body())
        except anthropic.APIStatusError as error:
            refused = type(error).__name__
        else:
            raise Missed("the call beyond the limit was answered")
    _asked_once(stand, sent, refused)


def _asked_once(stand: Stand, sent: list[object], refused: str) -> None:
    stand.remarks.append(f"{refused} after {len(sent)} request{'s' if len(sent) > 1 else ''}")
    if len(sent) > 1:
        raise Missed(f"the client asked {len(sent)} times before it told of the refusal ({refused})")


def _latency(stand: Stand) -> None:
    _exhausted(stand)
    taken = sorted(answer.seconds * 1000 for _ in range(20) if not (answer := stand.call()).served)
    if len(taken) < 20:
        raise Missed(f"{20 - len(taken)} of 20 calls beyond the limit were answered")
    stand.milliseconds = statistics.median(taken)
    stand.remarks.append(
        f"refused in {statistics.median(taken):.1f} ms (p50), {taken[len(taken) * 95 // 100]:.1f} ms (p95)"
    )


CASES: Final = (
    Case(
        name="the openai client",
        group="refusals",
        title="the official client asks once beyond the limit, and is told once",
        play=_openai_client,
    ),
    Case(
        name="the anthropic client",
        group="refusals",
        title="the official client asks once beyond the limit, and is told once",
        play=_anthropic_client,
        dialect="anthropic",
    ),
    Case(
        name="what a refusal says",
        group="refusals",
        title="in the dialect's shape, with figures that a program can read",
        play=_facts,
    ),
    Case(
        name="spent or only held",
        group="refusals",
        title="a limit that calls in flight hold is told apart from one that is spent",
        play=_busy,
        manner=Manner(delay_seconds=0.5),
    ),
    Case(
        name="latency of a refusal",
        group="refusals",
        title="20 calls beyond the limit, one after the other (printed, not judged)",
        play=_latency,
    ),
)
