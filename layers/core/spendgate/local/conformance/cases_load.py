"""Cases of many callers, of text that is more tokens than it looks, and of output that is more than it seems."""

import json
from typing import Any, Final

from spendgate.core.money import Picodollars
from spendgate.local.conformance.bill import Terms
from spendgate.local.conformance.case import Case, Missed, Stand
from spendgate.local.conformance.dense import SYMBOLS
from spendgate.local.conformance.driver import Model
from spendgate.local.conformance.manner import Manner

# 0.02 USD a million tokens: a call of ten of them costs a fifth of a microdollar.
_CHEAP: Final = Picodollars(20_000)
_RARE: Final = "\U00012000\U00013080\U0001f9ff\U0001f9e9" * 250
_SLOW: Final = Manner(delay_seconds=0.2)


def _burst(stand: Stand) -> None:
    stand.burst([stand.body()] * 64)


def _burst_of_streams(stand: Stand) -> None:
    stand.burst([stand.body(stream=True)] * 48)
    stand.spend()


def _waves(stand: Stand) -> None:
    for _ in range(4):
        stand.burst([stand.body()] * 16)
    stand.spend()


def _small_after_large(stand: Stand) -> None:
    stand.spend(stand.body(max_tokens=400))
    stand.burst([stand.body(max_tokens=10)] * 48)
    stand.spend(stand.body(max_tokens=1))


def _to_the_cent(stand: Stand) -> None:
    stand.spend()


def _dust(stand: Stand) -> None:
    stand.spend(stand.body(max_tokens=5), most=160)


def _prompt(text: str) -> Any:
    def play(stand: Stand) -> None:
        stand.spend(stand.body(messages=[{"role": "user", "content": text}]), most=20)

    return play


def _tool_schema(stand: Stand) -> None:
    function = {"name": "f", "description": "", "parameters": {"type": "object", "properties": {}, "title": SYMBOLS}}
    stand.spend(stand.body(tools=[{"type": "function", "function": function}]), most=20)


def _answer_schema(stand: Stand) -> None:
    schema = {"type": "object", "title": SYMBOLS, "properties": {}, "additionalProperties": False}
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    stand.spend(stand.body(response_format=wanted), most=20)


def _arguments(stand: Stand) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": json.dumps({"a": SYMBOLS})}}
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "x"},
    ]
    stand.spend(stand.body(messages=messages), most=20)


def _many_messages(stand: Stand) -> None:
    stand.spend(stand.body(messages=[{"role": "user", "content": "x"}] * 400), most=20)


def _no_cap(stand: Stand) -> None:
    body = stand.body(max_tokens=None)
    stand.burst([body] * 8)
    stand.spend(body, most=20)


def _choices(stand: Stand) -> None:
    stand.spend(stand.body(n=8), most=20)


def _two_caps(stand: Stand) -> None:
    stand.spend(stand.body(max_tokens=10, max_completion_tokens=1500), most=20)


def _cap_twice(stand: Stand) -> None:
    text = json.dumps(stand.body(max_tokens=10))
    for twice in (f'{text[:-1]}, "max_tokens": 1500}}', f'{{"max_tokens": 1500, {text[1:]}'):
        for _ in range(8):
            stand.call(twice.encode())


def _odd_caps(stand: Stand) -> None:
    for cap in ("-1", "0.5", '"1500"', "true", "[1]", "{}", "1e-3", "null"):
        text = json.dumps(stand.body(max_tokens=77)).replace('"max_tokens": 77', f'"max_tokens": {cap}')
        stand.call(text.encode())
        stand.call(text.encode())


def _endless_cap(stand: Stand) -> None:
    stand.burst([stand.body(max_tokens=2**62)] * 6)
    stand.spend(stand.body(max_tokens=2**31), most=20)


def _tier(stand: Stand) -> None:
    stand.spend(stand.body(service_tier="priority"), most=30)


def _search(stand: Stand) -> None:
    stand.spend(stand.body(web_search_options={}), most=20)


def _beyond(stand: Stand) -> None:
    stand.spend(most=40)
    served = sum(answer.served for answer in stand.answers)
    if served > 1:
        # More may be served where the gateway cannot know; what it must not do is go on once it has seen it.
        raise Missed(f"{served} calls were answered by a provider whose first bill was already above the bound")


CASES: Final = (
    Case(
        name="burst",
        group="concurrency",
        title="64 calls at once, each held by the provider for a while",
        play=_burst,
        manner=_SLOW,
    ),
    Case(name="burst of streams", group="concurrency", title="48 streams at once, then more", play=_burst_of_streams),
    Case(name="waves", group="concurrency", title="four waves of 16 at once, then one by one", play=_waves),
    Case(
        name="small after large",
        group="concurrency",
        title="large calls to near the limit, then 48 small ones at once into what is left",
        play=_small_after_large,
        terms=Terms(to_the_cap=True),
    ),
    Case(
        name="to the last cent",
        group="concurrency",
        title="one after the other up to the limit: how much of it can be used",
        play=_to_the_cent,
    ),
    Case(
        name="dust",
        group="concurrency",
        title="calls of a fifth of a microdollar each: amounts below what many books round to",
        play=_dust,
        limit="0.000009",
        models=(Model(input=_CHEAP, output=_CHEAP),),
    ),
    Case(
        name="symbols",
        group="dense text",
        title="a prompt of punctuation, a token a byte",
        play=_prompt(SYMBOLS),
        limit="0.05",
        terms=Terms(bytes_a_token=1),
    ),
    Case(
        name="rare script",
        group="dense text",
        title="a prompt of rare characters, four tokens each",
        play=_prompt(_RARE),
        limit="0.1",
        terms=Terms(bytes_a_token=1),
    ),
    Case(
        name="schema of a tool",
        group="dense text",
        title="two kilobytes within a tool's parameters, a token a byte",
        play=_tool_schema,
        limit="0.12",
        terms=Terms(bytes_a_token=1),
    ),
    Case(
        name="schema of the answer",
        group="dense text",
        title="two kilobytes within the answer's JSON schema, a token a byte",
        play=_answer_schema,
        limit="0.12",
        terms=Terms(bytes_a_token=1),
    ),
    Case(
        name="arguments of a tool call",
        group="dense text",
        title="two kilobytes within an earlier tool call's arguments, a token a byte",
        play=_arguments,
        limit="0.12",
        terms=Terms(bytes_a_token=1),
    ),
    Case(
        name="many messages",
        group="dense text",
        title="400 messages of one letter, four tokens of framing each",
        play=_many_messages,
        limit="0.06",
    ),
    Case(
        name="no cap",
        group="output caps and multipliers",
        title="no max_tokens, and the model writes 4096",
        play=_no_cap,
        limit="0.06",
        terms=Terms(to_the_cap=True),
    ),
    Case(
        name="eight choices",
        group="output caps and multipliers",
        title="n = 8, each choice billed",
        play=_choices,
        limit="0.02",
    ),
    Case(
        name="two caps",
        group="output caps and multipliers",
        title="max_tokens 10 and max_completion_tokens 1500, and the larger counts",
        play=_two_caps,
        limit="0.04",
        terms=Terms(to_the_cap=True),
        sends=False,
    ),
    Case(
        name="a cap named twice",
        group="output caps and multipliers",
        title="max_tokens twice in one body, 10 and 1500, in either order",
        play=_cap_twice,
        limit="0.04",
        terms=Terms(to_the_cap=True),
        sends=False,
    ),
    Case(
        name="odd caps",
        group="output caps and multipliers",
        title="max_tokens as -1, 0.5, a string, true, a list, an object, 0.001, null: the model takes each as none",
        play=_odd_caps,
        limit="0.06",
        terms=Terms(to_the_cap=True),
        sends=False,
    ),
    Case(
        name="an endless cap",
        group="output caps and multipliers",
        title="max_tokens 2^62 and 2^31, and the model writes 4096",
        play=_endless_cap,
        limit="0.06",
        terms=Terms(to_the_cap=True),
        sends=False,
    ),
    Case(
        name="priority tier",
        group="output caps and multipliers",
        title="service_tier priority, billed twice the rate",
        play=_tier,
        sends=False,
    ),
    Case(
        name="web search",
        group="output caps and multipliers",
        title="web_search_options, two searches a call at a cent each",
        play=_search,
        limit="0.05",
        sends=False,
    ),
    Case(
        name="beyond the cap",
        group="output caps and multipliers",
        title="a provider that writes and bills three times the cap, and says so",
        play=_beyond,
        limit="0.02",
        terms=Terms(to_the_cap=True, beyond_the_cap=3),
    ),
)
