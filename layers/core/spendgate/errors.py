"""Every error that Spendgate raises on purpose.

SpendgateError
    Refused                  a call that gets no answer from a provider; has a code and a status
        OverBudget           over_budget            402
        BudgetBusy           budget_busy            429
        RequestTooExpensive  request_too_expensive  402
        RateLimited          rate_limited           429
        BudgetStopped        budget_stopped         402
        PriceUnknown         price_unknown          402
        CostBoundUnknown     cost_bound_unknown     402
            FieldUnlisted    a field or a beta name that no list knows; an operator may list it
        RequestConflict      request_conflict       409
        DuplicateRequest     duplicate_request      409
        ModelNotAllowed      model_not_allowed      403
        KeyInvalid           key_invalid            401
        RequestInvalid       request_invalid        400
        NotFound             not_found              404
        LedgerUnavailable    ledger_unavailable     503
        ProviderUnreachable  provider_unreachable   502  nothing was sent, the money is released
        ProviderRefusedUs    provider_refused_us    502  the provider rejects the gateway's own credentials
        OutcomeUnknown       outcome_unknown        502 or 504, sent: the money stays reserved
        InternalFault        internal_fault         500  a defect of ours; the reservation, if any, tells what is held
    LedgerError
        SettlementConflict   a second settlement with another amount
        TransitionIllegal    a resolved reservation cannot be resolved again
        ReservationMissing   no reservation of this id
        RevisionConflict     somebody else changed what was to be changed
        BudgetMissing        no budget of this path
    ConfigurationInvalid     every problem of a configuration, each with its place
    LocalStoreFailed         the local run's store did not start, or did not stop cleanly
    AddressRefused           a provider's name leads to an address that it may not have; nothing was sent
    AlertUndelivered         nobody could be told of an alert; it stays in the outbox

Where several refusals apply, the first of this order is answered: stop, request_too_expensive,
over_budget, budget_busy, rate_limited; within one kind the budget nearest to the root.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


class SpendgateError(Exception):
    """The root of the tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalFacts:
    """What a refusal tells beside its sentence; the same in every dialect.

    Amounts are exact decimal strings in USD where the measure is ``usd``, else whole numbers as
    strings. ``resets_at`` is an ISO instant with Z. A fact that does not apply is None.
    """

    budget: str | None = None
    measure: str | None = None
    window: str | None = None
    maximum: str | None = None
    settled: str | None = None
    reserved: str | None = None
    unknown: str | None = None
    asked: str | None = None
    resets_at: str | None = None
    fits_output_tokens: int | None = None
    next_action: str | None = None
    reservation: str | None = None
    state: str | None = None
    field: str | None = None


NO_FACTS = RefusalFacts()


class Refused(SpendgateError):
    """A call that gets no provider's answer. ``str()`` is a sentence for a person at two in the morning."""

    code: ClassVar[str] = "refused"
    status: int = 402
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        facts: RefusalFacts = NO_FACTS,
        retry_after_seconds: int | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.facts = facts
        self.retry_after_seconds = retry_after_seconds
        if status is not None:
            self.status = status


class OverBudget(Refused):
    code = "over_budget"


class BudgetBusy(Refused):
    code = "budget_busy"
    status = 429
    retryable = True


class RequestTooExpensive(Refused):
    code = "request_too_expensive"


class RateLimited(Refused):
    code = "rate_limited"
    status = 429
    retryable = True


class BudgetStopped(Refused):
    code = "budget_stopped"


class PriceUnknown(Refused):
    code = "price_unknown"


class CostBoundUnknown(Refused):
    code = "cost_bound_unknown"


class FieldUnlisted(CostBoundUnknown):
    """``name`` is what may be listed in a provider's ``setting``: ``free_fields`` or ``free_betas``."""

    def __init__(
        self, message: str, *, name: str = "", setting: str = "free_fields", facts: RefusalFacts = NO_FACTS
    ) -> None:
        super().__init__(message, facts=facts)
        self.name = name
        self.setting = setting


class RequestConflict(Refused):
    code = "request_conflict"
    status = 409


class DuplicateRequest(Refused):
    code = "duplicate_request"
    status = 409


class ModelNotAllowed(Refused):
    code = "model_not_allowed"
    status = 403


class KeyInvalid(Refused):
    code = "key_invalid"
    status = 401


class RequestInvalid(Refused):
    code = "request_invalid"
    status = 400


class NotFound(Refused):
    code = "not_found"
    status = 404


class LedgerUnavailable(Refused):
    code = "ledger_unavailable"
    status = 503
    retryable = True


class ProviderUnreachable(Refused):
    code = "provider_unreachable"
    status = 502
    retryable = True


class ProviderRefusedUs(Refused):
    code = "provider_refused_us"
    status = 502


class OutcomeUnknown(Refused):
    code = "outcome_unknown"
    status = 502


class InternalFault(Refused):
    code = "internal_fault"
    status = 500


class LedgerError(SpendgateError):
    """A write that the ledger refuses for a reason that is no caller's refusal."""


class SettlementConflict(LedgerError):
    """A reservation was already settled with another amount; nothing changed, the budget is stopped."""


class TransitionIllegal(LedgerError):
    """A reservation is not in a state from which this change is legal."""


class ReservationMissing(LedgerError):
    """There is no reservation of this id."""


class RevisionConflict(LedgerError):
    """The item was changed by somebody else since it was read."""


class BudgetMissing(LedgerError):
    """There is no budget of this path."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a configuration: where (a dotted place and, from a file, its line) and what."""

    place: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        at = f"line {self.line}: " if self.line is not None else ""
        where = f"{self.place}: " if self.place else ""
        return f"{at}{where}{self.message}"


class ConfigurationInvalid(SpendgateError):
    """A configuration with problems; all of them at once."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class LocalStoreFailed(SpendgateError):
    """The store of a local run did not start, or did not stop cleanly; the message says what to do."""


class AddressRefused(SpendgateError):
    """A provider's name leads to an address that it may not have; no connection was made."""


class AlertUndelivered(SpendgateError):
    """An alert could not be published; it stays in the outbox, and the next run tries again."""
