"""What an operator should know before applying a file that is allowed all the same."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from spendgate.admin_temporary import standing
from spendgate.admin_view import instant_text, policy_view, window_view
from spendgate.catalogue import rows_named
from spendgate.configuration import Configuration
from spendgate.core.budget import BudgetPolicy, BudgetState
from spendgate.core.money import usd
from spendgate.core.price import PriceRow, row_in_force
from spendgate.core.route import Candidate, Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpriced:
    """A candidate that a route can reach and that has no price now; ``first`` is when it will have one."""

    route: str
    candidate: Candidate
    first: datetime | None

    def __str__(self) -> str:
        what = f"route {self.route}: {self.candidate.provider}/{self.candidate.model}"
        if self.first is None:
            return f"{what} has no price row: calls that can reach it are refused (price_unknown)"
        return (
            f"{what} has no price before {instant_text(self.first)}: until then its calls are refused (price_unknown)"
        )


def warnings(
    configuration: Configuration,
    budgets: Iterable[BudgetState],
    prices: Iterable[PriceRow],
    shipped: Sequence[PriceRow],
    now: datetime,
) -> Iterator[str]:
    """Return a sentence for each; ``budgets`` and ``prices`` are what is stored, ``shipped`` what an apply adds."""
    known = (*prices, *configuration.prices, *shipped)
    yield from (str(one) for one in unpriced(configuration.routes, known, now))
    yield from _overtaken(configuration.prices, known, shipped, now)
    for spec in configuration.keys:
        if spec.expires_at is not None and spec.expires_at <= now:
            yield f"key {spec.name} expired at {instant_text(spec.expires_at)}"
    stored = {state.policy.path: state for state in budgets}
    yield from _temporary(configuration, stored.values(), now)
    for policy in configuration.budgets:
        state = stored.get(policy.path)
        if state is not None and policy_view(policy) != policy_view(state.policy):
            yield from _already_spent(policy, state, now)


def unpriced(routes: Iterable[Route], rows: Iterable[PriceRow], now: datetime) -> Iterator[Unpriced]:
    """Return each candidate of a route that has no price now."""
    known = tuple(rows)
    for route in routes:
        for candidate in route.candidates:
            mine = rows_named(known, candidate.provider, candidate.model)
            if row_in_force(mine, now) is None:
                first = min((row.valid_from for row in mine), default=None)
                yield Unpriced(route=route.name, candidate=candidate, first=first)


def _overtaken(
    declared: Sequence[PriceRow], known: Sequence[PriceRow], shipped: Sequence[PriceRow], now: datetime
) -> Iterator[str]:
    """A row of the file that is older than a shipped one prices the past only, which its writer may not have meant."""
    ids = {row.id for row in shipped}
    newest = {
        (row.provider, row.model): row_in_force(
            [one for one in known if (one.provider, one.model) == (row.provider, row.model)], now
        )
        for row in declared
    }
    for row in newest.values():
        if row is not None and row.id in ids and row not in declared:
            yield (
                f"{row.provider}/{row.model}: the shipped price from {instant_text(row.valid_from)} is newer than the "
                "file's and counts; give the file's row a later `from`, or the provider `prices: none`"
            )


def _temporary(configuration: Configuration, stored: Iterable[BudgetState], now: datetime) -> Iterator[str]:
    # What the file says nothing of is not written, and keeps what it has.
    declared = {policy.path: policy for policy in configuration.budgets if policy_view(policy)}
    for state in stored:
        if stands := standing(state.policy, declared.get(state.policy.path, state.policy), now):
            yield stands


def _already_spent(policy: BudgetPolicy, stored: BudgetState, now: datetime) -> Iterable[str]:
    for limit in policy.limits:
        if limit.measure != "usd" or limit.window == "request":
            continue
        view = window_view(stored, limit, now)
        if usd(view["committed"]) > limit.maximum:
            yield (
                f"budget {policy.path}: {view['committed']} USD is already committed in this {limit.window}, "
                f"more than {view['maximum']}: paid calls are refused"
            )
