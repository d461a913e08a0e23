"""What operators do: plan and apply a configuration, look at budgets, make and revoke keys, stop, resume, reconcile.

Plain values in, JSON-ready dicts out. Everything that changes something leaves an event: who, when, from what to
what, and why. ``by`` is who asks, as the transport knows it (the local user, an AWS identity).
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from itertools import groupby, islice
from typing import Any, Final

from spendgate import admin_reconcile as reconciliation
from spendgate import configuration_reader
from spendgate.admin_alerts import Alerts, Tester
from spendgate.admin_apply import Applier
from spendgate.admin_audit import audited
from spendgate.admin_blocks import Blocks
from spendgate.admin_budget import named_budget, no_budget
from spendgate.admin_input import invalid, sentence
from spendgate.admin_keys import Keys
from spendgate.admin_plan import Snapshot, plan
from spendgate.admin_prices import Prices
from spendgate.admin_report import Report
from spendgate.admin_temporary import resumption, temporary_limits
from spendgate.admin_trail import trail
from spendgate.admin_view import (
    budget_view,
    event_view,
    instant_text,
    reservation_view,
    stop_view,
)
from spendgate.catalogue import LOADED, Catalogue, no_catalogue, rows_for, unknown_catalogues
from spendgate.configuration import Configuration
from spendgate.core.budget import Limit, Stop, is_run, is_within
from spendgate.core.event import Event
from spendgate.core.reservation import STATES, Reservation, is_id
from spendgate.errors import (
    ConfigurationInvalid,
    RefusalFacts,
    RequestConflict,
    ReservationMissing,
    RevisionConflict,
)
from spendgate.providers.recovery import Recover
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger

LIST_LENGTH_MAX: Final = 1000
# Whose events there are, and whether it is those of keys.
_BY: Final = {"operators": False, "keys": True}


@dataclass(frozen=True, slots=True)
class Admin:
    """The operators' use cases over one ledger and one configuration store."""

    ledger: Ledger
    config: Config
    _: KW_ONLY
    clock: Callable[[], datetime]
    randomness: Callable[[int], bytes]
    # Plain-http providers on loopback: for local runs only.
    loopback_http: bool = False
    # Asks a provider what became of a call; None where there is no way out to one.
    recover: Recover | None = None
    # The prices that are shipped with this gateway.
    catalogue: Catalogue = no_catalogue

    # Sends a test alert of each kind.
    alert_tester: Tester | None = None

    # --- the configuration file

    def plan(self, text: str) -> dict[str, Any]:
        """Return what applying a file would change, and the id under which exactly that can be applied."""
        parsed = configuration_reader.parse(text, loopback_http=self.loopback_http)
        return plan(text, parsed, self._snapshot(parsed), self.clock()).view()

    def apply(self, text: str, *, by: str, plan_id: str | None = None) -> dict[str, Any]:
        """Apply a file, and return the secrets of new keys, this once.

        RevisionConflict where the file or the store is no longer what ``plan_id`` was made from.
        """
        parsed = configuration_reader.parse(text, loopback_http=self.loopback_http)
        snapshot = self._snapshot(parsed)
        planned = plan(text, parsed, snapshot, self.clock())
        if plan_id is not None and plan_id != planned.id:
            raise RevisionConflict("the file or what is stored has changed since this plan was made: plan again")
        applier = Applier(
            ledger=self.ledger,
            config=self.config,
            configuration=parsed,
            snapshot=snapshot,
            clock=self.clock,
            by=by,
            randomness=self.randomness,
        )
        return {**planned.view(), **applier.apply(planned).view()}

    @property
    def prices(self) -> Prices:
        """What models cost."""
        return Prices(self.config, self.catalogue, clock=self.clock)

    @property
    def keys(self) -> Keys:
        """What agents call with."""
        return Keys(self.ledger, self.config, clock=self.clock, randomness=self.randomness)

    @property
    def blocks(self) -> Blocks:
        """What a broken bound has blocked."""
        return Blocks(self.ledger, clock=self.clock)

    @property
    def alerts(self) -> Alerts:
        """What people are told."""
        return Alerts(self.ledger, self.clock, self.alert_tester)

    @property
    def report(self) -> Report:
        """What was used and what it cost."""
        return Report(ledger=self.ledger, config=self.config, clock=self.clock)

    # --- budgets

    def budgets(self, path: str | None = None) -> dict[str, Any]:
        """Return every budget with its windows, in path order; with a path only that one and what is below it.

        And what a broken bound has blocked, which holds for all of them.
        """
        now = self.clock()
        states = self.ledger.budgets()
        if path is not None:
            states = tuple(state for state in states if is_within(state.policy.path, path))
            if not states:
                raise no_budget(path)
        return {
            "at": instant_text(now),
            "budgets": [budget_view(state, now) for state in states],
            **self.blocks.list(),
        }

    def stop(self, path: str, *, reason: str, by: str) -> dict[str, Any]:
        """Let no paid call through at or below a budget until somebody resumes it; a first stop keeps its reason."""
        reason = sentence(reason, "reason")
        now = self.clock()
        if named_budget(self.ledger, path).policy.stop is None:
            stop = Stop(reason=reason, at=now, by=by)
            after = stop_view(stop)
            event = Event(kind="budget_stopped", subject=path, at=self.clock(), by=by, reason=reason, after=after)
            self.ledger.stop(path, stop, event)
        return budget_view(named_budget(self.ledger, path), now)

    def resume(
        self, path: str, *, reason: str, by: str, limits: Sequence[Limit] = (), until: str | None = None
    ) -> dict[str, Any]:
        """Let a budget go on: without its stop, and with its own limits or, until an instant, with higher ones.

        RequestConflict where it is not stopped itself, no limit is raised, and none stands that this would end.
        """
        reason, now = sentence(reason, "reason"), self.clock()
        policy = named_budget(self.ledger, path).policy
        temporary = temporary_limits(policy, limits, until, now=now, by=by, reason=reason)
        if policy.stop is None and temporary is None and policy.temporary_at(now) is None:
            above = [one for one in self.ledger.budgets() if one.policy.stop and is_within(path, one.policy.path)]
            hint = f"; {above[0].policy.path}, above it, is" if above else ""
            raise RequestConflict(f"budget {path} is not stopped{hint}", facts=RefusalFacts(budget=path))
        kind, before, after = resumption(policy, temporary, now)
        event = Event(kind=kind, subject=path, at=self.clock(), by=by, reason=reason, before=before, after=after)
        self.ledger.resume(path, event, temporary=temporary)
        return budget_view(named_budget(self.ledger, path), self.clock())

    # --- reservations

    def reservations(self, *, budget: str | None = None, state: str | None = None, limit: int = 50) -> dict[str, Any]:
        """Return reservations, the newest first."""
        if state is not None and state not in STATES:
            raise invalid("state", f"one of {', '.join(STATES)}")
        if not 1 <= limit <= LIST_LENGTH_MAX:
            raise invalid("limit", f"a number from 1 to {LIST_LENGTH_MAX}")
        if budget is not None:
            named_budget(self.ledger, budget)
        wanted = next((one for one in STATES if one == state), None)
        found = self.ledger.reservations(budget=budget, state=wanted, limit=limit, now=self.clock())
        return {"reservations": [reservation_view(one) for one in found]}

    def reservation(self, reservation_id: str) -> dict[str, Any]:
        """Return one reservation."""
        return reservation_view(self._reservation(reservation_id))

    def reconcile(
        self, reservation_id: str, *, action: str, cost: str | None, evidence: str | None, by: str
    ) -> dict[str, Any]:
        """End a reservation that did not end by itself: settle at a cost, release, charge in full, or ask the provider.

        The same again changes nothing; anything else on a resolved one is TransitionIllegal.
        """
        if action == reconciliation.ASK:
            return self._ask(reservation_id, cost=cost, evidence=evidence, by=by)
        wanted = reconciliation.parse_action(action)
        amount = reconciliation.parse_cost(wanted, cost)
        evidence = sentence(evidence or "", "evidence")
        reservation, now = self._reservation(reservation_id), self.clock()
        resolution = reconciliation.resolution(reservation, wanted, amount, evidence=evidence, by=by)
        if reconciliation.may_resolve(reservation, resolution, now):
            event = reconciliation.event(reservation, resolution, now)
            reservation = self.ledger.resolve(reservation_id, resolution, now, event=event)
        exceeds = amount is not None and amount > reservation.asked.usd
        return {"reservation": reservation_view(reservation), "exceeds_reserved": exceeds}

    def _ask(self, reservation_id: str, *, cost: str | None, evidence: str | None, by: str) -> dict[str, Any]:
        """Settle a reservation by its provider's own word; where that proves nothing, ``unproven`` says why."""
        for name, given in (("cost", cost), ("evidence", evidence)):
            if given is not None:
                raise invalid(name, "goes with settle, release or charge; ask takes none: the provider is asked for it")
        reservation, now = self._reservation(reservation_id), self.clock()
        reconciliation.check_open(reservation, now)
        if self.recover is None:
            raise reconciliation.not_askable(reservation)
        unproven: str | None = "which provider served it is not known"
        provider = None if reservation.provider is None else self.config.provider(reservation.provider)
        if provider is not None:
            recovered = self.recover(provider, reservation)
            unproven, report = recovered.said, recovered.report
            settled = report and reconciliation.proven(reservation, report, said=recovered.said, by=by)
            if report is not None:
                unproven = "what the provider's record says has no price here"
            if settled:
                event = reconciliation.event(reservation, settled, now)
                reservation = self.ledger.resolve(reservation_id, settled, now, event=event)
                unproven = None
        actual = reservation.actual
        exceeds = unproven is None and actual is not None and actual.usd > reservation.asked.usd
        return {"reservation": reservation_view(reservation), "exceeds_reserved": exceeds, "unproven": unproven}

    # --- proof and trail

    def audit(self) -> dict[str, Any]:
        """Recompute every counter from the reservations and return each difference."""
        return audited(self.ledger, self.clock())

    def events(self, limit: int = 50, by: str | None = None) -> dict[str, Any]:
        """Return what operators changed in the last ``admin_trail.EVENT_DAYS_MAX`` days, and keys of runs, the newest first."""
        if not 1 <= limit <= LIST_LENGTH_MAX:
            raise invalid("limit", f"a number from 1 to {LIST_LENGTH_MAX}")
        if by not in (None, *_BY):
            raise invalid("by", f"one of {', '.join(_BY)}")
        whose = tuple(keys for name, keys in _BY.items() if by in (None, name))
        return {"events": [event_view(event) for event in islice(trail(self.ledger, self.clock(), whose), limit)]}

    def catalogue_state(self) -> dict[str, Any]:
        """Return how much of the shipped prices is stored, how old they are, and the last load that added any."""
        loads = (event for event in trail(self.ledger, self.clock()) if event.kind == LOADED)
        # A load leaves an event for each of its transactions, all of one instant.
        _, last = next(groupby(loads, key=lambda event: event.at), (None, ()))
        return self.prices.state(tuple(last))

    # --- private

    def _snapshot(self, parsed: Configuration) -> Snapshot:
        unknown = unknown_catalogues(parsed.providers, self.catalogue)
        if unknown:
            raise ConfigurationInvalid(unknown)
        return Snapshot(
            budgets=tuple(state for state in self.ledger.budgets() if not is_run(state.policy.path)),
            keys=self.config.keys(),
            providers=self.config.providers(),
            routes=self.config.routes(),
            prices=self.config.all_prices(),
            managed=self.config.managed(),
            shipped=rows_for(parsed.providers, self.catalogue),
            alerts=self.config.alerts(),
        )

    def _reservation(self, reservation_id: str) -> Reservation:
        if not is_id(reservation_id):
            raise invalid("id", "a reservation's id has 26 capital letters and digits")
        found = self.ledger.reservation(reservation_id)
        if found is None:
            raise ReservationMissing(f"there is no reservation {reservation_id}")
        return found
