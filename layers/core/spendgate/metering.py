"""How a call ended: from what was seen of the answer to the resolution of its reservation. No I/O."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from spendgate.core.bound import Quote, settled_cost
from spendgate.core.budget import Amounts
from spendgate.core.money import Picodollars, usd_text
from spendgate.core.reservation import Reservation, Resolution
from spendgate.core.route import Candidate
from spendgate.core.run import active_milliseconds
from spendgate.core.usage import Usage, UsageReport

_REASON_LENGTH_MAX: Final = 200


def quote_for(reservation: Reservation, candidate: Candidate) -> Quote | None:
    """Return the pinned price of the candidate that served, None for an unpriced call."""
    return next((quote for quote in reservation.quotes if quote.candidate == candidate), None)


def answered(reservation: Reservation, candidate: Candidate, report: UsageReport, now: datetime) -> Resolution:
    """Return the settlement of an answer that came whole and said what it used; else that its outcome is unknown."""
    if report.in_full and report.finished:
        return _in_full(candidate, report)
    if report.usage is None or not report.finished:
        return unclear(candidate, report.problem or "the answer did not come to its end", report)
    quote = quote_for(reservation, candidate)
    if quote is not None and report.charge is None and (kind := _untold(reservation, quote, report.usage)):
        return _in_full(candidate, replace(report, partial=report.usage), f"the usage does not say what was {kind}")
    evidence = None
    try:
        cost = 0 if quote is None else settled_cost(report, report.usage, quote, start=reservation.created_at, end=now)
    except ValueError as error:
        if report.charge is None:
            # The answer used what no pinned rate covers: it cost something, and nobody here can say what.
            return unclear(candidate, f"the usage has no price: {error}", report)
        cost = Picodollars(report.charge)
        evidence = "the provider's own charge; the pinned price does not cover what was used"
    else:
        if report.charge is not None and quote is not None:
            # What it says is what it bills, also where that is less than its price list.
            evidence = f"the provider's own charge; by the pinned price it is {usd_text(cost)} USD"
            cost = Picodollars(report.charge)
    return Resolution(
        state="settled",
        reason="answered",
        actual=Amounts(
            usd=cost,
            requests=reservation.asked.requests,
            tokens=report.usage.total,
            tool_calls=reservation.asked.tool_calls,
            active_milliseconds=active_milliseconds(reservation, now),
        ),
        usage=report.usage,
        provider=candidate.provider,
        model=candidate.model,
        response_model=report.model,
        response_id=report.response_id,
        evidence=evidence,
    )


def _untold(reservation: Reservation, quote: Quote, usage: Usage) -> str | None:
    """Return the kind of media that was sent, has a dearer rate than text, and is in no count of the usage, None where none is.

    By the rate of text it would be settled below the bill (OpenAI's Responses has no count of sound: openai-python 3.57.0,
    ResponseUsage.InputTokensDetails).
    """
    cards = [card for row in quote.rows for card in (row.card, *(card for _, card in row.service))]
    rates = [one for card in cards for one in (card.rates, *(tier.rates for tier in card.tiers))]
    sound = usage.audio_input == 0 and any((one.audio_input or 0) > one.input for one in rates)
    image = usage.image_input == 0 and any((one.image_input or 0) > one.input for one in rates)
    untold = [kind for kind, is_untold in (("audio", sound), ("image", image)) if is_untold]
    return next((kind for kind in untold if kind in reservation.shape.features), None)


def _in_full(candidate: Candidate, report: UsageReport, reason: str | None = None) -> Resolution:
    """Return the charge of the whole reservation: what was used will never be known, and was at most that."""
    return Resolution(
        state="charged",
        reason=reason or report.problem or "the answer does not say what it used",
        usage=report.partial,
        provider=candidate.provider,
        model=candidate.model,
        response_model=report.model,
        response_id=report.response_id,
        evidence=f"the answer came whole, and {reason or 'does not say what it used'}",
    )


def refused_at_a_fee(reservation: Reservation, candidate: Candidate, reason: str, fee: Picodollars) -> Resolution:
    """Return the settlement of a refusal that costs a fee at most: the fee, since nobody can say that it does not."""
    asked = reservation.asked
    usd = Picodollars(0) if reservation.unpriced else fee
    return Resolution(
        state="settled",
        reason=reason[:_REASON_LENGTH_MAX],
        actual=Amounts(usd=usd, requests=asked.requests),
        provider=candidate.provider,
        model=candidate.model,
        evidence=f"a refusal by this provider costs {usd_text(fee)} USD at most, and is not proven to cost less",
    )


def unclear(candidate: Candidate | None, reason: str, report: UsageReport | None = None) -> Resolution:
    """Return that a call's outcome is unknown: its money stays, and what was seen so far is kept as a floor."""
    return Resolution(
        state="unknown",
        reason=reason[:_REASON_LENGTH_MAX],
        usage=None if report is None else report.partial or report.usage,
        provider=None if candidate is None else candidate.provider,
        model=None if candidate is None else candidate.model,
        response_model=None if report is None else report.model,
        response_id=None if report is None else report.response_id,
    )


def unbilled(candidate: Candidate | None, reason: str) -> Resolution:
    """Return that a call is proven to have cost nothing."""
    return Resolution(
        state="released",
        reason=reason[:_REASON_LENGTH_MAX],
        provider=None if candidate is None else candidate.provider,
        model=None if candidate is None else candidate.model,
    )
