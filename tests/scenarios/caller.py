"""Calls a gateway from a process of its own: ``python -m tests.scenarios.caller``.

For each ``Plan``, a line of JSON on its input, it answers ``{"ready": true}``, waits for another line, makes all its
calls (so many at once as it is told), prints one JSON line for each as it ends, and ``{"done": true}``.
"""

import asyncio
import json
import ssl
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import httpx

_PATHS: Final = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a process is to call. ``client`` is ``httpx`` (which repeats nothing), ``openai`` or ``anthropic``."""

    url: str
    key: str
    calls: int
    client: str = "httpx"
    dialect: str = "openai"
    model: str = "demo"
    prompt: str = "hello"
    output_tokens_max: int = 40
    stream: bool = False
    at_once: int = 1000
    timeout_seconds: float = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one call ended. ``ended`` tells that an answer came to its end; ``facts`` are those of a refusal."""

    status: int | None
    code: str | None = None
    reservation: str | None = None
    reserved_usd: str | None = None
    cost_usd: str | None = None
    retry_after: str | None = None
    ended: bool = False
    problem: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


async def _by_httpx(plan: Plan, http: httpx.AsyncClient) -> Outcome:
    headers = {"authorization": f"Bearer {plan.key}"} if plan.dialect == "openai" else {"x-api-key": plan.key}
    try:
        answer = await http.post(plan.url + _PATHS[plan.dialect], json=_body(plan), headers=headers)
    except httpx.HTTPError as error:
        return Outcome(status=None, problem=type(error).__name__)
    return _outcome(answer.status_code, answer.headers, answer.text, plan)


def _body(plan: Plan) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": plan.model,
        "max_tokens": plan.output_tokens_max,
        "messages": [{"role": "user", "content": plan.prompt}],
    }
    return body | ({"stream": True} if plan.stream else {})


def _outcome(status: int, headers: Mapping[str, str], text: str, plan: Plan) -> Outcome:
    try:
        error = {} if status == 200 else json.loads(text)["error"]
    except ValueError:
        # Not how this gateway speaks: told to whoever reads the outcomes.
        return Outcome(status=status, problem=text[:100])
    # The two dialects have the same facts in different places.
    facts = error.get("details", error)
    return Outcome(
        status=status,
        code=facts.get("code"),
        reservation=headers.get("x-spendgate-reservation"),
        reserved_usd=headers.get("x-spendgate-reserved-usd"),
        cost_usd=headers.get("x-spendgate-cost-usd"),
        retry_after=headers.get("retry-after"),
        ended=status == 200 and (not plan.stream or "[DONE]" in text or "message_stop" in text),
        facts=facts,
    )


async def _by_openai(plan: Plan, _: httpx.AsyncClient) -> Outcome:
    # Takes seconds to import, and most callers need it not.
    import openai  # noqa: PLC0415

    client = openai.AsyncOpenAI(base_url=f"{plan.url}/v1", api_key=plan.key, timeout=plan.timeout_seconds)
    try:
        raw = await client.chat.completions.with_raw_response.create(
            model=plan.model,
            max_tokens=plan.output_tokens_max,
            messages=[{"role": "user", "content": plan.prompt}],
        )
    except openai.APIStatusError as error:
        return _outcome(error.status_code, error.response.headers, error.response.text, plan)
    return _outcome(raw.status_code, raw.headers, raw.http_response.text, plan)


async def _by_anthropic(plan: Plan, _: httpx.AsyncClient) -> Outcome:
    import anthropic  # noqa: PLC0415 - the same

    client = anthropic.AsyncAnthropic(base_url=plan.url, api_key=plan.key, timeout=plan.timeout_seconds)
    try:
        raw = await client.messages.with_raw_response.create(
            model=plan.model,
            max_tokens=plan.output_tokens_max,
            messages=[{"role": "user", "content": plan.prompt}],
        )
    except anthropic.APIStatusError as error:
        return _outcome(error.status_code, error.response.headers, error.response.text, plan)
    return _outcome(raw.status_code, raw.headers, raw.http_response.text, plan)


# Made once: it takes long, and on loopback nothing is encrypted.
_NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_CLIENTS: Final = {"httpx": _by_httpx, "openai": _by_openai, "anthropic": _by_anthropic}


async def _call_all(plan: Plan) -> None:
    room = asyncio.Semaphore(plan.at_once)
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(trust_env=False, verify=_NO_TLS, limits=limits, timeout=plan.timeout_seconds) as http:

        async def one() -> None:
            async with room:
                outcome = await _CLIENTS[plan.client](plan, http)
            _say(asdict(outcome))

        await asyncio.gather(*(one() for _ in range(plan.calls)))


def _say(document: dict[str, Any]) -> None:
    print(json.dumps(document), flush=True)  # noqa: T201 - its parent reads it


def _main() -> None:
    while line := sys.stdin.readline():
        plan = Plan(**json.loads(line))
        _say({"ready": True})
        sys.stdin.readline()
        asyncio.run(_call_all(plan))
        _say({"done": True})


if __name__ == "__main__":
    _main()
