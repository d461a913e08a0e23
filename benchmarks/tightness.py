"""How much of a reservation is used: reserved / actual over turns of agents, and which part of the bound is the rest.

The request is read by the real dialect and bounded by the real rule with the shipped prices. What it costs is counted
apart from both: every text by a real tokenizer, JSON as the providers' documents print it, the answer as the turn says, at
the plain price, nothing from the cache (``cached`` is the same with the history read from it, as a second turn has it).
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from benchmarks import turns
from benchmarks.turns import ROOT, Turn
from spendgate.catalogue import rows_named
from spendgate.catalogue_files import rows_of
from spendgate.core.bound import Bound, Offer, bound
from spendgate.core.intake import JSON_FACTOR
from spendgate.core.price import PriceRow, Terms, cost, rows_touching
from spendgate.core.request import RequestFacts
from spendgate.core.route import Candidate, Framing, Provider
from spendgate.core.usage import Usage
from spendgate.dialects.registry import DIALECTS

Count = Callable[[str], int]
NOW: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
LIFETIME: Final = datetime(2026, 11, 30, 13, tzinfo=UTC)
OUTPUT_TOKENS_DEFAULT: Final = 8192
# What providers add for a message and for tools, from their documents: OpenAI cookbook 3 a message; Claude docs 290.
_MESSAGE_TOKENS: Final = 3
_TOOLING_TOKENS: Final = 290


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A dialect, a model that agents use with it, and the provider's entry: as it is by itself, and declared."""

    dialect: str
    model: str
    provider: Provider
    declared: Provider
    body: Callable[[Turn, str], dict[str, Any]]
    path: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """Reserved / actual over all turns of a case; ``dominant`` counts the turns by the largest part of the bound."""

    case: Case
    median: float
    p95: float
    cached_median: float
    dominant: Counter[str]


def cases() -> tuple[Case, ...]:
    """Return the cases."""
    openai = Provider(name="openai", dialect="openai", base_url="https://api.openai.com/v1")
    openai_told = replace(openai, service_tier="default", residency="none")
    anthropic = Provider(name="anthropic", dialect="anthropic", base_url="https://api.anthropic.com")
    gemini = Provider(name="gemini", dialect="gemini", base_url="https://generativelanguage.googleapis.com")
    mistral = Provider(name="mistral", dialect="openai", base_url="https://api.mistral.ai/v1")
    return (
        Case(dialect="openai", model="gpt-5.6-sol", provider=openai, declared=openai_told, body=turns.chat),
        Case(
            dialect="openai-responses", model="gpt-6.1-sol", provider=openai, declared=openai_told, body=turns.responses
        ),
        Case(
            dialect="anthropic",
            model="claude-sonnet-5-5",
            provider=anthropic,
            declared=replace(anthropic, geo="global", service_tier="standard"),
            body=turns.messages,
        ),
        Case(
            dialect="gemini",
            model="gemini-3.8-flash",
            provider=gemini,
            declared=replace(gemini, service_tier="standard"),
            body=turns.gemini,
            path={"model": "gemini-3.8-flash"},
        ),
        Case(dialect="openai", model="mistral-large-2512", provider=mistral, declared=mistral, body=turns.chat),
    )


def measure(case: Case, corpus: Sequence[Turn], count: Count, *, provider: Provider) -> Ratios:
    """Return the ratios of a case with one entry of its provider."""
    rows = _rows(provider.name, case.model)
    found = [_one(case, turn, rows, count, provider) for turn in corpus]
    reserved = [bounded.amount for bounded, _, _, _ in found]
    plain = sorted(amount / paid for amount, (_, paid, _, _) in zip(reserved, found, strict=True))
    cached = [amount / paid for amount, (_, _, paid, _) in zip(reserved, found, strict=True)]
    return Ratios(
        case=case,
        median=statistics.median(plain),
        p95=plain[int(len(plain) * 0.95)],
        cached_median=statistics.median(cached),
        dominant=Counter(largest for _, _, _, largest in found),
    )


def _one(
    case: Case, turn: Turn, rows: tuple[PriceRow, ...], count: Count, provider: Provider
) -> tuple[Bound, int, int, str]:
    body = case.body(turn, case.model)
    facts = DIALECTS[case.dialect].read(body, {}, "", case.path).facts
    offer = Offer(candidate=Candidate(provider=provider.name, model=case.model), provider=provider, rows=rows)
    bounded = bound(facts, [offer], output_tokens_default=OUTPUT_TOKENS_DEFAULT)
    row = rows[-1]
    fresh, history = _input_tokens(turn, count)
    uncached = Usage(input_uncached=fresh + history, output=turn.answer_tokens)
    second = Usage(input_uncached=fresh, cache_read=history, output=turn.answer_tokens)
    largest = max(_parts(facts, bounded, row, provider.framing).items(), key=lambda one: one[1])[0]
    return bounded, cost(uncached, row, Terms()), cost(second, row, Terms()), largest


def _parts(facts: RequestFacts, bounded: Bound, row: PriceRow, framing: Framing) -> dict[str, int]:
    """Return the parts of a bound at the plain price; what is left of the amount are dearer tiers, places and writes."""
    rates = row.card.at(bounded.input_tokens_max)
    tools = (framing.tooling + framing.tool * facts.tools) if facts.tools or facts.structured else 0
    parts = {
        "text": facts.text_bytes * rates.input,
        "json": JSON_FACTOR * facts.json_bytes * rates.input,
        "framing": (framing.request + framing.part * facts.parts + tools) * rates.input,
        "output cap": bounded.output_tokens_max * rates.output,
    }
    return parts | {"rates": bounded.amount - sum(parts.values())}


def _input_tokens(turn: Turn, count: Count) -> tuple[int, int]:
    """Return the input tokens that are new in this turn, and those of what the last turn had already."""
    history = [turn.system, *(result for _, _, result in turn.calls)]
    for name, arguments, _ in turn.calls:
        history.append(name + json.dumps(arguments))
    for name, text, schema in turn.tools:
        history += [name, text, json.dumps(schema)]
    before = sum(count(text) for text in history) + _MESSAGE_TOKENS * (1 + 2 * len(turn.calls))
    return count(turn.question) + _MESSAGE_TOKENS, before + (_TOOLING_TOKENS if turn.tools else 0)


def _rows(provider: str, model: str) -> tuple[PriceRow, ...]:
    rows = rows_named(rows_of(ROOT / "functions" / "catalogue" / "prices" / f"{provider}.yaml"), provider, model)
    return rows_touching(rows, NOW, LIFETIME)


def table(found: Iterable[Ratios], found_declared: Iterable[Ratios]) -> list[tuple[str, ...]]:
    """Return the rows to print: as the provider is by itself, and where its entry declares what its account is."""
    return [
        (
            one.case.dialect,
            one.case.model,
            f"{one.median:.1f}",
            f"{one.p95:.1f}",
            f"{one.cached_median:.1f}",
            f"{told.median:.1f}",
            f"{told.p95:.1f}",
            ", ".join(f"{part} {times}" for part, times in told.dominant.most_common()),
        )
        for one, told in zip(found, found_declared, strict=True)
    ]
