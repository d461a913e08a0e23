"""genai-prices' packaged data: dated prices, long-context tiers, and exact names.

Its rules for matching (``contains``, ``starts_with``, patterns) are dropped: they would price models that do not exist yet.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from genai_prices import types
from genai_prices.data import providers

from tools.catalogue.offer import CHECKED, STANDARD, Offer, Report, Windows

IDS: Final = {
    "anthropic": "anthropic", "azure": "azure", "bedrock": "aws", "deepseek": "deepseek", "fireworks": "fireworks",
    "gemini": "google", "groq": "groq", "mistral": "mistral", "openai": "openai", "openrouter": "openrouter",
    "together": "together", "xai": "x-ai",
}  # fmt: skip

_RATES: Final = {
    "input_mtok": "input",
    "output_mtok": "output",
    # Never dearer than the output so far; if it were, it is the output's rate, since output contains reasoning.
    "output_reasoning_mtok": "output",
    "cache_read_mtok": "cache_read",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_long",
    "input_audio_mtok": "audio_input",
    "output_audio_mtok": "audio_output",
    "input_image_mtok": "image_input",
    "output_image_mtok": "image_output",
}
_FEES: Final = {"web_searches_kcount": "web_search", "storage_searches_kcount": "file_search"}
# Cached audio and images are read at the text's cache rate or more; they are counted as fresh ones here.
_WITHIN: Final = {"cache_audio_read_mtok", "cache_image_read_mtok"}
# "fast" is asked for and answered as "priority" (openai-python 3.57.0), and costs the same: one card has both.
_TIERS: Final = {"flex": "flex", "priority": "priority", "fast": "priority"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A model as genai-prices lists it: exact names, the first of them its own, and its prices."""

    names: tuple[str, ...]
    patterns: tuple[str, ...]
    windows: Windows

    def is_named(self, name: str) -> bool:
        """Tell whether a name is this model's, exactly or by a pattern that is anchored at both ends."""
        return name in self.names or any(re.fullmatch(pattern, name) for pattern in self.patterns)


def listings(provider: str, report: Report) -> list[Listing]:
    """Return what is listed of a provider's models."""
    found = next(one for one in providers if one.id == IDS[provider])
    return [one for model in found.models if (one := _listing(provider, model, report)) is not None]


def pricing_url(provider: str) -> str:
    """Return where the provider publishes its prices."""
    found = next(one for one in providers if one.id == IDS[provider])
    return (found.pricing_urls or [""])[0]


def _listing(provider: str, model: types.ModelInfo, report: Report) -> Listing | None:
    clauses = list(_clauses(model.match))
    names = [clause.equals for clause in clauses if isinstance(clause, types.ClauseEquals)]
    # Amazon's entries have invented ids ("regional.…"), Fireworks' are short for paths.
    if provider != "bedrock" and model.match.is_match(model.id):
        names.insert(0, model.id)
    names = [name for name in dict.fromkeys(names) if _is_served(provider, name)]
    if not names:
        report.add("Dropped: no exact name", f"{provider}: {model.id}")
        return None
    if model.deprecated:
        report.add("Left out: retired", f"{provider}: {model.id}")
        return None
    if reason := _unpriceable(model):
        report.add("Left out: not priced by tokens alone", f"{provider}: {model.id} ({reason})")
        return None
    patterns = tuple(
        clause.regex
        for clause in clauses
        if isinstance(clause, types.ClauseRegex) and clause.regex.startswith("^") and clause.regex.endswith("$")
    )
    return Listing(names=tuple(names), patterns=patterns, windows=_windows(model))


def _is_served(provider: str, name: str) -> bool:
    # Google's entry holds Vertex' Claude too, and xAI's the names that OpenRouter has for its models.
    return not (provider in {"gemini", "xai"} and (name.startswith("claude") or "/" in name))


def _clauses(match: Any) -> Iterator[Any]:
    if isinstance(match, types.ClauseOr):
        for inner in match.or_:
            yield from _clauses(inner)
    else:
        yield match


def _unpriceable(model: types.ModelInfo) -> str | None:
    for condition in _conditions(model):
        given = {name for name, value in vars(condition.prices).items() if value is not None}
        if other := sorted(given - _RATES.keys() - _FEES.keys() - _WITHIN):
            return ", ".join(other)
        if "input_mtok" not in given:
            return "no input rate"
    return None


def _conditions(model: types.ModelInfo) -> list[types.ConditionalPrice]:
    if isinstance(model.prices, list):
        return model.prices
    return [types.ConditionalPrice(prices=model.prices)]


def _windows(model: types.ModelInfo) -> Windows:
    conditions = _conditions(model)
    daily = [one.prices for one in conditions if isinstance(one.constraint, types.TimeOfDateConstraint)]
    dated = [one for one in conditions if not isinstance(one.constraint, types.TimeOfDateConstraint)]
    dated.sort(key=lambda one: _start(one) or date.min)
    ends = [*(_start(one) for one in dated[1:]), None]
    # A price by the hour is taken at its dearest: a call lasts, and no clock is exact.
    return [
        (_start(one), _offer(model, [one.prices, *daily], _day_within(_start(one), end)))
        for one, end in zip(dated, ends, strict=True)
    ]


def _start(one: types.ConditionalPrice | types.PriceVariant) -> date | None:
    return one.constraint.start_date if isinstance(one.constraint, types.StartDateConstraint) else None


def _day_within(start: date | None, end: date | None) -> date:
    """Return the day of a window that its service tiers are those of: the day of the build, or the nearest to it."""
    day = max(start or date.min, date.fromisoformat(CHECKED))
    return day if end is None else min(day, end - timedelta(days=1))


def _offer(model: types.ModelInfo, prices: list[types.ModelPrice], day: date) -> Offer:
    offer = Offer(context=model.context_window)
    for price in prices:
        _add(offer, STANDARD, price)
    newest: dict[str, types.PriceVariant] = {}
    for variant in sorted(model.price_variants or (), key=lambda one: _start(one) or date.min):
        tier = variant.when.get("service_tier")
        if tier in _TIERS and len(variant.when) == 1 and (_start(variant) or date.min) <= day:
            newest[tier] = variant
    for tier, variant in newest.items():
        _add(offer, _TIERS[tier], variant.prices)
    for variant in model.price_variants or ():
        if variant.when == {"speed": "fast"} and (_start(variant) or date.min) <= day:
            offer.factors["speed", "fast"] = _factor(prices[0], variant.prices)
    return offer


def _factor(plain: types.ModelPrice, fast: types.ModelPrice) -> Decimal:
    return max(
        _base(price) / _base(vars(plain)[name])
        for name, price in vars(fast).items()
        if price is not None and name in _RATES and vars(plain).get(name)
    )


def _base(price: Any) -> Decimal:
    return price.base if isinstance(price, types.TieredPrices) else Decimal(price)


def _add(offer: Offer, tier: str, price: types.ModelPrice) -> None:
    for name, value in vars(price).items():
        if value is None:
            continue
        if name in _FEES:
            offer.fees[_FEES[name]] = max(value / Decimal(1000), offer.fees.get(_FEES[name], Decimal(0)))
        elif name in _RATES:
            if isinstance(value, types.TieredPrices):
                offer.put(tier, 0, _RATES[name], _per_token(value.base))
                for step in value.tiers:
                    # A tier starts above its threshold: at the next token.
                    offer.put(tier, step.start + 1, _RATES[name], _per_token(step.price))
            else:
                offer.put(tier, 0, _RATES[name], _per_token(value))


def _per_token(usd_per_million: Decimal) -> Fraction:
    return Fraction(usd_per_million) * 1_000_000
