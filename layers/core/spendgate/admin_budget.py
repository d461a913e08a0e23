"""A budget that an operator names, as it is stored."""

from spendgate.core.budget import PATH_LENGTH_MAX, BudgetState
from spendgate.errors import BudgetMissing
from spendgate.store.ledger import Ledger


def named_budget(ledger: Ledger, path: str) -> BudgetState:
    """Return the budget of a path; BudgetMissing."""
    if not 1 <= len(path) <= PATH_LENGTH_MAX:
        raise no_budget(path[:PATH_LENGTH_MAX])
    state = ledger.budget(path)
    if state is None:
        raise no_budget(path)
    return state


def no_budget(path: str) -> BudgetMissing:
    """Return the error of a path that no budget has."""
    return BudgetMissing(f"there is no budget {path!r}")
