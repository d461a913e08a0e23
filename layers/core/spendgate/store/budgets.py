"""Budgets as operators change them: policies, stops and blocks. Each change is one transaction, with the event that tells of it.

No money is changed here: that is the ledger's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from spendgate.core.block import Block
from spendgate.core.budget import BudgetPolicy, Stop, TemporaryLimits
from spendgate.core.event import Event
from spendgate.errors import BudgetMissing, LedgerError, RevisionConflict
from spendgate.store import events
from spendgate.store.reader import Reader
from spendgate.store.transact import ConditionsFailed, transact, update
from spendgate.store.transactions import latch_step, lift_steps, policy_steps, resume_steps, stop_steps
from spendgate.store.write import Step


class Budgets(Reader):
    """Reads the ledger's table, and writes what operators decide."""

    __slots__ = ()

    def put_budget(
        self, policy: BudgetPolicy, *, expected_rev: int | None, now: datetime, event: Event | None = None
    ) -> None:
        """Write a budget's policy: a new budget (None) or over a revision; RevisionConflict. Counters and stop stay."""
        steps = policy_steps(self.table, policy, now, expected_rev=expected_rev)
        self._operate(steps, event, RevisionConflict(f"budget {policy.path} was changed by somebody else"))

    def stop(self, path: str, stop: Stop, event: Event | None = None) -> None:
        """Stop a budget; a budget that is stopped already keeps its first reason. BudgetMissing."""
        self._operate(stop_steps(self.table, path, stop, stop.at), event, BudgetMissing(f"there is no budget {path}"))

    def resume(self, path: str, event: Event, *, temporary: TemporaryLimits | None = None) -> None:
        """Take the stop off a budget, and give it temporary limits in the place of those that it has.

        BudgetMissing, RevisionConflict; where nothing would change, nothing is written.
        """
        state = self.budget(path)
        if state is None:
            raise BudgetMissing(f"there is no budget {path}")
        if state.policy.stop is None and state.policy.temporary == temporary:
            return
        steps = resume_steps(self.table, path, state.policy.rev, temporary)
        self._operate(steps, event, RevisionConflict(f"budget {path} was changed by somebody else"))

    def lift(self, block: Block, event: Event) -> None:
        """Take a block away as it was read; RevisionConflict where it is gone, or another bill has broken the bound."""
        changed = f"the block of {block.feature} at {block.candidate.provider}/{block.candidate.model} has changed"
        self._operate(lift_steps(self.table, block), event, RevisionConflict(changed))

    def latch(self, path: str, stop: Stop, event: Event | None = None) -> bool:
        """Stop a run for a reason of its own; False where it is stopped already, or not there, and then without the event."""
        step = latch_step(self.table, path, stop)
        if event is None:
            return update(self.client, step, self.timing)
        try:
            self._operate([step], event, BudgetMissing(f"run {path} is not there, or stopped already"))
        except BudgetMissing:
            return False
        return True

    def _operate(self, steps: list[Step], event: Event | None, failure: LedgerError) -> None:
        if event is not None:
            steps = [*steps, events.event_step(self.table, event, self.timing.randomness(10))]
        try:
            self._transact(steps, self._name())
        except ConditionsFailed as conditions:
            raise failure from conditions

    def _name(self) -> str:
        """Return the name of a transaction that belongs to no reservation; each is its own."""
        return self.timing.randomness(12).hex()

    def _transact(self, steps: Sequence[Step], name: str) -> None:
        transact(self.client, steps, name=name, timing=self.timing)
