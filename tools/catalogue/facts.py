"""The committed facts: output caps, long cache writes, service tiers, factors and fees that genai-prices does not have."""

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final

from tools.catalogue.offer import CHECKED, STANDARD, Offer, Report

FILE: Final = Path(__file__).with_name("facts.json")

# What a model does that tokens price; all others (images, video, speech, realtime, moderation) are left out.
_MODES: Final = {"chat", "responses", "completion", "embedding"}
_KINDS: Final = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "output_cost_per_reasoning_token": "output",
    "cache_read_input_token_cost": "cache_read",
    "cache_creation_input_token_cost": "cache_write",
    "input_cost_per_audio_token": "audio_input",
    "output_cost_per_audio_token": "audio_output",
    "input_cost_per_image_token": "image_input",
    "output_cost_per_image_token": "image_output",
}
_FIELD: Final = re.compile(
    rf"(?P<kind>{'|'.join(_KINDS)})(?P<long>_above_(?:1|12)hr)?(?:_above_(?P<above>\d+)k_tokens)?"
    r"(?:_(?P<tier>priority|flex|ultrafast))?"
)
_RESIDENCY: Final = re.compile(r"regional_processing_uplift_multiplier_([a-z]+)")
_REGION: Final = re.compile(r"bedrock/[^/]+/(.+)")
# xAI's long contexts begin with their threshold, not above it (docs.x.ai/developers/pricing, read 2026-11).
_INCLUSIVE: Final = {"xai"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One provider's facts by exact name, and the names that are no matter of tokens with what they are."""

    offers: dict[str, Offer]
    embeddings: frozenset[str]
    others: dict[str, str]
    retired: frozenset[str]


def facts(provider: str, report: Report) -> Facts:
    """Return what the facts file says of a provider's models that are still served."""
    offers: dict[str, Offer] = {}
    others: dict[str, str] = {}
    embeddings: set[str] = set()
    retired: set[str] = set()
    for key, record in _document().get(provider, {}).items():
        name = _name(provider, key)
        if name.startswith("ft:"):
            # A fine-tuned model's id holds its owner's: only they can name it, and its price.
            report.add("Left out: fine-tuned", f"{provider}: {name}")
        elif record.get("deprecation_date", CHECKED) < CHECKED:
            retired.add(name)
            report.add("Left out: retired", f"{provider}: {name} ({record['deprecation_date']})")
        elif record["mode"] not in _MODES:
            others[name] = record["mode"]
        else:
            offer = _offer(record, inclusive=provider in _INCLUSIVE)
            if name in offers:
                report.add("Prices by region: the dearest is taken", f"{provider}: {key}")
                offer = dearest(offers[name], offer)
            offers[name] = offer
            embeddings.update({name} if record["mode"] == "embedding" else ())
    return Facts(
        offers=offers, embeddings=frozenset(embeddings), others=others, retired=frozenset(retired - offers.keys())
    )


def dearest(one: Offer, other: Offer) -> Offer:
    """Return one offer that is no cheaper, and promises no longer output, than either."""
    both = Offer(
        factors={
            **one.factors,
            **{key: max(value, one.factors.get(key, value)) for key, value in other.factors.items()},
        },
        fees={**one.fees, **{kind: max(fee, one.fees.get(kind, fee)) for kind, fee in other.fees.items()}},
        context=max((size for size in (one.context, other.context) if size), default=None),
        output_max=min((size for size in (one.output_max, other.output_max) if size), default=None),
    )
    for offer in (one, other):
        for tier, card in offer.cards.items():
            for first, rates in card.items():
                for bucket, rate in rates.items():
                    both.put(tier, first, bucket, rate)
    return both


@cache
def _document() -> dict[str, Any]:
    # Amounts are text in the file; were one a number, it would still be read without a float.
    document: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"), parse_float=Decimal)
    return document


def _name(provider: str, key: str) -> str:
    region = _REGION.fullmatch(key) if provider == "bedrock" else None
    return region.group(1) if region else key


def _offer(record: dict[str, Any], *, inclusive: bool) -> Offer:
    offer = Offer(context=record.get("max_input_tokens"), output_max=record.get("max_output_tokens"))
    for name, value in record.items():
        if match := _FIELD.fullmatch(name):
            bucket = _KINDS[match["kind"]] + ("_long" if match["long"] else "")
            first = int(match["above"]) * 1000 + (0 if inclusive else 1) if match["above"] else 0
            offer.put(match["tier"] or STANDARD, first, bucket, Fraction(value) * 10**12)
        elif match := _RESIDENCY.fullmatch(name):
            offer.factors["residency", match[1]] = Decimal(value)
    for name, value in record.get("provider_specific_entry", {}).items():
        offer.factors["speed" if name == "fast" else "geo", name] = Decimal(value)
    if searches := record.get("search_context_cost_per_query"):
        offer.fees["web_search"] = max(map(Decimal, searches.values()))
    if maps := record.get("google_maps_grounding_cost_per_query"):
        offer.fees["google_maps"] = Decimal(maps)
    return offer
