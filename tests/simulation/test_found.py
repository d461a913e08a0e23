"""What the simulation has found in the code that it drives, each as a test of its own: a seed tells another history tomorrow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import httpx
import pytest

from spendgate.core.budget import Amounts, BudgetPolicy
from spendgate.core.event import Event
from spendgate.core.key import Key, hash_secret
from spendgate.core.request import RequestFacts
from spendgate.core.usage import Usage
from spendgate.dialects.dialect import Request
from spendgate.dialects.registry import DIALECTS
from spendgate.directory import Directory
from spendgate.errors import KeyInvalid
from spendgate.providers.recovery import recover
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.tables import create_tables
from spendgate.store.transact import Timing
from tests.builders import a_provider, a_reservation
from tests.simulation.actors import seeded
from tests.simulation.memory_store import MemoryStore

T = TypeVar("T")

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SECRET = "sg-0123456789abcdef"


def at_once(call: Callable[[], T]) -> Awaitable[T]:
    async def done() -> T:
        return call()

    return done()


def test_a_revoked_key_is_dead_though_the_operators_clock_is_ahead() -> None:
    """Seeds 10 and 13: the key was taken to be good until this function's clock reached the instant of its revocation."""
    store = MemoryStore(lambda: NOW).client
    create_tables(store, ledger="ledger", config="config")
    timing = Timing(
        monotonic=lambda: 0.0, sleep=lambda _: None, random=lambda: 0.0, randomness=seeded("found").randbytes
    )
    config = Config("config", "ledger", store, timing)
    Ledger("ledger", store, timing).put_budget(BudgetPolicy(path="a", rev=0), expected_rev=None, now=NOW)
    event = Event(kind="k", subject="s", at=NOW, by="operator")
    key = Key(hash=hash_secret(SECRET), name="key", budget="a")
    config.put_key(key, event)
    directory = Directory(config, clock=lambda: NOW, offload=at_once, seconds=60)
    assert asyncio.run(directory.read_caller(SECRET)).key == key

    config.revoke_key(key, NOW + timedelta(seconds=40), event)

    with pytest.raises(KeyInvalid, match="revoked"):
        asyncio.run(directory.read_caller(SECRET))


@pytest.mark.parametrize("usage", ["null", "{}", '{"serviceTier": "STANDARD"}', '{"promptTokenCount": 24}'])
def test_what_gemini_has_counted_so_far_is_no_bill(usage: str) -> None:
    """Seed 45: the last chunk had a usage without counts, and those of an earlier chunk were settled."""
    meter = DIALECTS["gemini-stream"].meter(_request("gemini-stream", query="alt=sse"))
    so_far = '{"candidates": [{"content": {"parts": [{"text": "a"}]}}], "usageMetadata": %s}'
    last = '{"candidates": [{"content": {"parts": [{"text": "b"}]}, "finishReason": "STOP"}], "usageMetadata": %s}'
    for chunk in (so_far % '{"promptTokenCount": 24, "totalTokenCount": 24}', last % usage):
        meter.feed(f"data: {chunk}\r\n\r\n".encode())
    meter.end()

    assert meter.report().usage is None
    assert meter.report().problem == "usage_missing"


@pytest.mark.parametrize("usage", ["", ', "usage": null', ', "usage": {}'])
def test_what_a_chat_has_counted_so_far_is_no_bill(usage: str) -> None:
    """As above: what is put out after the last usage is in no count."""
    meter = DIALECTS["openai"].meter(_request("openai"))
    so_far = '{"prompt_tokens": 24, "completion_tokens": 1}'
    for chunk in (
        f'{{"choices": [{{"index": 0, "delta": {{"content": "a"}}}}], "usage": {so_far}}}',
        f'{{"choices": [{{"index": 0, "delta": {{"content": "b"}}, "finish_reason": "stop"}}]{usage}}}',
        "[DONE]",
    ):
        meter.feed(f"data: {chunk}\n\n".encode())
    meter.end()

    assert meter.report().usage is None
    assert meter.report().problem == "usage_missing"


def test_a_chat_that_only_ends_after_its_last_count_is_counted() -> None:
    meter = DIALECTS["openai"].meter(_request("openai"))
    for chunk in (
        '{"choices": [{"index": 0, "delta": {"content": "a"}}], "usage": {"prompt_tokens": 2, "completion_tokens": 1}}',
        '{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "stop"}]}',
        "[DONE]",
    ):
        meter.feed(f"data: {chunk}\n\n".encode())
    meter.end()

    usage = meter.report().usage
    assert usage is not None
    assert (usage.input_uncached, usage.output) == (2, 1)


def _request(dialect: str, query: str = "") -> Request:
    return Request(facts=RequestFacts(dialect=dialect, model="m", text_bytes=0), body={}, query=query)


@pytest.mark.parametrize("usage", ["null", "{}"])
def test_what_a_response_has_counted_so_far_is_no_bill(usage: str) -> None:
    meter = DIALECTS["openai-responses"].meter(_request("openai-responses"))
    so_far = '{"input_tokens": 24, "output_tokens": 1}'
    for name, told in (("in_progress", so_far), ("completed", usage)):
        event = f'{{"type": "response.{name}", "response": {{"id": "r", "status": "{name}", "usage": {told}}}}}'
        meter.feed(f"event: response.{name}\ndata: {event}\n\n".encode())
    meter.end()

    assert meter.report().usage is None
    assert meter.report().problem == "usage_missing"


def test_what_a_message_puts_out_after_its_last_count_is_no_bill() -> None:
    meter = DIALECTS["anthropic"].meter(_request("anthropic"))
    text = '{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}'
    for event in (
        '{"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 24, "output_tokens": 1}}}',
        text,
        '{"type": "message_delta", "delta": {}, "usage": {"output_tokens": 1}}',
        text,
        '{"type": "message_stop"}',
    ):
        meter.feed(f"data: {event}\n\n".encode())
    meter.end()

    assert meter.report().usage is None
    assert meter.report().problem == "usage_missing"


@pytest.mark.parametrize(("held", "is_proven"), [(600_000_000, True), (412_500_000, False), (100_000_000, True)])
def test_what_a_look_up_does_not_tell_is_not_settled_above_a_bound_that_knew_it(held: int, is_proven: bool) -> None:
    """Seed 2000: asked long after, a cache's writes of no lifetime counted as the dearest, whatever had been asked for.

    Where that alone broke the bound, a fair bill stopped the budget; now it proves nothing. A bill that breaks the bound
    anyway is booked at the dearest.
    """
    usage = {"input_tokens": 100, "input_tokens_details": {"cache_write_tokens": 100}, "output_tokens": 10}
    document = {"id": "r", "status": "completed", "model": "demo-model", "output": [], "usage": usage}
    lost = a_reservation(dialect="openai-responses", asked=Amounts(usd=held, requests=1, tokens=1000))
    lost = replace(lost, state="unknown", provider="demo", model="demo-model", response_id="r")
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=document))

    found = recover(a_provider(base_url="https://api.openai.com/v1"), lost, lambda _: SECRET, transport)

    usage_found = None if found.report is None else found.report.usage
    assert usage_found == (Usage(cache_write_long=100, output=10) if is_proven else None)
