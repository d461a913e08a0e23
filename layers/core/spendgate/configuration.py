"""What a team declares in ``spendgate.yaml``, as the core's values. ``configuration_reader.py`` reads it."""

from dataclasses import dataclass, field
from datetime import datetime

from spendgate.core import alert
from spendgate.core.alert import AlertPolicy
from spendgate.core.budget import BudgetPolicy, is_unbudgeted, prefixes
from spendgate.core.price import PriceRow
from spendgate.core.route import Candidate, Provider, Route


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySpec:
    """A key as the file declares it. ``models`` are the routes it may ask for; empty means every route.

    ``secret`` is fixed for local runs only.
    """

    name: str
    budget: str
    models: tuple[str, ...] = ()
    expires_at: datetime | None = None
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All that a file declares. ``budgets`` hold every prefix of a declared path, parents before children."""

    providers: tuple[Provider, ...] = ()
    prices: tuple[PriceRow, ...] = ()
    routes: tuple[Route, ...] = ()
    budgets: tuple[BudgetPolicy, ...] = ()
    keys: tuple[KeySpec, ...] = ()
    alerts: AlertPolicy = alert.DEFAULTS

    def unpriced(self) -> tuple[Candidate, ...]:
        """Return the candidates without a row in the file that a budgeted caller may reach.

        A route that no key of the file may ask for counts as reachable: keys can be made later.
        """
        priced = {(row.provider, name) for row in self.prices for name in (row.model, *row.aliases)}
        found = dict.fromkeys(
            candidate
            for route in self.routes
            if self._budgeted_may_ask(route.name)
            for candidate in route.candidates
            if (candidate.provider, candidate.model) not in priced
        )
        return tuple(found)

    def _budgeted_may_ask(self, route: str) -> bool:
        policies = {policy.path: policy for policy in self.budgets}
        callers = [key for key in self.keys if not key.models or route in key.models]
        paths = [tuple(policies[path] for path in prefixes(key.budget)) for key in callers]
        return not paths or not all(map(is_unbudgeted, paths))
