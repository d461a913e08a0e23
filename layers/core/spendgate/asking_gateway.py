"""Asking a provider through the gateway's function, for functions that may not read its secret: the question and the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from spendgate.core.reservation import Reservation
from spendgate.core.route import Provider
from spendgate.core.usage import UsageReport
from spendgate.errors import LedgerUnavailable
from spendgate.store.items import decode_usage, encode_usage

if TYPE_CHECKING:
    # What it names loads what speaks HTTP, which most minutes of a sweeper need not.
    from spendgate.providers.recovery import Recover, Recovered

_TEXTS: Final = ("model", "service_tier", "geo", "speed", "response_id")


def told(report: UsageReport | None, said: str) -> Mapping[str, Any]:
    """Return the gateway's answer: a whole report, or None, and the reason in a few words."""
    if report is None or report.usage is None:
        return {"report": None, "said": said}
    texts = {name: getattr(report, name) for name in _TEXTS}
    numbers = {"charge": report.charge, "in_full": report.in_full, "finished": report.finished}
    return {"report": {"usage": encode_usage(report.usage), **texts, **numbers}, "said": said}


def through_gateway(ask: Callable[[str], Mapping[str, Any]]) -> Recover:
    """Return what asks a provider; ``ask`` has the gateway do it, of a reservation's id, and returns its answer."""

    def recover(_: Provider, reservation: Reservation) -> Recovered:
        return read(ask(reservation.id))

    return recover


def read(answer: Mapping[str, Any]) -> Recovered:
    """Return what a gateway's answer says; LedgerUnavailable for what is none."""
    from spendgate.providers.recovery import Recovered  # noqa: PLC0415 - as above

    try:
        record, said = answer["report"], answer["said"]
        report = None if record is None else _report(record)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise LedgerUnavailable("the gateway function answered what is no answer") from error
    return Recovered(report=report, said=str(said))


def _report(record: Mapping[str, Any]) -> UsageReport:
    charge = record["charge"]
    if not (charge is None or (type(charge) is int and charge >= 0)) or record["finished"] is not True:
        raise ValueError("not a whole report")
    texts = {name: record[name] for name in _TEXTS}
    if not all(text is None or isinstance(text, str) for text in texts.values()):
        raise ValueError("not a report")
    return UsageReport(
        usage=decode_usage(record["usage"]), finished=True, charge=charge, in_full=record["in_full"] is True, **texts
    )
