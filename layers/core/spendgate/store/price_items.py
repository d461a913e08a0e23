"""Prices as they stand in the tables, one JSON text each: a row of the catalogue, and what a reservation has pinned."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from spendgate.core.bound import Quote
from spendgate.core.price import PriceRow, RateCard, Rates, Terms, Tier
from spendgate.core.route import Candidate
from spendgate.core.window import instant, parse_instant


@lru_cache(maxsize=512)
def row_text(row: PriceRow) -> str:
    """Return a price row as compact JSON; rows are few and long-lived, so the text is made once."""
    record = {
        "provider": row.provider,
        "model": row.model,
        "from": instant(row.valid_from),
        "card": _card(row.card),
        "service": [[name, _card(card)] for name, card in row.service] or None,
        "factors": row.factors or None,
        "fees": row.fees or None,
        "context_tokens": row.context_tokens,
        "output_tokens_max": row.output_tokens_max,
        "image_tokens_max": row.image_tokens_max,
        "aliases": row.aliases or None,
        "source": row.source or None,
        "checked": row.checked or None,
    }
    return json.dumps(_without_none(record), separators=(",", ":"))


@lru_cache(maxsize=512)
def decode_row(text: str) -> PriceRow:
    """Return the price row that ``row_text`` wrote."""
    record = json.loads(text)
    return PriceRow(
        provider=record["provider"],
        model=record["model"],
        valid_from=parse_instant(record["from"]),
        card=_decode_card(record["card"]),
        service=tuple((name, _decode_card(card)) for name, card in record.get("service", ())),
        factors=tuple((kind, value, number) for kind, value, number in record.get("factors", ())),
        fees=tuple((kind, amount) for kind, amount in record.get("fees", ())),
        context_tokens=record.get("context_tokens"),
        output_tokens_max=record.get("output_tokens_max"),
        image_tokens_max=record.get("image_tokens_max"),
        aliases=tuple(record.get("aliases", ())),
        source=record.get("source", ""),
        checked=record.get("checked", ""),
    )


@lru_cache(maxsize=512)
def quote_text(quote: Quote) -> str:
    """Return a pinned price as compact JSON, with its rows."""
    head: dict[str, Any] = {
        "provider": quote.candidate.provider,
        "model": quote.candidate.model,
        "service_tier": quote.terms.service_tier,
        "factors": quote.terms.factors,
    }
    if quote.tiers:
        head["tiers"] = quote.tiers
    rows = ",".join(row_text(row) for row in quote.rows)
    return json.dumps(head, separators=(",", ":"))[:-1] + f',"rows":[{rows}]}}'


def decode_quote(record: Mapping[str, Any]) -> Quote:
    """Return the pinned price that ``quote_text`` wrote."""
    return Quote(
        candidate=Candidate(provider=record["provider"], model=record["model"]),
        rows=tuple(decode_row(json.dumps(row, separators=(",", ":"))) for row in record["rows"]),
        terms=Terms(
            service_tier=record["service_tier"], factors=tuple((kind, factor) for kind, factor in record["factors"])
        ),
        tiers=tuple(record.get("tiers", ())),
    )


def _card(card: RateCard) -> dict[str, Any]:
    tiers = [{"above": t.above, "inclusive": t.inclusive, **_rates(t.rates)} for t in card.tiers]
    return {**_rates(card.rates), "tiers": tiers} if tiers else _rates(card.rates)


_RATES: Final = tuple(Rates.__dataclass_fields__)


def _rates(rates: Rates) -> dict[str, Any]:
    return {name: rate for name in _RATES if (rate := getattr(rates, name)) is not None}


def _decode_card(record: Mapping[str, Any]) -> RateCard:
    return RateCard(
        rates=_decode_rates(record),
        tiers=tuple(
            Tier(above=tier["above"], inclusive=tier["inclusive"], rates=_decode_rates(tier))
            for tier in record.get("tiers", ())
        ),
    )


def _decode_rates(record: Mapping[str, Any]) -> Rates:
    return Rates(**{name: record[name] for name in _RATES if name in record})


def _without_none(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value is not None}
