"""What a refusal says in every dialect: the same facts, wherever each SDK keeps the error's body."""

from typing import Any

from spendgate.errors import Refused

_WHERE_SET = ("reservation", "state", "field")


def sentence(refused: Refused) -> str:
    """Return what a refusal says to a person, with what to do: many programs show the message and nothing else."""
    message, action = str(refused), refused.facts.next_action
    return message if action is None else f"{message.removesuffix('.')}. Next: {action}"


def facts_document(refused: Refused) -> dict[str, Any]:
    """Return the facts of a refusal; those that do not apply are null."""
    facts = refused.facts
    limit = {"measure": facts.measure, "window": facts.window, "maximum": facts.maximum}
    fits = facts.fits_output_tokens
    document: dict[str, Any] = {
        "code": refused.code,
        "retryable": refused.retryable,
        "budget": facts.budget,
        "limit": limit if facts.measure is not None else None,
        "settled": facts.settled,
        "reserved": facts.reserved,
        "unknown": facts.unknown,
        "asked": facts.asked,
        "resets_at": facts.resets_at,
        "fits": {"max_output_tokens": fits} if fits is not None else None,
        "next_action": facts.next_action,
    }
    return document | {name: getattr(facts, name) for name in _WHERE_SET if getattr(facts, name) is not None}
