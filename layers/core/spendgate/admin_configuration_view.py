"""What operators see of the configuration: keys, providers, routes and prices, in the shape of the configuration file."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from spendgate.admin_view import instant_text
from spendgate.core.key import Key
from spendgate.core.money import usd_text
from spendgate.core.price import FACTOR_ONE, PriceRow, RateCard, Rates
from spendgate.core.route import Framing, Provider, Route

TOKENS_PER_RATE: Final = 1_000_000
# Enough to tell two keys of one name apart, useless for anything else.
KEY_ID_CHARACTERS: Final = 12

_PROVIDER_OPTIONS: Final = (
    "secret",
    "service_tier",
    "geo",
    "speed",
    "residency",
    "prices",
    "kind",
    "api_version",
    "cap_includes_reasoning",
)


def key_view(key: Key, now: datetime) -> dict[str, Any]:
    """Return a key's record; of its hash only enough to tell two of one name apart."""
    expired = key.expires_at is not None and key.expires_at <= now
    return {
        "name": key.name,
        "id": key.hash[:KEY_ID_CHARACTERS],
        "budget": key.budget,
        "models": list(key.models),
        "expires_at": None if key.expires_at is None else instant_text(key.expires_at),
        "revoked_at": None if key.revoked_at is None else instant_text(key.revoked_at),
        "state": "revoked" if key.revoked_at is not None else "expired" if expired else "live",
    }


def key_policy_view(*, budget: str, models: Iterable[str], expires_at: datetime | None) -> dict[str, Any]:
    """Return what a key may do, in the shape of the configuration file."""
    view: dict[str, Any] = {"budget": budget}
    if models := list(models):
        view["models"] = models
    if expires_at is not None:
        view["expires"] = instant_text(expires_at)
    return view


def provider_view(provider: Provider) -> dict[str, Any]:
    """Return a provider; its secret is a reference, never a value."""
    view: dict[str, Any] = {"dialect": provider.dialect, "base_url": provider.base_url}
    for name in _PROVIDER_OPTIONS:
        if getattr(provider, name) is not None:
            view[name] = getattr(provider, name)
    for name in ("free_fields", "free_betas"):
        if getattr(provider, name):
            view[name] = list(getattr(provider, name))
    if provider.private_network:
        view["private_network"] = True
    if provider.framing != Framing():
        view["framing"] = asdict(provider.framing)
    return view


def route_view(route: Route) -> dict[str, Any]:
    view: dict[str, Any] = {"candidates": [{"provider": one.provider, "model": one.model} for one in route.candidates]}
    if route.allow:
        view["allow"] = dict(route.allow)
    return view


def price_view(row: PriceRow) -> dict[str, Any]:
    """Return a price row with its rates in USD per million tokens."""
    view: dict[str, Any] = {"from": instant_text(row.valid_from), **_card_view(row.card)}
    if row.service:
        view["service"] = {name: _card_view(card) for name, card in row.service}
    if row.factors:
        view["factors"] = {
            f"{kind}.{value}": usd_text(number * 10**12 // FACTOR_ONE) for kind, value, number in row.factors
        }
    if row.fees:
        view["fees"] = {kind: usd_text(amount) for kind, amount in row.fees}
    for name in ("context_tokens", "output_tokens_max", "image_tokens_max"):
        if getattr(row, name) is not None:
            view[name] = getattr(row, name)
    if row.aliases:
        view["aliases"] = list(row.aliases)
    return view


def _card_view(card: RateCard) -> dict[str, Any]:
    view: dict[str, Any] = _rates_view(card.rates)
    if card.tiers:
        view["tiers"] = [
            {"above": tier.above, "inclusive": tier.inclusive, **_rates_view(tier.rates)} for tier in card.tiers
        ]
    return view


def _rates_view(rates: Rates) -> dict[str, str]:
    return {name: usd_text(rate * TOKENS_PER_RATE) for name, rate in asdict(rates).items() if rate is not None}
