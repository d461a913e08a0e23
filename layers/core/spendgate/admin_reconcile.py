"""End a reservation by hand: what an operator may say, and what it comes to. Nothing here does I/O."""

from dataclasses import replace
from datetime import datetime
from typing import Final, Literal

from spendgate.admin_input import invalid
from spendgate.admin_view import instant_text
from spendgate.core.budget import Amounts
from spendgate.core.event import Event
from spendgate.core.money import MONEY_MAX, usd, usd_text
from spendgate.core.reservation import UNRESOLVED, Reservation, Resolution, State
from spendgate.core.route import Candidate
from spendgate.core.usage import UsageReport
from spendgate.errors import RefusalFacts, RequestConflict, TransitionIllegal
from spendgate.metering import answered

Action = Literal["settle", "release", "charge"]
# Not an outcome: the provider says which.
ASK: Final = "ask"

_ENDS: Final[dict[Action, State]] = {"settle": "settled", "release": "released", "charge": "charged"}


def parse_action(text: str) -> Action:
    for action in _ENDS:
        if text == action:
            return action
    raise invalid("action", f"one of {', '.join(_ENDS)}, {ASK}")


def parse_cost(action: Action, cost: str | None) -> int | None:
    """Return the cost of a settlement in picodollars; the other actions take none."""
    if action != "settle":
        if cost is not None:
            raise invalid("cost", f"goes with settle only; {action} takes none")
        return None
    if cost is None:
        raise invalid("cost", "settle needs what the call cost, in USD, such as 0.0125")
    try:
        amount = usd(cost)
    except ValueError as error:
        raise invalid("cost", str(error)) from error
    if amount > MONEY_MAX:
        raise invalid("cost", "is more than any call costs")
    return amount


def resolution(reservation: Reservation, action: Action, cost: int | None, *, evidence: str, by: str) -> Resolution:
    """Return how a reservation ends."""
    asked = reservation.asked
    # Of what is not money nobody brings a bill: it stays counted as it was reserved.
    settled = Amounts(usd=cost or 0, requests=asked.requests, tokens=asked.tokens, tool_calls=asked.tool_calls)
    return Resolution(
        state=_ENDS[action],
        reason="reconciled by an operator",
        actual=settled if action == "settle" else None,
        evidence=evidence,
        by=by,
    )


def may_resolve(reservation: Reservation, resolution: Resolution, now: datetime) -> bool:
    """Tell whether there is something to do: not where exactly this was done before. Otherwise TransitionIllegal."""
    if reservation.state not in UNRESOLVED and _is_outcome(reservation, resolution):
        return False
    check_open(reservation, now)
    return True


def check_open(reservation: Reservation, now: datetime) -> None:
    """TransitionIllegal for a reservation that is resolved, or still being answered."""
    if reservation.state not in UNRESOLVED:
        raise TransitionIllegal(
            f"reservation {reservation.id} is already {_outcome(reservation)}; what is resolved stays"
        )
    # Until its deadline a gateway may still be reading the answer: it settles by itself, with the true cost.
    if reservation.state == "in_flight" and now < reservation.deadline:
        raise TransitionIllegal(
            f"reservation {reservation.id} is still in flight, until {instant_text(reservation.deadline)} at most: "
            "it settles by itself, or can be reconciled after that"
        )


def not_askable(reservation: Reservation) -> RequestConflict:
    """Return the refusal of an admin API that has no way to a provider, with what a person can do instead."""
    where = f" as {reservation.response_id} of {reservation.provider}" if reservation.response_id else ""
    return RequestConflict(
        "this admin API has no gateway to ask a provider through: "
        f"look the call up{where}, and use spendgate reconcile settle",
        facts=RefusalFacts(reservation=reservation.id),
    )


def proven(reservation: Reservation, report: UsageReport, *, said: str, by: str) -> Resolution | None:
    """Return the settlement that a provider's own word proves; None where its price is not known."""
    candidate = Candidate(provider=reservation.provider or "", model=reservation.model or "")
    # The call was over by its deadline, whenever it is asked about: later rows do not touch it.
    found = answered(reservation, candidate, report, reservation.deadline)
    if found.state != "settled" or not reservation.quotes:
        return None
    evidence = f"{said} of {reservation.response_id}" + (f"; {found.evidence}" if found.evidence else "")
    return replace(found, reason="recovered from the provider", evidence=evidence, by=by)


def event(reservation: Reservation, resolution: Resolution, now: datetime) -> Event:
    """Return the event of a reconciliation; its reason is the evidence."""
    actual = {"settled": resolution.actual, "charged": reservation.asked}.get(resolution.state)
    return Event(
        kind=f"reservation_{resolution.state}",
        subject=reservation.id,
        at=now,
        by=resolution.by or "",
        reason=resolution.evidence,
        before={"state": reservation.state, "reserved": usd_text(reservation.asked.usd)},
        after={"state": resolution.state, "actual": usd_text((actual or Amounts()).usd)},
    )


def _is_outcome(reservation: Reservation, resolution: Resolution) -> bool:
    """Tell whether a resolved reservation already is what is asked for."""
    if reservation.state != resolution.state:
        return False
    return resolution.actual is None or (
        reservation.actual is not None and reservation.actual.usd == resolution.actual.usd
    )


def _outcome(reservation: Reservation) -> str:
    return (
        reservation.state
        if reservation.actual is None
        else f"{reservation.state} at {usd_text(reservation.actual.usd)} USD"
    )
