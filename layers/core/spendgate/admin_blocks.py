"""Blocks, which stand where a provider billed more than the bound: list them, and lift one once a person knows the cause."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any

from spendgate.admin_input import sentence
from spendgate.admin_view import instant_text
from spendgate.core.block import Block
from spendgate.core.event import Event
from spendgate.core.money import usd_text
from spendgate.core.route import Candidate
from spendgate.errors import NotFound
from spendgate.store.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Blocks:
    """The operators' use cases over blocks."""

    ledger: Ledger
    _: KW_ONLY
    clock: Callable[[], datetime]

    def list(self) -> dict[str, Any]:
        """Return every block, by provider, model and feature."""
        return {"blocks": [block_view(one) for one in self.ledger.blocks()]}

    def lift(self, *, provider: str, model: str, feature: str, reason: str, by: str) -> dict[str, Any]:
        """Take a block away; NotFound, or RevisionConflict where another bill has broken the bound meanwhile."""
        reason = sentence(reason, "reason")
        wanted = Candidate(provider=provider, model=model)
        found = [one for one in self.ledger.blocks() if one.candidate == wanted and one.feature == feature]
        if not found:
            raise NotFound(f"{feature} of model {model} at provider {provider} is not blocked")
        view = block_view(found[0])
        subject = f"block:{provider}/{model}/{feature}"
        event = Event(kind="block_lifted", subject=subject, at=self.clock(), by=by, reason=reason, before=view)
        self.ledger.lift(found[0], event)
        return {"lifted": view}


def block_view(block: Block) -> dict[str, Any]:
    """Return a block: what is blocked, and the call that showed why."""
    return {
        "provider": block.candidate.provider,
        "model": block.candidate.model,
        "feature": block.feature,
        "at": instant_text(block.at),
        "reservation": block.reservation,
        "budget": block.budget,
        "dialect": block.dialect,
        "reserved": usd_text(block.reserved),
        "billed": usd_text(block.billed),
        "features": list(block.shape.features),
        "stream": block.shape.stream,
        "tools": block.shape.tools,
        "choices": block.shape.choices,
        "violations": block.violations,
    }
