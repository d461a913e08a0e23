"""What an operator should know before applying a file that is allowed all the same."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from spendgate.admin_view import instant_text, policy_view, window_view
from spendgate.configuration import Configuration
from spendgate.core.budget import BudgetPolicy, BudgetState
from spendgate.core.money import usd
from spendgate.core.price import PriceRow, row_in_force


def warnings(
    configuration: Configuration, budgets: Iterable[BudgetState], prices: Iterable[PriceRow], now: datetime
) -> Iterator[str]:
    """Return a sentence for each; ``budgets`` and ``prices`` are what is stored."""
    yield from _unpriced(configuration, (*prices, *configuration.prices), now)
    for spec in configuration.keys:
        if spec.expires_at is not None and spec.expires_at <= now:
            yield f"key {spec.name} expired at {instant_text(spec.expires_at)}"
    stored = {state.policy.path: state for state in budgets}
    for policy in configuration.budgets:
        state = stored.get(policy.path)
        if state is not None and policy_view(policy) != policy_view(state.policy):
            yield from _already_spent(policy, state, now)


def _unpriced(configuration: Configuration, rows: Iterable[PriceRow], now: datetime) -> Iterator[str]:
    for route in configuration.routes:
        for candidate in route.candidates:
            mine = [
                row
                for row in rows
                if row.provider == candidate.provider and candidate.model in (row.model, *row.aliases)
            ]
            what = f"route {route.name}: {candidate.provider}/{candidate.model}"
            if not mine:
                yield f"{what} has no price row: calls that can reach it are refused (price_unknown)"
            elif row_in_force(mine, now) is None:
                first = min(row.valid_from for row in mine)
                yield f"{what} has no price before {instant_text(first)}: until then its calls are refused (price_unknown)"


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
