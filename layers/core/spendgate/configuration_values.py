"""Entries of ``spendgate.yaml`` as the core's values: what was left out gets its honest fallback here."""

from spendgate.configuration_model import (
    BudgetEntry,
    CardEntry,
    LimitsEntry,
    PriceEntry,
    ProviderEntry,
    RatesEntry,
    RunsEntry,
    TierEntry,
)
from spendgate.core.budget import BudgetPolicy, Limit, RunPolicy
from spendgate.core.price import PriceRow, RateCard, Rates, Tier
from spendgate.core.route import Framing, Provider
from spendgate.core.run import active_limit
from spendgate.core.window import MEASURES, WINDOWS


def provider(name: str, entry: ProviderEntry) -> Provider:
    """Return a provider."""
    return Provider(
        name=name,
        dialect=entry.dialect,
        base_url=entry.base_url,
        secret=entry.secret,
        framing=Framing(**entry.framing.model_dump(exclude_none=True)),
        service_tier=entry.service_tier,
        geo=entry.geo,
        speed=entry.speed,
        residency=entry.residency,
        prices=entry.prices,
        kind=entry.kind,
        api_version=entry.api_version,
        cap_includes_reasoning=entry.cap_includes_reasoning,
        free_fields=tuple(dict.fromkeys(entry.free_fields)),
        free_betas=tuple(dict.fromkeys(entry.free_betas)),
        private_network=entry.private_network,
    )


def price_row(entry: PriceEntry) -> PriceRow:
    """Return a price row."""
    tiers = _tiers(entry.tiers or [])
    return PriceRow(
        provider=entry.provider,
        model=entry.model,
        valid_from=entry.valid_from,
        card=RateCard(rates=_rates(entry), tiers=tiers),
        service=tuple((name, _service_card(card, tiers)) for name, card in entry.service.items()),
        factors=tuple(
            (kind, value, factor)
            for kind, values in (
                ("geo", entry.factors.geo),
                ("speed", entry.factors.speed),
                ("residency", entry.factors.residency),
            )
            for value, factor in values.items()
        ),
        fees=tuple(entry.fees.items()),
        context_tokens=entry.context_tokens,
        output_tokens_max=entry.output_tokens_max,
        image_tokens_max=entry.image_tokens_max,
        aliases=tuple(entry.aliases),
        source=entry.source,
        checked=entry.checked,
    )


def policy(path: str, entry: BudgetEntry) -> BudgetPolicy:
    """Return the policy of a declared budget."""
    return BudgetPolicy(
        path=path,
        rev=0,
        limits=limits(entry.limits),
        mode=entry.mode,
        unbudgeted=entry.unbudgeted,
        default_output_tokens=entry.default_output_tokens,
        failover=entry.failover,
        runs=None if entry.runs is None else _run_policy(entry.runs),
        allow=tuple(sorted(entry.allow.items())),
        warn_at=None if entry.alerts is None else tuple(sorted(entry.alerts.warn_at)),
    )


def limits(entry: LimitsEntry) -> tuple[Limit, ...]:
    """Return the limits in the order of measures and windows."""
    found = []
    for measure in MEASURES:
        windows = getattr(entry, measure)
        for window in WINDOWS:
            maximum = None if windows is None else getattr(windows, window)
            if maximum is not None:
                found.append(Limit(measure=measure, window=window, maximum=maximum))
    return tuple(found)


def _run_policy(entry: RunsEntry) -> RunPolicy:
    active = () if entry.active_max is None else (active_limit(entry.active_max),)
    return RunPolicy(
        limits=(*limits(entry.limits), *active),
        expire_after=entry.expire_after,
        stop_on_unknown=entry.stop_on_unknown,
        elapsed_max=entry.elapsed_max,
        stop_on_refusal=entry.stop_on_refusal,
        delegate=entry.delegate,
    )


def _rates(entry: RatesEntry) -> Rates:
    # Writing to a cache costs no less than reading the input does: an entry of 0 in a catalogue means that nobody
    # knows the rate, so it counts as left out. A cache read may be free.
    cache_read = entry.input if entry.cache_read is None else entry.cache_read
    cache_write = entry.cache_write or entry.input
    return Rates(
        input=entry.input,
        cache_read=cache_read,
        cache_write=cache_write,
        cache_write_long=entry.cache_write_long or max(cache_write, 2 * entry.input),
        output=entry.output,
        audio_input=entry.audio_input,
        audio_output=entry.audio_output,
        image_input=entry.image_input,
        image_output=entry.image_output,
    )


def _tiers(entries: list[TierEntry]) -> tuple[Tier, ...]:
    return tuple(Tier(above=entry.above, inclusive=entry.inclusive, rates=_rates(entry)) for entry in entries)


def _service_card(entry: CardEntry, standard: tuple[Tier, ...]) -> RateCard:
    rates = _rates(entry)
    if entry.tiers is not None:
        return RateCard(rates=rates, tiers=_tiers(entry.tiers))
    # A model that is dearer for long contexts is not cheaper there because a service tier says nothing about it.
    return RateCard(
        rates=rates,
        tiers=tuple(
            Tier(above=tier.above, inclusive=tier.inclusive, rates=_dearest(rates, tier.rates)) for tier in standard
        ),
    )


def _dearest(one: Rates, other: Rates) -> Rates:
    return Rates(
        input=max(one.input, other.input),
        cache_read=max(one.cache_read, other.cache_read),
        cache_write=max(one.cache_write, other.cache_write),
        cache_write_long=max(one.cache_write_long, other.cache_write_long),
        output=max(one.output, other.output),
        audio_input=_dearest_known(one.audio_input, other.audio_input),
        audio_output=_dearest_known(one.audio_output, other.audio_output),
        image_input=_dearest_known(one.image_input, other.image_input),
        image_output=_dearest_known(one.image_output, other.image_output),
    )


def _dearest_known(one: int | None, other: int | None) -> int | None:
    # Where either is unknown, the modality stays without a bound.
    return None if one is None or other is None else max(one, other)
