"""Answers in the shapes that providers send, and what they cost by hand: read whole, byte by byte, and settled."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import pytest

from spendgate.core.bound import Bound, bound, settled_cost
from spendgate.core.money import usd, usd_text
from spendgate.core.usage import UsageReport
from spendgate.metering import answered
from tests.builders import NOW, a_reservation
from tests.dialects.builders import run
from tests.recorded.vectors import FOLDER, Vector, pieces, vectors

CORPUS: Final = vectors()
PROVENANCE: Final = {"shape", "version", "date"}
every = pytest.mark.parametrize("vector", CORPUS, ids=lambda vector: vector.name)
SETTLED: Final = [vector for vector in CORPUS if vector.expected.problem is None]
settled = pytest.mark.parametrize("vector", SETTLED, ids=lambda vector: vector.name)


def bound_of(vector: Vector) -> Bound:
    return bound(vector.request.facts, [vector.offer], output_tokens_default=None)


def report_of(vector: Vector, given: Iterable[bytes] | None = None) -> UsageReport:
    if not vector.streamed:
        return vector.dialect.report(vector.answer, vector.request)
    *_, report = run(vector.dialect, vector.request, given or [vector.answer])
    assert isinstance(report, UsageReport)
    return report


@every
def test_an_answer_is_read_into_the_buckets_that_were_worked_out_by_hand(vector: Vector) -> None:
    expected, report = vector.expected, report_of(vector)
    assert report.problem == expected.problem
    assert (report.usage if expected.problem is None else report.partial) == expected.usage
    assert (report.model, report.service_tier) == (expected.model, expected.service_tier)
    assert expected.response_id in (None, report.response_id)
    assert report.charge == (None if expected.charge_usd is None else usd(expected.charge_usd))


@every
def test_a_stream_is_read_alike_byte_by_byte_and_not_a_byte_of_it_is_lost(vector: Vector) -> None:
    if not vector.streamed:
        assert vector.dialect.report(vector.answer, vector.request) == report_of(vector)
        return
    asked = replace(vector.request, wants_usage=True)
    flowed, held, report = run(vector.dialect, asked, pieces(vector.answer))
    assert report == report_of(vector)
    # What is missing of an array that was never closed goes out before the error that closes it.
    passed = flowed + held
    assert passed == vector.passed if report.finished else vector.passed.startswith(passed)


def test_what_bedrock_wraps_reaches_the_caller_as_the_events_of_the_caller_s_own_protocol() -> None:
    wrapped = [vector for vector in CORPUS if vector.passed != vector.answer]

    assert {vector.name for vector in wrapped} == {"bedrock/invoke_stream_claude", "bedrock/invoke_stream_error"}
    for vector in wrapped:
        flowed, held, _ = run(vector.dialect, vector.request, [vector.answer])
        assert flowed + held == vector.passed
        assert (flowed + held).startswith(b"event: message_start\ndata: {")


@settled
def test_an_answer_costs_what_was_worked_out_by_hand_and_never_more_than_its_bound(vector: Vector) -> None:
    limit, report = bound_of(vector), report_of(vector)
    assert report.usage is not None
    cost = settled_cost(report, report.usage, limit.quotes[0], start=NOW, end=NOW)
    assert usd_text(cost) == vector.expected.cost_usd
    assert cost <= limit.amount
    assert report.usage.input_total <= limit.input_tokens_max
    assert report.usage.output_total <= limit.output_tokens_max


@every
def test_what_was_reserved_is_settled_with_the_cost_or_the_provider_s_charge_else_it_is_held(vector: Vector) -> None:
    reservation = a_reservation(quotes=bound_of(vector).quotes)
    resolution = answered(reservation, vector.offer.candidate, report_of(vector), NOW)
    if vector.expected.problem is not None:
        assert (resolution.state, resolution.actual, resolution.usage) == ("unknown", None, vector.expected.usage)
        return
    assert resolution.state == "settled"
    assert resolution.actual is not None
    assert usd_text(resolution.actual.usd) == (vector.expected.charge_usd or vector.expected.cost_usd)
    assert resolution.actual.tokens == report_of(vector).usage.total  # type: ignore[union-attr]


@every
def test_a_vector_says_where_its_shape_is_from_and_how_its_cost_was_worked_out(vector: Vector) -> None:
    assert vector.provenance.keys() == PROVENANCE
    assert all(vector.provenance.values())
    assert "=" in vector.expected.worked
    if vector.expected.cost_usd is not None:
        assert vector.expected.cost_usd in vector.expected.worked


def test_every_file_of_the_corpus_is_read() -> None:
    assert len(CORPUS) == len(list(FOLDER.rglob("*.yaml")))
