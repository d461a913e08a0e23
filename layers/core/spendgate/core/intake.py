"""The most input tokens that a candidate can bill for a request: its text, its media, and the size of the context."""

from collections.abc import Sequence

from spendgate.core.media import Media, images, media_tokens
from spendgate.core.price import PriceRow, Rates
from spendgate.core.request import RequestFacts
from spendgate.core.route import Candidate
from spendgate.errors import CostBoundUnknown, RefusalFacts


def input_bound(facts: RequestFacts, candidate: Candidate, rows: Sequence[PriceRow], *, measured: int) -> int:
    """Return the bound; ``measured`` are the tokens of all that is text. CostBoundUnknown where nothing bounds it."""
    context = context_of(rows)
    stated = [row.image_tokens_max for row in rows if row.image_tokens_max is not None]
    media = media_tokens(
        facts.media,
        names=(candidate.model, rows[0].model),
        stated=max(stated, default=None),
        provider=candidate.provider,
    )
    if not media.fills_context:
        within = measured + media.within
        # Each of several inputs is read in a context of its own.
        return (within if context is None else min(within, context * facts.inputs)) + media.beside
    item = next(item for item in facts.media if item.kind != "image")
    if context is None:
        raise unsized(f"a {item.kind}" if item.kind == "document" else "sound", item.field, candidate)
    return context * facts.inputs + media.beside


def context_of(rows: Sequence[PriceRow]) -> int | None:
    """Return the largest context of all rows; None where one of them does not say."""
    known = [row.context_tokens for row in rows if row.context_tokens is not None]
    return max(known) if len(known) == len(rows) else None


def rates_of_media(facts: RequestFacts, rates: Rates) -> tuple[int, ...]:
    """Return the rates of the modalities that a request brings; CostBoundUnknown where one has none.

    An image without a rate of its own costs what text does.
    """
    found = []
    if images(facts.media) and rates.image_input is not None:
        found.append(rates.image_input)
    sound = next((item for item in facts.media if item.kind == "audio"), None)
    if sound is not None:
        if rates.audio_input is None:
            raise _no_audio_rate(sound)
        found.append(rates.audio_input)
    return tuple(found)


def unsized(what: str, field: str, candidate: Candidate) -> CostBoundUnknown:
    """Return the refusal of something that only the context bounds, at a model whose context nobody has said."""
    return CostBoundUnknown(
        f"{field} is {what}, which is bounded by the context of the model, and nobody has said how large that of "
        f"{candidate.model} at provider {candidate.provider} is",
        facts=RefusalFacts(
            field=field,
            next_action="send the call without it, or an operator adds context_tokens to the price row of "
            f"({candidate.provider}, {candidate.model})",
        ),
    )


def _no_audio_rate(sound: Media) -> CostBoundUnknown:
    return CostBoundUnknown(
        f"{sound.field} is sound, and a price row that the call can reach has no rate for it",
        facts=RefusalFacts(
            field=sound.field, next_action="send the call without sound, or an operator adds audio_input to the price row"
        ),
    )
