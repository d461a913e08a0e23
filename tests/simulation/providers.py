"""Providers that answer, refuse, hang, cut, fail after the work, lie about usage, or bill more than they may.

They are reached by ``transport.py``. What each bills is settled the moment a request arrives:
nothing that happens to its connection afterwards takes that back. Wire forms are those of the demo provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import httpx

from spendgate.core.route import Framing, Provider
from spendgate.local.demo_bedrock import CONVERSE, CONVERSE_STREAM, INVOKE, INVOKE_STREAM
from spendgate.local.demo_gemini import ARRAY, BATCH, EMBEDDING, EVENTS, GEMINI, MEDIA_TOKENS
from spendgate.local.demo_openai import COMPLETIONS, EMBEDDINGS, RESPONSES
from spendgate.local.demo_shapes import CHAT, MESSAGES, Reply, Shape
from spendgate.local.demo_work import Work
from tests.simulation.actors import Actor, Process
from tests.simulation.bills import Bill, Tariff, bill_of, cost
from tests.simulation.tellings import beginning, frames, tells_all, usage_text

if TYPE_CHECKING:
    from tests.simulation.world import World

SECRET: Final = "sk-simulated-provider-key"
_BARE: Final = Framing(request=0, tooling=0, tool=0, part=8, output_overshoot=0)


def _provider(name: str, dialect: str, url: str, kind: str | None = None) -> Provider:
    return Provider(name=name, dialect=dialect, base_url=url, secret="env:KEY", framing=_BARE, kind=kind)


PROVIDERS: Final = (
    _provider("gpt", "openai", "https://gpt.example/v1"),
    _provider("oai", "openai", "https://api.openai.com/v1"),
    _provider("router", "openai", "https://openrouter.ai/api/v1"),
    _provider("claude", "anthropic", "https://api.anthropic.com"),
    _provider("claude-there", "anthropic", "https://bedrock.example", "bedrock-anthropic"),
    _provider("gemini", "gemini", "https://generativelanguage.googleapis.com"),
    _provider("converse", "bedrock", "https://converse.example"),
)
# What proves, by each provider's own documents, that nothing was billed.
_REFUSED: Final = (400, 401, 403, 404, 413, 422, 429)
UNBILLED: Final[Mapping[str, tuple[int, ...]]] = {
    "gpt": (*_REFUSED, 409, 415),
    "oai": (*_REFUSED, 409),
    "router": (*_REFUSED, 402, 502, 503),
    "claude": (*_REFUSED, 402, 529),
    "claude-there": (400, 401, 403, 404, 413, 429),
    "gemini": _REFUSED,
    "converse": (400, 401, 403, 404, 413, 415, 429),
}
# What may come after the work, and may not: nobody can say.
UNCLEAR: Final = (500, 500, 504, 408, 520)
_SHAPES: Final = (
    ("/chat/completions", CHAT),
    ("/responses", RESPONSES),
    ("/embeddings", EMBEDDINGS),
    ("/completions", COMPLETIONS),
    ("/v1/messages", MESSAGES),
    ("/converse", CONVERSE),
    ("/converse-stream", CONVERSE_STREAM),
    ("/invoke", INVOKE),
    ("/invoke-with-response-stream", INVOKE_STREAM),
    (":generateContent", GEMINI),
    (":embedContent", EMBEDDING),
    (":batchEmbedContents", BATCH),
)
TROUBLES: Final = (
    *("refuse", "refuse", "unsent", "fail", "fail", "reset", "hang", "cut", "cut", "ends early", "error in stream"),
    *(
        "no usage",
        "no usage",
        "garbage usage",
        "garbage usage",
        "garbage",
        "overbill",
        "redirect",
        "late",
        "overstate",
        "wrong type",
    ),
)
_FREE: Final = ("/count_tokens", ":countTokens")
_GARBAGE: Final = ("null", "[]", "{}", '"many"', "-5", "NaN", '{"prompt_tokens": -4, "completion_tokens": 1e400}')


@dataclass(slots=True, kw_only=True)
class Arrival:
    """One request at a provider: what it billed, and what its answer says that it used.

    ``fair`` tells that the whole answer would say just what is billed; ``over`` that it bills what it may not.
    ``proves`` tells that the answer proves that nothing was billed.
    """

    provider: str
    model: str
    trouble: str
    work: Work
    bill: Bill
    billed: int = 0
    fair: bool = False
    over: bool = False
    proves: bool = False
    reply: Reply | None = None
    shape: Shape | None = None


def arrive(world: World, process: Process, actor: Actor, request: httpx.Request, trouble: str) -> Arrival:
    """Let a request reach its provider, which bills it."""
    random = actor.random
    provider = next(one for one in PROVIDERS if httpx.URL(one.base_url).host == request.url.host)
    path = unquote(request.url.path)
    shape = _shape(path, request.url.query)
    in_path = path.partition("/models/")[2] or path.partition("/model/")[2]
    model = in_path.rpartition(":")[0] if ":" in in_path else in_path.rpartition("/")[0]
    work = shape.read(request.content, {"model": model})
    tariff = world.tariff(provider.name, work.model, process)
    bill = _bill(world, actor, work, shape, tariff)
    if trouble == "overbill":
        bill = _too_much(bill, work, is_embedding="mbed" in path)
    arrival = Arrival(
        provider=provider.name,
        model=work.model,
        trouble=trouble,
        work=work,
        bill=bill,
        billed=cost(bill, tariff),
        over=trouble == "overbill",
        shape=shape,
    )
    match trouble:
        case "refuse":
            arrival.billed, arrival.proves = 0, True
        case "redirect" | "fail" | "reset" if random.random() < 0.5:
            arrival.billed = 0
        case "redirect":
            arrival.billed = 0
        case "ok" | "late" | "overbill" | "cut" | "ends early" | "hang" | "error in stream" | "wrong type":
            # Claude's stream says 1 before it says 0.
            told = tells_all(shape, searching=actor.call.wants.searches is not None)
            arrival.fair = told and (bill.out > 0 or not work.stream)
        case _:
            pass
    arrival.reply = _reply(world, arrival, shape, random)
    world.auditor.egress.arrived(actor, process, arrival, request)
    world.arrivals.append(arrival)
    return arrival


def answer_frames(random: Random, arrival: Arrival) -> list[bytes]:
    """Return the frames of an answer; a stream may tell early what it has used so far, as some servers do."""
    assert arrival.shape is not None
    assert arrival.reply is not None
    told = frames(arrival.shape, arrival.reply, arrival.bill)
    if arrival.shape is not CHAT or random.random() > 0.7:
        return told
    so_far = usage_text(CHAT, arrival.bill, out=min(arrival.bill.out, 1))
    return [told[0].replace(b'"usage":null', b'"usage":' + so_far.encode()), *told[1:]]


def is_free(path: str) -> bool:
    """Tell a request that no provider bills."""
    return path.endswith(_FREE)


def _bill(world: World, actor: Actor, work: Work, shape: Shape, tariff: Tariff) -> Bill:
    wants = actor.call.wants
    # A medium has tokens of its own here, which depend on what it is.
    media = MEDIA_TOKENS * wants.media if shape.name == "gemini" else 0
    return bill_of(
        actor.random,
        dialect=actor.call.dialect,
        wants=wants,
        rich=tariff.rich,
        text_tokens=work.input_tokens - media,
        out=work.output_tokens,
        searches_max=world.auditor.egress.searches_allowed(actor),
    )


def _too_much(bill: Bill, work: Work, *, is_embedding: bool) -> Bill:
    """Return a bill that no provider may make."""
    if is_embedding and bill.out == 0:
        return replace(bill, fresh=10**6)
    most = work.output_tokens if work.output_cap is None else work.output_cap * work.choices
    return replace(bill, out=most * 20 + 5000)


def _reply(world: World, arrival: Arrival, shape: Shape, random: Random) -> Reply:
    work, bill = arrival.work, arrival.bill
    told: str | None = usage_text(shape, bill, out=bill.out + (arrival.trouble == "overstate"))
    if arrival.provider == "router":
        told = _charged(told, arrival.billed)
    if arrival.trouble == "no usage":
        told = None
    if arrival.trouble == "garbage usage":
        told = random.choice(_GARBAGE)
    return Reply(
        id=len(world.arrivals),
        model=work.model,
        words=work.words[:24],
        tool=work.tool,
        choices=work.choices,
        capped=work.capped,
        input_tokens=beginning(shape, bill),
        usage_text=told,
        usage_asked=work.usage_asked,
        base64=work.base64,
        searches=bill.searches,
    )


def _charged(usage: str | None, billed: int) -> str:
    """Add what the router says that it charges."""
    return f'{(usage or "{")[:-1]}, "cost": {billed // 10**12}.{billed % 10**12:012d}}}'


def _shape(path: str, query: bytes) -> Shape:
    if path.endswith(":streamGenerateContent"):
        return EVENTS if b"alt=sse" in query else ARRAY
    return next(shape for end, shape in _SHAPES if path.endswith(end))
