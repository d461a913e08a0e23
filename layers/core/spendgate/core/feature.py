"""Tools that run at the provider: what a request switches on, and what an operator allows of it.

Each turn of such a loop reads everything again, so a call with one can cost many times its text. It is refused by
name unless ``allow`` on a budget of the path names the feature and how often a call may use it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from spendgate.core.budget import BudgetPolicy
from spendgate.core.request import Demand, RequestFacts
from spendgate.errors import CostBoundUnknown, RefusalFacts

WEB_SEARCH: Final = "web_search"
WEB_FETCH: Final = "web_fetch"
FILE_SEARCH: Final = "file_search"
# The model sums up a conversation that has become long, and goes on from there.
COMPACTION: Final = "compaction"
# What the provider has stored and a request only names: it may fill the context.
SERVER_STATE: Final = "server_state"
# All that an operator can allow; what is not here has no bound yet, whoever allows it.
FEATURES: Final = frozenset({WEB_SEARCH, WEB_FETCH, FILE_SEARCH, COMPACTION, SERVER_STATE})
# So many uses of a feature in one call: beyond it nobody means a bound.
USES_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """What the demands of a request come to: the turns of its model, and (kind of fee, units).

    ``uncapped`` are the turns whose output the request's cap does not hold.
    """

    turns: int = 1
    fees: tuple[tuple[str, int], ...] = ()
    tokens: int = 0
    uncapped: int = 0


def allowance(path: Sequence[BudgetPolicy], route: Sequence[tuple[str, int]] = ()) -> dict[str, int]:
    """Return how often a call may use each feature: of several budgets that name it, the nearest to the leaf says.

    What a route allows is for callers whose budgets say nothing of the feature: a budget is who pays, and its own word,
    a 0 too, is never widened by the name that a caller asks for.
    """
    return dict(route) | {feature: uses for policy in path for feature, uses in policy.allow}


def granted(facts: RequestFacts, allowed: Mapping[str, int]) -> RequestFacts:
    """Return the facts with the uses of every demand settled; CostBoundUnknown where one is not allowed so."""
    if not facts.demands:
        return facts
    return replace(facts, demands=tuple(_granted(demand, allowed.get(demand.feature, 0)) for demand in facts.demands))


def loop_of(facts: RequestFacts) -> Loop:
    """Return what the demands come to at most; ValueError where nobody has granted them."""
    fixed = [demand.turns for demand in facts.demands if demand.turns is not None]
    open_ended = sum(_uses(demand) for demand in facts.demands if demand.turns is None)
    return Loop(
        turns=max(fixed, default=1) + open_ended,
        fees=tuple(
            (demand.fee, _uses(demand) * demand.fees_each) for demand in facts.demands if demand.fee is not None
        ),
        tokens=sum(_uses(demand) * demand.tokens_each for demand in facts.demands),
        uncapped=sum(_uses(demand) for demand in facts.demands if demand.uncapped),
    )


def uses_to_stamp(facts: RequestFacts) -> int | None:
    """Return the uses that go out with a request whose one number holds for all of its features: the smallest."""
    return min((d.uses for d in facts.demands if d.stamps_uses and d.uses is not None), default=None)


def uses_stamped(facts: RequestFacts) -> int | None:
    """Return the uses that were written into a request that said none, None where nothing was."""
    return uses_to_stamp(facts) if any(demand.stamped for demand in facts.demands) else None


def _uses(demand: Demand) -> int:
    if demand.uses is None:
        raise ValueError(f"nobody has said how often {demand.feature} may be used")
    return demand.uses


def _granted(demand: Demand, allowed: int) -> Demand:
    if not allowed:
        raise _refused(
            demand,
            f"{demand.field} lets the provider use {demand.feature}, which neither a budget of the path nor the route "
            "allows",
            f"send the call without it{f' ({demand.hint})' if demand.hint else ''}, or an operator adds "
            f"allow: {{{demand.feature}: 5}} to the budget or the route",
        )
    if demand.states_uses and demand.uses is None:
        raise _refused(
            demand,
            f"{demand.field} does not say how often the provider may use {demand.feature}",
            f"set {demand.uses_field} to {allowed} or less",
        )
    if demand.uses is not None and demand.uses > allowed:
        raise _refused(
            demand,
            f"{demand.field} asks for {demand.uses} uses of {demand.feature}, and the budget allows {allowed} a call",
            f"set {demand.uses_field} to {allowed} or less, or an operator raises allow of the budget"
            if demand.uses_field
            else f"send the call without it, or an operator allows {{{demand.feature}: {demand.uses}}}",
        )
    return demand if demand.uses is not None else replace(demand, uses=allowed, stamped=demand.stamps_uses)


def _refused(demand: Demand, message: str, next_action: str) -> CostBoundUnknown:
    return CostBoundUnknown(message, facts=RefusalFacts(field=demand.field, next_action=next_action))
