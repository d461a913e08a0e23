"""``spendgate demo``: a runaway agent, a crowd and a provider that hangs meet their budgets on this machine.

The gateway, its store and the demo provider are the real ones, on loopback; the agent reaches them over HTTP like
anybody. After every step two promises are checked: settled + reserved <= limit, and billed <= ledger.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from spendgate.core.money import usd_text
from spendgate.local import demo_render as render
from spendgate.local.demo_agent import DEADLINE_HEADER, MARGIN_SECONDS, Agent, Answered, Look, PromiseBroken, Standing
from spendgate.local.demo_gate import Gate
from spendgate.local.demo_provider import create_app as create_demo_provider
from spendgate.local.place import Local
from spendgate.local.server import running
from spendgate.local.serving import served
from spendgate.settings import Settings

OUTPUT_CAP: Final = 40
CROWD: Final = 20
STEPS_MAX: Final = 20
# So long a call may last that the provider leaves hanging.
PATIENCE_SECONDS: Final = 1.5
WATCH_SECONDS: Final = 0.1
# How long the crowd may take to be admitted or refused, on however slow a machine.
CROWD_SECONDS_MAX: Final = 60

# The agent never says more than this; its own answers make the context grow. The directive keeps answers short.
TASK: Final = {"role": "user", "content": "Go on. [[output:4]]"}

RUNAWAY, CROWDED, HUNG = "demo/runaway", "demo/crowd", "demo/hung"
KEYS: Final = {path: f"sg-demo-{path.rpartition('/')[2]}-0000000000000000" for path in (RUNAWAY, CROWDED, HUNG)}

_FILE: Final = """\
version: 1
providers:
  demo-provider:
    dialect: openai
    base_url: {url}/v1
    # The demo provider documents what it adds to a request; an unknown host gets a larger allowance.
    framing: {{request: 0, tooling: 0, tool: 0, part: 8, output_overshoot: 0}}
prices:
  - {{provider: demo-provider, model: demo, input: "2.50", output: "10", context_tokens: 128000, output_tokens_max: 4096}}
routes:
  demo: [{{provider: demo-provider, model: demo}}]
budgets:
  demo: {{limits: {{usd: {{life: "0.004"}}}}}}
  demo/runaway: {{limits: {{usd: {{life: "0.001"}}}}}}
  demo/crowd: {{limits: {{usd: {{life: "0.002"}}}}}}
  demo/hung: {{limits: {{usd: {{life: "0.0008"}}}}}}
keys:
  runaway: {{budget: demo/runaway, secret: {runaway}}}
  crowd: {{budget: demo/crowd, secret: {crowd}}}
  hung: {{budget: demo/hung, secret: {hung}}}
"""


def run_demo(*, console: render.Screen, as_json: bool) -> int:
    """Run the demo; return 0, or 1 where a promise did not hold. LocalStoreFailed where it cannot start."""
    with tempfile.TemporaryDirectory(prefix="spendgate-demo-") as folder:
        facts = asyncio.run(_run(Path(folder), None if as_json else render.Narrator(console)))
    if as_json:
        print(json.dumps(facts, indent=2))  # noqa: T201 - the document that was asked for
    return 0 if facts["ok"] else 1


@dataclass(slots=True)
class _Stage:
    """What every scene has: the agent, who tells people about it, and the facts so far."""

    agent: Agent
    local: Local
    gate: Gate
    tell: render.Narrator | None
    facts: dict[str, Any] = field(default_factory=dict)


async def _run(folder: Path, tell: render.Narrator | None) -> dict[str, Any]:
    settings = Settings(deadline_header=DEADLINE_HEADER, deadline_grace_seconds=1)
    if tell is not None:
        tell.beginning()
    async with AsyncExitStack() as stack:
        gate = Gate(create_demo_provider())
        provider_url = await stack.enter_async_context(served(gate))
        keys = {path.rpartition("/")[2]: secret for path, secret in KEYS.items()}
        text = _FILE.format(url=provider_url, **keys)
        local = await stack.enter_async_context(running(text, settings, state_dir=folder, persist=False, port=0))
        client = await stack.enter_async_context(httpx.AsyncClient())
        stage = _Stage(Agent(client, url=local.url, provider_url=provider_url), local, gate, tell)
        try:
            await _runaway(stage)
            await _crowd(stage)
            await _hung(stage)
            await _end(stage)
        except (PromiseBroken, httpx.HTTPError, TimeoutError) as broken:
            # A gateway or a provider that does not answer keeps no promise either.
            stage.facts["broken"] = str(broken) or type(broken).__name__
            if tell is not None:
                tell.broken(stage.facts["broken"])
    return {"ok": "broken" not in stage.facts, "checks": stage.agent.checks, **stage.facts}


async def _runaway(stage: _Stage) -> None:
    """Loop with a growing context until the budget says no."""
    agent, key = stage.agent, KEYS[RUNAWAY]
    before = await agent.look(key)
    if stage.tell is not None:
        stage.tell.runaway(before.leaf, output_cap=OUTPUT_CAP)
    messages = [TASK]
    steps: list[dict[str, Any]] = stage.facts.setdefault("steps", [])
    for number in range(1, STEPS_MAX + 1):
        answered = await agent.call(key, messages, output_cap=OUTPUT_CAP)
        look = await agent.look(key)
        steps.append(_step(number, answered.status, answered.headers, answered.body, look))
        if stage.tell is not None:
            stage.tell.step(steps[-1])
        if answered.status != 200:
            break
        messages.append({"role": "assistant", "content": answered.text})
        before = look
    _demand(steps[-1]["code"] == "over_budget", f"the runaway agent was not refused but met {steps[-1]['code']}")
    _demand(look.hits == before.hits, f"the refused call reached the provider: {before.hits} hits, then {look.hits}")
    refusal = {**answered.error, "status": answered.status, "hits_before": before.hits, "hits_after": look.hits}
    stage.facts["refusal"] = refusal
    if stage.tell is not None:
        stage.tell.refusal(refusal)
    await _fitted(stage, messages, refusal)


async def _fitted(stage: _Stage, messages: list[dict[str, str]], refusal: Mapping[str, Any]) -> None:
    """Do what the refusal advised: the output cap that it names fits."""
    cap = (refusal["fits"] or {}).get("max_output_tokens", 0)
    if not cap:
        return
    answered = await stage.agent.call(KEYS[RUNAWAY], messages, output_cap=cap)
    look = await stage.agent.look(KEYS[RUNAWAY])
    _demand(answered.status == 200, f"an output cap of {cap} should have fitted, and met {answered.status}")
    step = _step(len(stage.facts["steps"]) + 1, answered.status, answered.headers, answered.body, look)
    stage.facts["fitted"] = {**step, "output_cap": cap}
    if stage.tell is not None:
        stage.tell.fitted(stage.facts["fitted"])


async def _crowd(stage: _Stage) -> None:
    """Make many calls at once on a budget with room for few."""
    agent, key = stage.agent, KEYS[CROWDED]
    before = await agent.look(key)
    if stage.tell is not None:
        stage.tell.crowd(before.leaf, calls=CROWD)
    # No answer comes back before every call is admitted or refused: none may use the room of one that was faster.
    stage.gate.shut()
    calls = [asyncio.create_task(agent.call(key, [TASK], output_cap=OUTPUT_CAP)) for _ in range(CROWD)]
    try:
        async with asyncio.timeout(CROWD_SECONDS_MAX):
            fullest = await _decided(agent, key, calls, before)
    finally:
        stage.gate.open()
    answers = [await call for call in calls]
    after = await agent.look(key)
    admitted = [one for one in answers if one.is_admitted]
    hits = after.hits - before.hits
    _demand(hits == len(admitted), f"{len(admitted)} calls were admitted, and {hits} reached the provider")
    refused = Counter(f"{one.status} {one.error['code']}" for one in answers if not one.is_admitted)
    stage.facts["crowd"] = {
        "calls": CROWD,
        "admitted": len(admitted),
        "refused": dict(sorted(refused.items())),
        "hits": hits,
        "bound_usd": next((one.headers["x-spendgate-reserved-usd"] for one in admitted), None),
        "most_usd": usd_text(fullest.settled + fullest.reserved),
        **after.leaf.as_json(),
    }
    if stage.tell is not None:
        stage.tell.crowded(stage.facts["crowd"], fullest)


async def _decided(agent: Agent, key: str, calls: Sequence[asyncio.Task[Answered]], before: Look) -> Standing:
    """Wait until every call is refused or has reached the provider; return the budget as it then stands."""
    while True:
        refused = sum(call.done() for call in calls)
        look = await agent.look(key)
        if refused + look.hits - before.hits >= len(calls):
            return look.leaf
        await asyncio.sleep(WATCH_SECONDS)


async def _hung(stage: _Stage) -> None:
    """Call a provider that takes the request, bills it and never answers: the money stays held."""
    agent, key = stage.agent, KEYS[HUNG]
    before = await agent.look(key)
    if stage.tell is not None:
        stage.tell.hung(before.leaf, seconds=PATIENCE_SECONDS)
    await agent.tell_provider(behaviour="hang", max_seconds=30)
    deadline_ms = int((time.time() + MARGIN_SECONDS + PATIENCE_SECONDS) * 1000)
    lost = await agent.call(key, [TASK], output_cap=OUTPUT_CAP, deadline_ms=deadline_ms)
    await agent.tell_provider(behaviour="ok")
    held = await agent.look(key)
    _demand(lost.error.get("code") == "outcome_unknown", f"the hung call was answered {lost.status}")
    _demand(held.leaf.unknown > 0, "the hung call's money is not held")
    then = await agent.call(key, [TASK], output_cap=OUTPUT_CAP)
    after = await agent.look(key)
    _demand(then.error.get("code") == "over_budget", f"a call on money that is held met {then.status}")
    _demand(after.hits == held.hits, "the refused call reached the provider")
    billed = after.billed - before.billed
    reservation = lost.error["reservation"]
    stage.facts["hung"] = {
        "status": lost.status,
        "code": lost.error["code"],
        "message": lost.error["message"],
        "reservation": reservation,
        "billed_usd": usd_text(billed),
        "then": {"status": then.status, "code": then.error["code"], "message": then.error["message"]},
        "command": f'spendgate reconcile settle {reservation} --cost {usd_text(billed)} --evidence "..."',
        **after.leaf.as_json(),
    }
    if stage.tell is not None:
        stage.tell.held(stage.facts["hung"])


async def _end(stage: _Stage) -> None:
    """Show where all money is, and compare the provider's count with the ledger's."""
    agent = stage.agent
    looks = [await agent.look(key) for key in KEYS.values()]
    budgets = [looks[0].budgets[0], *(look.leaf for look in looks)]
    last = looks[-1]
    token = stage.local.admin_token
    reservations = len((await agent.admin("/reservations?limit=1000", token))["reservations"])
    audit = await agent.admin("/audit", token)
    _demand(last.hits == agent.admitted == reservations, f"{last.hits} hits, {agent.admitted} admitted calls")
    _demand(not audit["differences"], f"the audit found {len(audit['differences'])} differences")
    stage.facts |= {
        "budgets": [budget.as_json() for budget in budgets],
        "provider_hits": last.hits,
        "admitted_calls": agent.admitted,
        "reservations": reservations,
        "billed_usd": usd_text(last.billed),
        "ledger_usd": usd_text(budgets[0].settled + budgets[0].reserved),
        "audit_differences": len(audit["differences"]),
    }
    if stage.tell is not None:
        stage.tell.ending(budgets, stage.facts)


def _step(number: int, status: int, headers: Mapping[str, str], body: Mapping[str, Any], look: Look) -> dict[str, Any]:
    usage = body.get("usage", {})
    leaf = look.leaf
    return {
        "step": number,
        "status": status,
        "code": body["error"]["code"] if "error" in body else None,
        "input_tokens": usage.get("prompt_tokens", 0),
        "output_tokens": usage.get("completion_tokens", 0),
        "bound_usd": headers.get("x-spendgate-reserved-usd") or body.get("error", {}).get("asked"),
        "cost_usd": headers.get("x-spendgate-cost-usd", "0"),
        "hits": look.hits,
        "billed_usd": usd_text(look.billed),
        **leaf.as_json(),
        "total": usd_text(leaf.settled + leaf.reserved),
    }


def _demand(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise PromiseBroken(otherwise)
