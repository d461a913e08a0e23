"""Faults in what a call brings and what it is billed for: media, tools, searches, caches, tiers, other names."""

from __future__ import annotations

from typing import Final

from tests.simulation.mutant import Mutant

_BOUND: Final = "spendgate.core.bound"
_PRICE: Final = "spendgate.core.price"
_INTAKE: Final = "spendgate.core.intake"
_FEATURE: Final = "spendgate.core.feature"
_GATEWAY: Final = "spendgate.gateway"

OF_BILLS: Final = (
    Mutant(
        "written-twice",
        "a key that a request has twice is taken as it comes last",
        "spendgate.dialects.json_strict",
        '        _refuse(f"The key {shown(twice)!r} occurs twice in one object.", field=shown(twice))\n',
        "        del twice\n",
    ),
    Mutant(
        "tool-results",
        "results of tools are not counted",
        "spendgate.admission",
        "tool_calls=facts.tool_results,",
        "tool_calls=0,",
    ),
    Mutant(
        "images-unbounded",
        "an image is bounded by nothing but the text beside it",
        _INTAKE,
        "min(within, context * facts.inputs)) + media.beside",
        "min(within, context * facts.inputs))",
    ),
    Mutant(
        "pages-unbounded",
        "a document and sound are bounded by the text beside them",
        _INTAKE,
        "    if media.fills_context:\n",
        "    if False:\n",
    ),
    Mutant(
        "sound-as-text",
        "sound is settled at the rate of text",
        _PRICE,
        '("audio_input", usage.audio_input, rates.audio_input)',
        '("audio_input", usage.audio_input, rates.input)',
    ),
    Mutant(
        "sound-bounded-as-text",
        "sound is bounded at the rate of text",
        _BOUND,
        "    return max(*possible, *rates_of_media(facts, rates))",
        "    return max(possible)",
    ),
    Mutant(
        "one-turn",
        "a search is bounded as if the model read everything once",
        _INTAKE,
        "        return loop.turns * (whole",
        "        return 1 * (whole",
    ),
    Mutant(
        "fees-unbounded",
        "the fees of searches are in no bound",
        _BOUND,
        " + fees_bound(facts, row)",
        "",
    ),
    Mutant(
        "fees-unsettled",
        "the fees of searches are not settled",
        _PRICE,
        "        total += units * fees[kind]\n",
        "        total += 0\n",
    ),
    Mutant(
        "route-widens",
        "a route allows what a budget forbids",
        _FEATURE,
        "    return dict(route) | {feature: uses for policy in path for feature, uses in policy.allow}",
        "    return {feature: uses for policy in path for feature, uses in policy.allow} | dict(route)",
    ),
    Mutant(
        "uses-unchecked",
        "a request may state more searches than are allowed",
        _FEATURE,
        "    if demand.uses is not None and demand.uses > allowed:\n",
        "    if False:\n",
    ),
    Mutant(
        "cached-twice",
        "what a chat read from the cache is counted as fresh too",
        "spendgate.dialects.openai_usage",
        "        input_uncached=prompt - write - read - audio_input - image_input,",
        "        input_uncached=prompt - write - audio_input - image_input,",
    ),
    Mutant(
        "writes-as-input",
        "what is written to a cache is settled at the rate of input",
        _PRICE,
        '("cache_write", usage.cache_write, rates.cache_write)',
        '("cache_write", usage.cache_write, rates.input)',
    ),
    Mutant(
        "writes-unbounded",
        "what is written to a cache is bounded at the rate of input",
        _BOUND,
        '    if facts.cache_write != "none":\n',
        "    if False:\n",
    ),
    Mutant(
        "long-as-short",
        "what Claude keeps for an hour is settled as if it were for minutes",
        "spendgate.dialects.anthropic_usage",
        "        cache_write_long=capped(long + (rest if long_writes else 0)),",
        "        cache_write_long=0,",
    ),
    Mutant(
        "cached-uncounted",
        "a limit of tokens does not see what was read from a cache",
        "spendgate.core.usage",
        "            + self.cache_read\n",
        "",
    ),
    Mutant(
        "tier-unheard",
        "the service tier that an answer names is not heard",
        _BOUND,
        "    if report.service_tier is not None and row.card_of(report.service_tier) is not None:\n",
        "    if False:\n",
    ),
    Mutant(
        "tier-unbounded",
        "a request that names no service tier is bounded by the plain one",
        _BOUND,
        "        return (STANDARD_TIER, row.card), *(one for one in row.service if one[0] not in ASKED_TIERS)",
        "        return ((STANDARD_TIER, row.card),)",
    ),
    Mutant(
        "place-unheard",
        "the place that an answer names is not heard",
        _BOUND,
        "    return row.factor_of(kind, value) or reserved",
        "    return FACTOR_ONE",
    ),
    Mutant(
        "long-unbounded",
        "the rates of long contexts are in no bound",
        _PRICE,
        "tier.rates for tier in self.tiers if tier.applies(input_tokens_max)",
        "tier.rates for tier in ()",
    ),
    Mutant(
        "long-unsettled",
        "a long context is settled at the rates of a short one",
        _PRICE,
        "            if tier.applies(input_tokens):\n                found = tier.rates",
        "            if False:\n                found = tier.rates",
    ),
    Mutant(
        "alias-first",
        "a model is priced by another one that has its name as an alias",
        "spendgate.store.config",
        "for item in own or found]",
        "for item in found]",
    ),
    Mutant(
        "count-billed",
        "a count of tokens goes where its request would be billed",
        _GATEWAY,
        "        path = free.upstream_path(request, candidate.model) + (",
        "        path = call.dialect.upstream_path(request, candidate.model) + (",
    ),
    Mutant(
        "count-remembered",
        "tokens are counted for a key as it is remembered",
        _GATEWAY,
        "        caller = await self._parts.directory.read_caller(call.secret)\n        request = ",
        "        caller = await self._parts.directory.caller(call.secret)\n        request = ",
    ),
)
