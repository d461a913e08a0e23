"""Both sources as one price a name and window: of two prices the dearer, of two contexts the larger, of two caps the smaller."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import Final

from tools.catalogue.facts import Facts
from tools.catalogue.genai import Listing
from tools.catalogue.offer import (
    BUCKETS,
    CHECKED,
    INPUT_BUCKETS,
    OUTPUT_BUCKETS,
    STANDARD,
    Card,
    Offer,
    Report,
    Windows,
    in_force,
)

_TODAY: Final = date.fromisoformat(CHECKED)
# OpenAI writes for 12 hours at 2.5 times the input from gpt-5.6 on, Anthropic for 5 minutes at 1.25 times and for an hour at
# twice (OpenAI docs, prompt caching; Claude docs, pricing; read 2026-11). Whoever resells the models passes that on.
_WRITES: Final = {
    re.compile(r"(?:^|[/.])gpt-(?:5\.6|6)"): {"cache_write": Fraction(5, 4), "cache_write_long": Fraction(5, 2)},
    re.compile(r"claude-(?!2|v1|v2|instant)"): {"cache_write": Fraction(5, 4), "cache_write_long": Fraction(2)},
}

# Google's page names sound only where it has a price of its own; where it does not, one price is for all that a model reads
# (genai-prices, which is taken from that page, leaves out a modality's price where it is that of text).
_ONE_INPUT_PRICE: Final = re.compile(
    r"gemini-(?:2\.5-pro|3[.-]|4-|(?:pro|flash|flash-lite)-latest)(?!.*(?:tts|image|live|audio))"
)

# A model's name with the day of one of its versions; Bedrock adds a version number.
_SNAPSHOT: Final = re.compile(r"(.+)[-@](?:\d{4}-\d{2}-\d{2}|\d{8})(?:-v\d+:\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """One exact name with its prices, the oldest first. ``listing`` is the place of the model that it is a name of."""

    name: str
    listing: int | None
    windows: Windows


def merged(provider: str, listings: list[Listing], facts: Facts, report: Report) -> list[Priced]:
    """Return every exact name that can be priced, in order."""
    owners: dict[str, int] = {}
    for index, listing in enumerate(listings):
        for name in listing.names:
            if owners.setdefault(name, index) != index:
                report.add("Dropped: a name of two models", f"{provider}: {name} ({listing.names[0]})")
    found = []
    for name in sorted((owners.keys() | facts.offers.keys()) - facts.retired):
        index_or_none = owners.get(name)
        if index_or_none is None:
            index_or_none = next((at for at, listing in enumerate(listings) if listing.is_named(name)), None)
        if index_or_none is None and (snapshot := _SNAPSHOT.fullmatch(name)):
            # A dated snapshot costs what its model does, where the first source does not list it by itself.
            index_or_none = owners.get(snapshot[1])
        windows = [] if index_or_none is None else listings[index_or_none].windows
        offers = _windows(f"{provider}: {name}", windows, facts.offers.get(name), report)
        offers = [(start, _with_writes(f"{provider}: {name}", name, offer, report)) for start, offer in offers]
        if provider == "gemini" and _ONE_INPUT_PRICE.match(name):
            _add_sound(f"{provider}: {name}", offers, report)
        if reason := _unusable(provider, name, offers, facts):
            report.add(f"Left out: {reason}", f"{provider}: {name}")
        else:
            found.append(Priced(name=name, listing=index_or_none, windows=offers))
    return found


def _unusable(provider: str, name: str, windows: Windows, facts: Facts) -> str | None:
    if name in facts.others:
        return f"not priced by tokens alone ({facts.others[name]})"
    embeds = name in facts.embeddings or any(word in name for word in ("embed", "rerank", "bge-", "gte-", "e5-"))
    for _, offer in windows:
        # Nothing is free because a list says so; OpenRouter names what is.
        free = provider == "openrouter" and name.endswith(":free")
        if offer.base("input") is None or (not offer.base("input") and not free):
            return "no input rate"
        if offer.base("output") is None and embeds:
            offer.put(STANDARD, 0, "output", Fraction(0))
        if offer.base("output") is None or (not offer.base("output") and not free and not embeds):
            return "no output rate"
    return None


def _add_sound(subject: str, windows: Windows, report: Report) -> None:
    """Price sound as text where a model reads it for the one price of all its input."""
    for _, offer in windows:
        if offer.base("audio_input") is not None:
            continue
        for tier, card in offer.cards.items():
            for first, rates in card.items():
                if "input" in rates:
                    offer.put(tier, first, "audio_input", rates["input"])
        report.add("Sound at the one price of all input", subject)


def _with_writes(subject: str, name: str, offer: Offer, report: Report) -> Offer:
    """Return the offer with the writes that its maker bills and that a reseller's list leaves out."""
    fresh = offer.base("input")
    missing = {
        bucket: fresh * times
        for pattern, factors in _WRITES.items()
        if fresh and pattern.search(name)
        for bucket, times in factors.items()
        if offer.base(bucket) is None
    }
    if not missing:
        return offer
    for bucket, rate in missing.items():
        offer.put(STANDARD, 0, bucket, rate)
        report.add("Writes to the cache as their maker bills them", f"{subject}: {bucket} {usd(rate)}")
    return _completed(offer)


def with_announced(
    provider: str, priced: list[Priced], makers: dict[str, list[Listing]], report: Report
) -> list[Priced]:
    """Return a reseller's prices with the rises that the models' makers have announced: it passes them on.

    The reseller's list has today's prices only, and a call may last into the next day.
    """
    return [_with_announced(provider, one, makers, report) for one in priced]


def _with_announced(provider: str, one: Priced, makers: dict[str, list[Listing]], report: Report) -> Priced:
    maker, _, rest = one.name.removeprefix("~").partition("/")
    model = rest.partition(":")[0]
    listing = next((listing for listing in makers.get(maker, ()) if model in listing.names), None)
    windows = list(one.windows)
    if listing is None or (windows[-1][0] or date.min) > _TODAY:
        return one
    now = listing.windows[in_force(listing.windows, _TODAY)][1]
    today = windows[in_force(windows, _TODAY)][1]
    for start, offer in listing.windows:
        if start is not None and start > _TODAY:
            windows.append((start, _as_much_dearer(today, now, offer)))
            report.add("Announced prices passed on", f"{provider}: {one.name} from {start}")
    return Priced(name=one.name, listing=one.listing, windows=windows)


def _as_much_dearer(today: Offer, now: Offer, then: Offer) -> Offer:
    cards = {
        tier: {
            first: {bucket: rate * max(_ratio(then, now, bucket), Fraction(1)) for bucket, rate in rates.items()}
            for first, rates in card.items()
        }
        for tier, card in today.cards.items()
    }
    return replace(today, cards=cards)


def _windows(subject: str, windows: Windows, facts: Offer | None, report: Report) -> Windows:
    if not windows:
        return [(None, _completed(facts or Offer()))]
    now = in_force(windows, _TODAY)
    current = windows[now][1] if facts is None else _dearer(subject, windows[now][1], facts, report)
    whole: Windows = []
    for index, (start, offer) in enumerate(windows):
        # The facts are today's: for another day they only say what the first source leaves out, in proportion.
        completed = _completed(current if index == now else _in_proportion(offer, current))
        if not whole or completed != whole[-1][1]:
            whole.append((start, completed))
    return whole


def _dearer(subject: str, listed: Offer, facts: Offer, report: Report) -> Offer:
    both = Offer(
        factors={
            key: max(one.factors.get(key, factor) for one in (listed, facts))
            for key, factor in {**facts.factors, **listed.factors}.items()
        },
        fees={
            kind: max(one.fees.get(kind, fee) for one in (listed, facts))
            for kind, fee in {**facts.fees, **listed.fees}.items()
        },
        context=max((size for size in (listed.context, facts.context) if size), default=None),
        output_max=facts.output_max,
    )
    for kind in sorted(listed.fees.keys() & facts.fees.keys()):
        if listed.fees[kind] != facts.fees[kind]:
            report.add("Fees that differ", f"{subject}: {kind} {listed.fees[kind]} and {facts.fees[kind]} USD")
    for tier in sorted(listed.cards.keys() | facts.cards.keys()):
        firsts = sorted({0, *listed.cards.get(tier, ()), *facts.cards.get(tier, ())})
        for first in firsts:
            for bucket in BUCKETS:
                one, other = listed.at(tier, first, bucket), facts.at(tier, first, bucket)
                known = [rate for rate in (one, other) if rate is not None]
                if known and (first == 0 or _steps(listed, facts, tier, first, bucket)):
                    both.put(tier, first, bucket, max(known))
                # A write of nothing is no price, and was left out; a read may be free.
                if one is not None and other is not None and one != other:
                    place = (
                        f"{bucket}{f', {tier}' if tier != STANDARD else ''}{f', from {first} tokens' if first else ''}"
                    )
                    report.add("Prices that differ", f"{subject}: {place}: {usd(one)} and {usd(other)}")
    return both


def _steps(one: Offer, other: Offer, tier: str, first: int, bucket: str) -> bool:
    return any(bucket in offer.cards.get(tier, {}).get(first, {}) for offer in (one, other))


def _in_proportion(offer: Offer, current: Offer) -> Offer:
    """Return a window's offer with what only the current one has, as much dearer as the window is."""
    whole = replace(
        current,
        cards={tier: {first: dict(rates) for first, rates in card.items()} for tier, card in offer.cards.items()},
        fees={**current.fees, **offer.fees},
        context=max((size for size in (offer.context, current.context) if size), default=None),
    )
    for tier, card in current.cards.items():
        for first, rates in card.items():
            for bucket, rate in rates.items():
                if offer.at(tier, first, bucket) is None:
                    whole.put(tier, first, bucket, rate * _ratio(offer, current, bucket))
    return whole


def _ratio(offer: Offer, current: Offer, bucket: str) -> Fraction:
    for known in (bucket, "output" if bucket in OUTPUT_BUCKETS else "input"):
        one, other = offer.base(known), current.base(known)
        if one and other:
            return one / other
    return Fraction(1)


def _completed(offer: Offer) -> Offer:
    """Return the offer with every rate at every threshold and tier that has one at the standard tier's beginning.

    A writing rate that a source forgets for long contexts or a service tier would otherwise fall back to a cheaper one.
    """
    whole = replace(offer, cards={})
    base = offer.cards.get(STANDARD, {}).get(0, {})
    firsts = sorted({0, *(first for card in offer.cards.values() for first in card)})
    for tier in (STANDARD, *sorted(offer.cards.keys() - {STANDARD})):
        if tier != STANDARD and offer.at(tier, 0, "input") is None:
            continue
        for first in firsts:
            for bucket in base:
                whole.put(tier, first, bucket, _rate(offer, tier, first, bucket))
    return _without_idle_steps(whole)


def _rate(offer: Offer, tier: str, first: int, bucket: str) -> Fraction:
    card = offer.cards[tier]
    if card.get(first, {}).get(bucket) is not None:
        return card[first][bucket]
    main = "input" if bucket in INPUT_BUCKETS else "output"
    plain = offer.cards[STANDARD][0][bucket]
    if tier == STANDARD:
        # As its main rate rises, so does a rate that is not told for this threshold.
        at, start = offer.at(STANDARD, first, main), offer.base(main)
        known = offer.at(STANDARD, first, bucket) or plain
        return max(known, plain * at / start) if at and start else known
    standard = _rate(offer, STANDARD, first, bucket)
    for known_bucket in (bucket, main, "input"):
        tier_base, standard_base = offer.at(tier, 0, known_bucket), offer.base(known_bucket)
        if tier_base is not None and standard_base:
            return standard * tier_base / standard_base
    return standard


def _without_idle_steps(offer: Offer) -> Offer:
    """Return the offer without thresholds at which nothing changes."""
    cards: dict[str, Card] = {}
    for tier, card in offer.cards.items():
        kept: Card = {}
        for first in sorted(card):
            if not kept or card[first] != kept[max(kept)]:
                kept[first] = card[first]
        cards[tier] = kept
    return replace(offer, cards=cards)


def usd(rate: Fraction) -> str:
    """Return a rate as USD per million tokens, to twelve decimal places."""
    scaled = rate.numerator * 10**6 // rate.denominator
    return f"{scaled // 10**12}.{scaled % 10**12:012d}".rstrip("0").rstrip(".")


def grouped(listings: list[Listing], priced: list[Priced]) -> Iterator[tuple[list[str], Windows]]:
    """Yield names of one model that cost the same, the name that the model goes by first."""
    known = {one.name for one in priced}
    groups: dict[tuple[object, str], list[Priced]] = {}
    for one in priced:
        snapshot = _SNAPSHOT.fullmatch(one.name)
        base = snapshot[1] if snapshot and snapshot[1] in known else one.name
        owner = base if one.listing is None else one.listing
        groups.setdefault((owner, repr(one.windows)), []).append(one)
    own = {listing.names[0] for listing in listings}
    for members in groups.values():
        names = sorted((one.name for one in members), key=lambda name: (name not in own, len(name), name))
        yield names, members[0].windows
