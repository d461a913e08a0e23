"""The most input tokens that a candidate can bill for a request: its text, its media, and the size of the context."""

from collections.abc import Sequence
from typing import Final

from spendgate.core.feature import COMPACTION, SERVER_STATE, loop_of
from spendgate.core.kind import kind_of
from spendgate.core.media import SOUND, Media, filling, media_tokens
from spendgate.core.price import PriceRow, Rates
from spendgate.core.request import RequestFacts
from spendgate.core.route import Candidate, Framing, Provider
from spendgate.errors import CostBoundUnknown, RefusalFacts

# Providers print JSON again, indented at worst: measured at most 2.0 tokens a compact byte.
JSON_FACTOR: Final = 2
_NAMES: Final = {
    "document": "a document",
    "audio": "sound",
    "file": "a file of any kind",
    "image": "an image of any size",
    "reasoning": "thinking that is not shown",
}
_SEEN: Final = frozenset({"image", "document", "file"})
# Chat models that search the web before they answer, whatever the request says (OpenAI docs, web search, 2026-07).
SEARCHES_ALWAYS: Final = frozenset(
    {
        "gpt-4o-search-preview", "gpt-4o-search-preview-2025-03-11", "gpt-5-search-api", "gpt-5-search-api-2025-10-14",
        "gpt-4o-mini-search-preview", "gpt-4o-mini-search-preview-2025-03-11",
    }
)  # fmt: skip


def input_tokens_max(facts: RequestFacts, framing: Framing, context_tokens: int | None) -> int:
    """Return the most input tokens that the provider can count: bytes and framing, never more than the context."""
    tokens = facts.text_bytes + JSON_FACTOR * facts.json_bytes + framing.request + framing.part * facts.parts
    tokens += facts.hidden_tokens
    if facts.tools or facts.structured:
        tokens += framing.tooling + framing.tool * facts.tools
    # Each of several inputs is read in a context of its own.
    return tokens if context_tokens is None else min(tokens, context_tokens * facts.inputs)


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
    loop = loop_of(facts)
    if facts.demands:
        # What the provider finds goes into the context, which every turn of the model reads again.
        whole = _whole(context, facts.demands[0].feature, facts.demands[0].field, candidate)
        return loop.turns * (whole * facts.inputs + media.beside) + loop.tokens
    if candidate.model in SEARCHES_ALWAYS:
        raise _searches_always(candidate)
    if media.fills_context:
        item = filling(facts.media)
        return _whole(context, _NAMES[item.kind], item.field, candidate) * facts.inputs + media.beside
    within = measured + media.within + _hidden(facts, rows, context, candidate)
    # Each of several inputs is read in a context of its own.
    return (within if context is None else min(within, context * facts.inputs)) + media.beside


def check_uses(facts: RequestFacts, provider: Provider) -> None:
    """Refuse a provider that nobody knows to keep to the number of uses that a request states: CostBoundUnknown."""
    stated = next((demand for demand in facts.demands if demand.stamps_uses), None)
    if stated is None or kind_of(provider).caps_tool_calls:
        return
    raise CostBoundUnknown(
        f"{stated.field} uses {stated.feature} as often as {stated.uses_field} says, and nobody knows that provider "
        f"{provider.name} keeps to it",
        facts=RefusalFacts(
            field=stated.field,
            next_action=f"send the call without it, or ask for a route to OpenAI itself; of a host that keeps to "
            f"{stated.uses_field} an operator says kind: openai in the provider's entry",
        ),
    )


def fees_bound(facts: RequestFacts, row: PriceRow) -> int:
    """Return the fees of a request at most; CostBoundUnknown where the row does not price one."""
    prices = dict(row.fees)
    total = 0
    for kind, units in loop_of(facts).fees:
        if kind not in prices:
            raise _unpriced_fee(facts, kind, row)
        total += units * prices[kind]
    return total


def uncapped_output(facts: RequestFacts, candidate: Candidate, rows: Sequence[PriceRow], *, overshoot: int) -> int:
    """Return the output of the turns that the request's cap does not hold: each as much as the model can."""
    turns = loop_of(facts).uncapped
    if not turns:
        return 0
    known = [row.output_tokens_max for row in rows if row.output_tokens_max is not None]
    if len(known) < len(rows):
        field = next(demand.field for demand in facts.demands if demand.uncapped)
        raise CostBoundUnknown(
            f"{field} puts out more than the output cap holds, and nobody has said how much {candidate.model} at provider "
            f"{candidate.provider} can put out",
            facts=RefusalFacts(
                field=field,
                next_action="send the call without it, or an operator adds output_tokens_max to the price row of "
                f"({candidate.provider}, {candidate.model})",
            ),
        )
    return turns * (max(known) + overshoot)


def context_of(rows: Sequence[PriceRow]) -> int | None:
    """Return the largest context of all rows; None where one of them does not say."""
    known = [row.context_tokens for row in rows if row.context_tokens is not None]
    return max(known) if len(known) == len(rows) else None


def rates_of_media(facts: RequestFacts, rates: Rates) -> tuple[int, ...]:
    """Return the rates of the modalities that a request brings; CostBoundUnknown where one has none.

    An image without a rate of its own costs what text does. A document has pages that are images, and a file may be sound;
    what the provider finds may be either of the first two (Gemini reads images and PDF under an address).
    """
    found = []
    seen = any(item.kind in _SEEN for item in facts.media) or any(one.feature != COMPACTION for one in facts.demands)
    if seen and rates.image_input is not None:
        found.append(rates.image_input)
    sound = next((item for item in facts.media if item.kind in SOUND), None)
    if sound is not None:
        if rates.audio_input is None:
            raise _no_audio_rate(sound)
        found.append(rates.audio_input)
    elif rates.audio_input is not None and any(demand.feature == SERVER_STATE for demand in facts.demands):
        # Nobody here knows what is held at the server.
        found.append(rates.audio_input)
    return tuple(found)


def _hidden(facts: RequestFacts, rows: Sequence[PriceRow], context: int | None, candidate: Candidate) -> int:
    """Return what blocks of thinking that are not shown stand for: each for all that the model can put out."""
    hidden = [item for item in facts.media if item.kind == "reasoning"]
    if not hidden:
        return 0
    known = [row.output_tokens_max for row in rows if row.output_tokens_max is not None]
    if len(known) < len(rows):
        return _whole(context, _NAMES["reasoning"], hidden[0].field, candidate)
    return max(known) * sum(item.count for item in hidden)


def _whole(context: int | None, what: str, field: str, candidate: Candidate) -> int:
    if context is not None:
        return context
    raise CostBoundUnknown(
        f"{field} is {what}, which is bounded by the context of the model, and nobody has said how large that of "
        f"{candidate.model} at provider {candidate.provider} is",
        facts=RefusalFacts(
            field=field,
            next_action="send the call without it, or an operator adds context_tokens to the price row of "
            f"({candidate.provider}, {candidate.model})",
        ),
    )


def _searches_always(candidate: Candidate) -> CostBoundUnknown:
    return CostBoundUnknown(
        f"model {candidate.model} searches the web in every call, and the request does not ask for it",
        facts=RefusalFacts(
            field="web_search_options",
            next_action="send web_search_options, and an operator adds allow: {web_search: 1} to the budget",
        ),
    )


def _unpriced_fee(facts: RequestFacts, kind: str, row: PriceRow) -> CostBoundUnknown:
    field = next(demand.field for demand in facts.demands if demand.fee == kind)
    return CostBoundUnknown(
        f"{field} costs a fee for each {kind}, and the price row of {row.model} at provider {row.provider} has none",
        facts=RefusalFacts(
            field=field,
            next_action=f"send the call without it, or an operator adds fees: {{{kind}: ...}} to the price row",
        ),
    )


def _no_audio_rate(sound: Media) -> CostBoundUnknown:
    return CostBoundUnknown(
        f"{sound.field} is {_NAMES[sound.kind]}, and a price row that the call can reach has no rate for it",
        facts=RefusalFacts(
            field=sound.field,
            next_action="send the call without sound, or an operator adds audio_input to the price row",
        ),
    )
