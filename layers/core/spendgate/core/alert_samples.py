"""One made-up alert of each kind, so that people can see where alerts arrive; all figures are invented."""

from datetime import datetime, timedelta
from typing import Final

from spendgate.core.alert import (
    Alert,
    AlertPolicy,
    CatalogueState,
    bound_violated,
    budget_alerts,
    catalogue_stale,
    exceeded,
    provider_spend_limit,
    stopped,
    unknown_money,
    unpriced,
)
from spendgate.core.block import PLAIN, Block
from spendgate.core.budget import Amounts, BudgetPolicy, BudgetState, Limit, Stop
from spendgate.core.money import usd
from spendgate.core.policy import Denied, verdict
from spendgate.core.reservation import Reservation, new_id
from spendgate.core.route import Candidate
from spendgate.core.window import counter

BUDGET: Final = "acme/search/triage"
RUN: Final = f"{BUDGET}/run:4471"
_CANDIDATE: Final = Candidate(provider="openai", model="house-model")


def samples(now: datetime) -> tuple[Alert, ...]:
    """Return an alert of each kind, made as real ones are."""
    month = Limit(measure="usd", window="month", maximum=usd("40"))
    spent = _state(BUDGET, month, settled=usd("32.104817"), reserved=usd("1.2"), now=now)
    full = _state(BUDGET, month, settled=usd("39.97501"), reserved=usd("0.02"), now=now)
    life = Limit(measure="usd", window="life", maximum=usd("2"))
    run = _state(RUN, life, settled=usd("1.93"), reserved=0, now=now)
    refusals = [_refusal(state, usd("0.1025"), now) for state in (full, run)]
    found = [
        *budget_alerts(spent, AlertPolicy(), now),
        *(told for denied in refusals if (told := exceeded(denied, now)) is not None),
        stopped(BUDGET, Stop(reason="the nightly job loops", at=now - timedelta(minutes=4), by="ada"), now),
        bound_violated(_block(now), now),
        *unknown_money([_lost(now)], now),
        unpriced(BUDGET, route="agent-model", candidate=_CANDIDATE, now=now),
        provider_spend_limit(_CANDIDATE, limit="insufficient_quota", path=BUDGET, now=now),
        *catalogue_stale(CatalogueState(rows=2214, stale=1630, age_days=61), now),
    ]
    return tuple(found)


def _state(path: str, limit: Limit, *, settled: int, reserved: int, now: datetime) -> BudgetState:
    name = counter(limit.measure, limit.window, now)
    return BudgetState(
        policy=BudgetPolicy(path=path, rev=1, limits=(limit,)),
        reserved=reserved,
        counters={name: settled + reserved},
        created_at=now - timedelta(days=40),
    )


def _refusal(state: BudgetState, asked: int, now: datetime) -> Denied:
    denied = verdict(state, Amounts(usd=asked, requests=1), now)
    if not isinstance(denied, Denied):
        raise TypeError("a sample that is admitted is no refusal")
    return denied


def _block(now: datetime) -> Block:
    return Block(
        candidate=_CANDIDATE,
        feature="image",
        reservation=new_id(now, bytes(10)),
        budget=BUDGET,
        dialect="openai",
        at=now - timedelta(minutes=2),
        reserved=usd("0.0031725"),
        billed=usd("0.004135"),
        shape=PLAIN,
    )


def _lost(now: datetime) -> Reservation:
    at = now - timedelta(hours=3)
    return Reservation(
        id=new_id(at, bytes(10)),
        state="unknown",
        path=BUDGET,
        key_name="triage-prod",
        route="agent-model",
        dialect="openai",
        fingerprint="",
        asked=Amounts(usd=usd("0.4125"), requests=1),
        holds=(),
        quotes=(),
        created_at=at,
        deadline=at + timedelta(minutes=15),
        provider="openai",
    )
