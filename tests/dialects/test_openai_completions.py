"""OpenAI's completions: what is read, refused and sent. What an answer used is read as in chat."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spendgate.core.bound import Offer, bound
from spendgate.core.kind import KINDS
from spendgate.core.price import cost
from spendgate.core.route import Candidate, Framing, Provider
from spendgate.core.usage import Usage
from spendgate.dialects.dialect import Request
from spendgate.dialects.openai_completions import DIALECT
from spendgate.errors import CostBoundUnknown, Refused, RequestInvalid
from tests.builders import a_price_row
from tests.dialects.builders import events, odd_values, parsed, run
from tests.dialects.test_sse import split

PROVIDER = Provider(
    name="p", dialect="openai", base_url="https://example.com", framing=Framing(request=0, part=0, output_overshoot=0)
)


def completions(**changes: Any) -> dict[str, Any]:
    return {"model": "house-model", "prompt": "hello"} | changes


def read(**changes: Any) -> Request:
    return DIALECT.read(parsed(completions(**changes)), {}, "")


def sent(output_cap: int | None = 16, **changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(DIALECT.outgoing(read(**changes), "served", output_cap))
    return document


def chunk(text: str = "hi", **changes: Any) -> dict[str, Any]:
    return {"id": "cmpl_1", "model": "gpt-x", "choices": [{"index": 0, "text": text}], "usage": None} | changes


def test_the_facts_of_a_plain_request() -> None:
    facts = read().facts

    assert (facts.dialect, facts.model, facts.stream, facts.text_bytes) == (
        "openai-completions",
        "house-model",
        False,
        5,
    )
    assert (facts.parts, facts.inputs, facts.choices, facts.output_cap) == (1, 1, 1, 16)
    assert facts.cache_write == "short"
    assert DIALECT.upstream_path(read(), "m") == "/completions"


@pytest.mark.parametrize(
    "prompt,size,inputs", [("é", 2, 1), (["a", "bc"], 3, 2), ([7, 8, 9], 3, 1), ([[7], [8, 9]], 3, 2)]
)
def test_prompts_are_measured_by_bytes_and_ids_count_as_tokens(prompt: Any, size: int, inputs: int) -> None:
    facts = read(prompt=prompt).facts

    assert (facts.text_bytes, facts.inputs, facts.choices) == (size, inputs, inputs)


@pytest.mark.parametrize(
    "changes,choices",
    [({"n": 3}, 3), ({"best_of": 4}, 4), ({"n": 2, "best_of": 5}, 5), ({"n": None, "best_of": None}, 1)],
)
def test_every_continuation_of_every_prompt_is_output(changes: dict[str, Any], choices: int) -> None:
    assert read(**changes).facts.choices == choices
    assert read(prompt=["a", "b"], **changes).facts.choices == 2 * choices


def test_the_suffix_counts_for_every_prompt_and_stops_count_too() -> None:
    assert read(prompt=["a", "b"], suffix="xyz", stop="é").facts.text_bytes == 2 + 2 * 3 + 2
    assert read(stop=["ab", "c"]).facts.text_bytes == 5 + 3


def test_an_absent_cap_is_the_protocol_s_own_and_is_always_sent() -> None:
    assert sent() == completions(model="served", max_tokens=16)
    assert sent(max_tokens=None)["max_tokens"] == 16
    assert sent(output_cap=None)["max_tokens"] == 16


def test_a_cap_of_the_caller_s_is_sent_and_never_more_than_was_bounded() -> None:
    assert read(max_tokens=50).facts.output_cap == 50
    assert sent(output_cap=50, max_tokens=50)["max_tokens"] == 50
    assert sent(output_cap=40, max_tokens=50)["max_tokens"] == 40


def test_a_stream_is_asked_for_its_usage_which_is_hidden_from_who_did_not_ask() -> None:
    assert sent(stream=True)["stream_options"] == {"include_usage": True}
    assert not read(stream=True).wants_usage
    assert read(stream=True, stream_options={"include_usage": True}).wants_usage


def test_harmless_options_pass() -> None:
    options: dict[str, Any] = {
        "echo": True,
        "frequency_penalty": 0.1,
        "logit_bias": {"5": -1},
        "logprobs": 2,
        "presence_penalty": 0,
        "seed": 1,
        "temperature": 0,
        "top_p": 1,
        "user": "u",
    }

    assert {name: sent(**options)[name] for name in options} == options


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [["a"]]}, "prompt[0][0]"),
        ({"n": 0}, "n"),
        ({"n": 129}, "n"),
        ({"best_of": True}, "best_of"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"stop": 5}, "stop"),
        ({"stop": ["a", 5]}, "stop[1]"),
    ],
)
def test_a_wrong_type_is_refused_with_the_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestInvalid) as caught:
        read(**changes)

    assert caught.value.facts.field == field


def test_what_is_not_bounded_is_refused_by_name() -> None:
    with pytest.raises(CostBoundUnknown, match="new_field"):
        read(new_field=1)


def test_a_query_is_refused() -> None:
    with pytest.raises(RequestInvalid, match="query"):
        DIALECT.read(completions(), {}, "a=b")


STREAM = events(
    chunk("a"),
    chunk("é"),
    chunk(choices=[], usage={"prompt_tokens": 2, "completion_tokens": 7, "total_tokens": 9}),
    done=True,
)


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_any_split_of_a_stream_gives_the_same_bytes_and_the_same_report(cuts: list[int]) -> None:
    flowed, held, report = run(DIALECT, read(stream=True), split(STREAM, cuts))

    assert flowed == events(chunk("a"), chunk("é"))
    assert held == b"data: [DONE]\n\n"
    assert report.usage == Usage(input_uncached=2, output=7)
    assert report.response_id == "cmpl_1"


@given(
    prompts=st.lists(st.text(max_size=20), min_size=1, max_size=4),
    n=st.integers(1, 4),
    best_of=st.integers(1, 4),
    cap=st.none() | st.integers(1, 50),
)
def test_no_answer_within_its_limits_costs_more_than_the_bound(
    prompts: list[str], n: int, best_of: int, cap: int | None
) -> None:
    row = a_price_row()
    offer = Offer(candidate=Candidate(provider="p", model="m"), provider=PROVIDER, rows=(row,))
    request = read(prompt=prompts, n=n, best_of=best_of, max_tokens=cap)
    most = bound(request.facts, [offer], output_tokens_default=None)
    prompt = sum(len(text.encode()) for text in prompts)
    output = (16 if cap is None else cap) * max(n, best_of) * len(prompts)
    body = {"usage": {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}}

    report = DIALECT.report(json.dumps(body).encode(), request)

    assert report.usage is not None
    assert cost(report.usage, row, most.quotes[0].terms) <= most.amount


NAMES = ("model", "prompt", "suffix", "max_tokens", "n", "best_of", "stream_options", "stop", "logit_bias", "new")


@given(name=st.sampled_from(NAMES), value=odd_values)
def test_any_value_anywhere_is_read_or_refused_and_nothing_else_is_raised(name: str, value: Any) -> None:
    try:
        request = DIALECT.read(completions(**{name: value}), {}, "")
    except Refused:
        return
    DIALECT.outgoing(request, "m", request.facts.output_cap)


def test_a_provider_that_sends_its_usage_unasked_is_not_asked_for_it() -> None:
    request = replace(read(stream=True, stream_options={"include_usage": True}), kind=KINDS["mistral"])

    assert "stream_options" not in json.loads(DIALECT.outgoing(request, "m", 16))
