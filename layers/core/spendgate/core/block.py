"""A bound that a bill has broken: what may not be sent again until a person has looked at it.

A bound is a promise about a (provider, model) and what a request uses of it. A bill above it proves the promise wrong
there, and nowhere else: so that is blocked, for every budget, and the rest goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from spendgate.core.request import RequestFacts
from spendgate.core.route import Candidate

# What every request has. A bill above the bound of a plain request blocks the whole model.
TEXT: Final = "text"
_PLAIN_TIERS: Final = frozenset({None, "auto", "default", "standard"})
_PLAIN_SPEEDS: Final = frozenset({None, "standard"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a request looked like, as far as it bears on cost, and no word of it.

    ``features`` begin with the most specific one, and end with ``text``.
    """

    features: tuple[str, ...] = (TEXT,)
    stream: bool = False
    tools: int = 0
    choices: int = 1


PLAIN: Final = Shape()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One (provider, model, feature) whose bound was too low, and the first call that showed it.

    ``reserved`` and ``billed`` are picodollars of that call, ``violations`` counts all of them since.
    """

    candidate: Candidate
    feature: str
    reservation: str
    budget: str
    dialect: str
    at: datetime
    reserved: int
    billed: int
    shape: Shape
    violations: int = 1


def shape_of(facts: RequestFacts) -> Shape:
    """Return the shape of a request."""
    found = [demand.feature for demand in facts.demands] + [media.kind for media in facts.media]
    if facts.service_tier not in _PLAIN_TIERS:
        found.append(f"tier:{facts.service_tier}")
    if facts.speed not in _PLAIN_SPEEDS:
        found.append(f"speed:{facts.speed}")
    features = tuple(dict.fromkeys([*found, TEXT]))
    return Shape(features=features, stream=facts.stream, tools=facts.tools, choices=facts.choices)


def block_on(blocks: Sequence[Block], candidates: Sequence[Candidate], shape: Shape) -> Block | None:
    """Return the block that a call meets if it uses any feature that is blocked at any candidate, None if it is free."""
    reach = frozenset(candidates)
    return next((one for one in blocks if one.candidate in reach and one.feature in shape.features), None)
