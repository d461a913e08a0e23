"""Cases of names, callers, windows and trees of budgets, and of what a refusal looks like to the official clients."""

import contextlib
import json
import statistics
import time
from typing import Final

from spendgate.core.money import Picodollars
from spendgate.local.conformance.case import Case, Missed, Stand
from spendgate.local.conformance.driver import MODEL, RATE, Caller, Cannot, Model
from spendgate.local.conformance.provider import Manner

_UNPRICED: Final = "conformance-unpriced"
_CHEAP_NAME: Final = "conformance-cheap"
_DAY_SECONDS: Final = 86_400
_OTHER_PATHS: Final = (
    "/v1/images/generations",
    "/v1/embeddings",
    "/v1/responses",
    "/v1/batches",
    "/v1/audio/speech",
    "/openai/v1/images/generations",
    "//v1/images/generations",
    "/v1/chat/completions/../images/generations",
    "/images/generations",
)


def _unpriced(stand: Stand) -> None:
    body = stand.body(model=stand.session.asked[_UNPRICED])
    stand.burst([body] * 16)
    stand.spend(body, most=20)


def _near_names(stand: Stand) -> None:
    name = stand.session.asked[MODEL]
    near = (
        name.upper(),
        f"{name}-2026-11-30",
        f"{name}-latest",
        f"openai/{name}",
        f"models/{name}",
        f" {name} ",
        f"{name}:free",
        name[:-1],
        f"ft:{name}:org::id",
        "",
    )
    for one in near:
        for _ in range(3):
            stand.call(stand.body(model=one))


def _other_name(stand: Stand) -> None:
    stand.spend(most=40)


def _names_itself(stand: Stand) -> None:
    for number in range(30):
        who = f"somebody-{number}"
        headers = {
            "x-governer-agent": who,
            "x-inferrail-attribute-work-id": who,
            "x-inferrail-attribute-project": who,
            "x-inferrail-budget-usd": "1000",
            "x-hardcap-tenant": who,
            "x-spendgate-budget": who,
            "x-litellm-tags": who,
            "openai-organization": who,
            "x-forwarded-for": f"10.0.0.{number}",
        }
        stand.call(stand.body(user=who, metadata={"user_id": who, "tags": who}), headers=headers)
        stand.call(headers=headers)


def _no_key(stand: Stand) -> None:
    for key in ("", "sk-invented", "sg-" + "0" * 40, stand.session.callers[0].key + "x"):
        stand.call(caller=Caller(key=key))
    if stand.provider.hits:
        raise Missed(f"{stand.provider.hits} of 4 calls without a key of the gateway's were sent to the provider")


def _revoked(stand: Stand) -> None:
    stand.spend(most=2)
    before = stand.provider.hits
    stand.session.revoke(stand.session.callers[0])
    stand.spend(most=6)
    if stand.provider.hits > before:
        raise Missed(f"{stand.provider.hits - before} calls with a revoked key were sent to the provider")


def _side_doors(stand: Stand) -> None:
    body = {"model": stand.session.asked[MODEL], "prompt": "x", "input": "x"}
    for path in _OTHER_PATHS:
        for _ in range(2):
            stand.call(body, path=path)


def _daily(stand: Stand) -> None:
    stand.burst([stand.body()] * 24)
    stand.spend()


def _a_minute(stand: Stand) -> None:
    # At the end of a minute its limit and the next one's are both open.
    while time.time() % 60 > 50:
        time.sleep(1)
    stand.burst([stand.body()] * 24)
    if stand.provider.hits > 5:
        raise Missed(f"{stand.provider.hits} calls were sent within a minute that allows 5")


def _midnight(stand: Stand) -> None:
    stand.session.advance(0)
    stand.spend()
    first = stand.provider.billed
    stand.session.advance(_DAY_SECONDS)
    stand.spend()
    second = stand.provider.billed - first
    if not second:
        raise Missed("the limit of a day did not open again on the next one")
    if max(first, second) > 4 * 10**9:
        raise Missed("more was billed in one of two days than its limit")


def _two_children(stand: Stand) -> None:
    stand.burst([stand.body()] * 40, callers=2)
    stand.spend(caller=0)
    stand.spend(caller=1)


def _small_child(stand: Stand) -> None:
    stand.burst([stand.body()] * 24)
    stand.spend()


def _many_runs(stand: Stand) -> None:
    for number in range(8):
        stand.spend(headers=stand.session.run(f"run-{number}"), most=12)


def _one_run(stand: Stand) -> None:
    stand.spend(headers=stand.session.run("run-1"))


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
        name="unpriced model",
        group="unpriced and aliased models",
        title="a model that is served and has no price",
        play=_unpriced,
        unpriced=(_UNPRICED,),
        sends=False,
    ),
    Case(
        name="nearly its name",
        group="unpriced and aliased models",
        title="ten spellings close to a priced model's name, three calls each",
        play=_near_names,
        sends=False,
    ),
    Case(
        name="another name in the answer",
        group="unpriced and aliased models",
        title="the answer says that a cheaper model answered; the dearer one is billed",
        play=_other_name,
        models=(Model(), Model(name=_CHEAP_NAME, input=Picodollars(RATE // 10), output=Picodollars(RATE // 10))),
        manner=Manner(model=_CHEAP_NAME),
    ),
    Case(
        name="names itself",
        group="identity",
        title="each call says in headers and body that it is somebody else, and how much it may spend",
        play=_names_itself,
    ),
    Case(name="no key", group="identity", title="no key, and three invented ones", play=_no_key, sends=False),
    Case(name="revoked key", group="identity", title="a key is taken away after two calls", play=_revoked),
    Case(
        name="side doors",
        group="identity",
        title="nine other paths that a provider bills, with a good key",
        play=_side_doors,
        limit="0.05",
        sends=False,
    ),
    Case(
        name="day within a lifetime",
        group="windows",
        title="the limit of the day is reached before the one above it",
        play=_daily,
        limit="1",
        judged="0.004",
        daily="0.004",
    ),
    Case(
        name="requests a minute",
        group="windows",
        title="24 calls at once where five a minute are allowed",
        play=_a_minute,
        limit="1",
        requests_a_minute=5,
    ),
    Case(
        name="midnight",
        group="windows",
        title="the limit of a day opens again at midnight, once",
        play=_midnight,
        limit="1",
        judged="0.008",
        daily="0.004",
    ),
    Case(
        name="two below one",
        group="hierarchy",
        title="two callers with a limit each, whose sum is more than the one above both",
        play=_two_children,
        shares=("0.008", "0.008"),
    ),
    Case(
        name="small below large",
        group="hierarchy",
        title="one caller's small limit below a large one",
        play=_small_child,
        limit="1",
        judged="0.004",
        shares=("0.004", "0.5"),
    ),
    Case(
        name="a run",
        group="hierarchy",
        title="one run's limit below a larger one",
        play=_one_run,
        limit="1",
        judged="0.004",
        runs="0.004",
    ),
    Case(
        name="ever new runs",
        group="hierarchy",
        title="eight runs, each with a limit of its own, below one limit of all",
        play=_many_runs,
        runs="0.004",
    ),
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
