"""OpenAI's embeddings: what is read, refused and sent, and what an answer used."""

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
from spendgate.core.usage import Usage, UsageReport
from spendgate.dialects.dialect import Request
from spendgate.dialects.openai_embeddings import DIALECT
from spendgate.errors import CostBoundUnknown, Refused, RequestInvalid
from tests.builders import a_price_row
from tests.dialects.builders import events, odd_values, parsed, run
from tests.dialects.test_json_strict import json_values

PROVIDER = Provider(name="p", dialect="openai", base_url="https://example.com", framing=Framing(request=0, part=0))


def embeddings(**changes: Any) -> dict[str, Any]:
    return {"model": "house-model", "input": "hello"} | changes


def read(**changes: Any) -> Request:
    return DIALECT.read(parsed(embeddings(**changes)), {}, "")


def answer(usage: Any, **changes: Any) -> UsageReport:
    return DIALECT.report(json.dumps({"object": "list", "data": [], "model": "e", "usage": usage} | changes).encode())


@pytest.mark.parametrize(
    "given_input,size,inputs",
    [
        ("hello", 5, 1),
        ("\ufdfa", 33, 1),
        (["a", "éé"], 5, 2),
        ([1, 2, 3], 3, 1),
        ([[1, 2], [3], []], 3, 3),
        ("", 0, 1),
    ],
)
def test_texts_are_measured_by_bytes_and_ids_count_as_tokens(given_input: Any, size: int, inputs: int) -> None:
    facts = read(input=given_input).facts

    assert (facts.text_bytes, facts.inputs, facts.parts) == (size, inputs, inputs)
    assert (facts.dialect, facts.output_cap, facts.has_output, facts.cache_write) == (
        "openai-embeddings",
        0,
        False,
        "none",
    )


def test_each_input_has_a_context_of_its_own_and_no_output_is_reserved() -> None:
    offer = Offer(
        candidate=Candidate(provider="p", model="m"), provider=PROVIDER, rows=(a_price_row(context_tokens=10),)
    )

    one, three = (
        bound(read(input=given_input).facts, [offer], output_tokens_default=None)
        for given_input in ("x" * 50, ["x" * 50] * 3)
    )

    assert (one.input_tokens_max, one.output_tokens_max, one.stamped) == (10, 0, False)
    assert three.input_tokens_max == 30


@given(texts=st.lists(st.text(max_size=40), min_size=1, max_size=5), context=st.none() | st.integers(1, 30))
def test_no_split_of_what_can_be_read_costs_more_than_the_bound(texts: list[str], context: int | None) -> None:
    row = a_price_row(context_tokens=context)
    offer = Offer(candidate=Candidate(provider="p", model="m"), provider=PROVIDER, rows=(row,))
    most = bound(read(input=texts).facts, [offer], output_tokens_default=None)
    # At worst each byte is a token, up to the context that each text has for itself.
    used = sum(min(len(text.encode()), context or 1000) for text in texts)

    report = answer({"prompt_tokens": used, "total_tokens": used})

    assert report.usage is not None
    assert cost(report.usage, row, most.quotes[0].terms) <= most.amount


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": None}, "input"),
        ({"input": [1, "a"]}, "input[1]"),
        ({"input": ["a", 1]}, "input[1]"),
        ({"input": ["a", ["b"]]}, "input[1]"),
        ({"input": [[1], "a"]}, "input[1]"),
        ({"input": [[1, -1]]}, "input[0][1]"),
        ({"input": [True]}, "input[0]"),
        ({"input": [1, True]}, "input[1]"),
        ({"input": [{"image": "x"}]}, "input[0]"),
        ({"dimensions": "5"}, "dimensions"),
        ({"model": ""}, "model"),
    ],
)
def test_a_wrong_type_is_refused_with_the_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestInvalid) as caught:
        read(**changes)

    assert caught.value.facts.field == field


@pytest.mark.parametrize("changes,field", [({"encoding_format": "x"}, "encoding_format"), ({"images": []}, "images")])
def test_what_is_not_bounded_is_refused_by_name(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(CostBoundUnknown) as caught:
        read(**changes)

    assert caught.value.facts.field == field


def test_a_query_is_refused() -> None:
    with pytest.raises(RequestInvalid, match="query"):
        DIALECT.read(embeddings(), {}, "a=b")


def test_nothing_is_stamped() -> None:
    options = {"dimensions": 5, "encoding_format": "base64", "user": "u"}

    assert json.loads(DIALECT.outgoing(read(**options), "served", 0)) == embeddings(model="served", **options)
    assert DIALECT.upstream_path(read(), "m") == "/embeddings"


def test_a_missing_count_of_output_is_zero() -> None:
    """B53: where nothing is put out, and only there."""
    report = answer({"prompt_tokens": 8, "total_tokens": 8})

    assert report.usage == Usage(input_uncached=8)
    assert (report.finished, report.problem, report.model) == (True, None, "e")


@pytest.mark.parametrize(
    "usage,used",
    [
        ({"prompt_tokens": 8, "completion_tokens": 0, "total_tokens": 8}, Usage(input_uncached=8)),
        ({"prompt_tokens": 8, "total_tokens": 9}, Usage(input_uncached=9)),
        ({"prompt_tokens": 8}, Usage(input_uncached=8)),
        ({"total_tokens": 8}, Usage(input_uncached=8)),
        ({"prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10}, Usage(input_uncached=8, output=2)),
    ],
)
def test_what_the_total_says_more_was_read(usage: Any, used: Usage) -> None:
    assert answer(usage).usage == used


@pytest.mark.parametrize("usage", [{}, [], {"prompt_tokens": None}, {"prompt_tokens": "8"}, {"total_tokens": -1}])
def test_an_odd_count_is_unusable(usage: Any) -> None:
    assert (answer(usage).usage, answer(usage).problem) == (None, "usage_unusable")


def test_an_answer_without_usage_is_not_a_free_one() -> None:
    assert (answer(None).usage, answer(None).problem, answer(None).finished) == (None, "usage_missing", True)


def test_an_error_or_what_cannot_be_read_is_no_settlement() -> None:
    broken = answer({"prompt_tokens": 8}, error={"message": "x"})

    assert (broken.usage, broken.problem, broken.finished) == (None, "error_in_answer", False)
    assert DIALECT.report(b"{").problem == "answer_unreadable"


def test_an_answer_in_pieces_is_passed_on_and_holds_the_money() -> None:
    stream = events({"data": [], "usage": {"prompt_tokens": 8, "total_tokens": 8}}, done=True)

    flowed, held, report = run(DIALECT, read(), [stream])

    assert flowed + held == stream
    assert report.usage is None


@given(value=json_values)
def test_any_answer_is_read_without_an_exception(value: Any) -> None:
    for body in (value, {"usage": value}):
        DIALECT.report(json.dumps(body).encode())


@given(name=st.sampled_from(("model", "input", "dimensions", "encoding_format", "user", "new")), value=odd_values)
def test_any_value_anywhere_is_read_or_refused_and_nothing_else_is_raised(name: str, value: Any) -> None:
    for changed in (value, [value], [[value]]):
        try:
            request = DIALECT.read(embeddings(**{name: changed}), {}, "")
        except Refused:
            continue
        DIALECT.outgoing(request, "m", 0)


def test_what_the_provider_says_that_they_cost_is_kept_beside_the_counts() -> None:
    body = json.dumps({"usage": {"prompt_tokens": 8, "total_tokens": 8, "cost_in_usd_ticks": 3}}).encode()

    assert DIALECT.report(body, replace(read(), kind=KINDS["xai"])).charge == 300
    assert DIALECT.report(body, read()).charge is None
