"""What a gateway and its operators do in an afternoon, told to the tables by whichever version of the code runs it.

``python -m tests.store.story FILE`` writes down all that it left in both tables. ``golden_items`` holds what versions of before left, so
it uses only what every version since the first of them has.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spendgate.core.bound import Quote
from spendgate.core.budget import Amounts, BudgetPolicy, Limit, RunPolicy, Stop, new_run
from spendgate.core.counters import hold_of
from spendgate.core.event import Event
from spendgate.core.key import Key
from spendgate.core.price import PriceRow, RateCard, Rates, Terms, Tier
from spendgate.core.reservation import Reservation, Resolution
from spendgate.core.route import Candidate, Framing, Provider, Route
from spendgate.core.usage import Usage
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.tables import create_tables
from spendgate.store.transact import Timing
from spendgate.store.values import decode_item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

NOW: Final = datetime(2026, 11, 29, 23, 14, 30, tzinfo=UTC)
MODEL: Final = Candidate(provider="openai", model="house-model")
# By the state that each is left in.
IDS: Final = {
    name: f"01M8N6E99MVKD2ANNST5RW{number:04d}"
    for number, name in enumerate(("in_flight", "unknown", "settled", "released", "charged", "run"))
}
RUN: Final = "acme/triage/run:4471"
KEY_HASH: Final = "4c5bd0a9" * 8


def timing() -> Timing:
    """The machine's time, and randomness that counts, so that no two events have one id."""
    numbers = itertools.count(1)
    randomness: Callable[[int], bytes] = lambda size: next(numbers).to_bytes(size)  # noqa: E731
    return Timing(
        monotonic=time.monotonic, sleep=time.sleep, random=random.random, randomness=randomness, deadline_seconds=20.0
    )


def row() -> PriceRow:
    """A price with everything that a row may have."""
    rates = Rates(
        input=2_500_000, cache_read=1_250_000, cache_write=2_500_000, cache_write_long=5_000_000, output=10_000_000,
        audio_input=40_000_000, audio_output=80_000_000, image_input=5_000_000, image_output=30_000_000,
    )  # fmt: skip
    long = Tier(above=200_000, inclusive=False, rates=rates)
    card = RateCard(rates=rates, tiers=(long,))
    return PriceRow(
        provider=MODEL.provider, model=MODEL.model, valid_from=datetime(2026, 1, 1, tzinfo=UTC), card=card,
        service=(("priority", card),), factors=(("geo", "us", 1_100_000),), fees=(("web_search", 10_000_000_000),),
        context_tokens=128_000, output_tokens_max=16_384, aliases=("house",), source="https://example.com", checked="2026-11-01",
    )  # fmt: skip


def tell(ledger: Ledger, config: Config) -> None:
    """Do all of it."""
    _configure(ledger, config)
    for state in ("in_flight", "unknown", "settled", "released", "charged"):
        _call(ledger, IDS[state], "acme/triage", state)
    _call(ledger, IDS["run"], RUN, "in_flight")
    ledger.stop("acme/stopped", Stop(reason="ticket 311", at=NOW, by="ada"), _event("budget_stopped", "acme/stopped"))


def create(client: DynamoDBClient, name: str) -> tuple[Ledger, Config]:
    """Make the two tables."""
    create_tables(client, ledger=name, config=f"{name}-config")
    times = timing()
    return Ledger(name, client, times), Config(f"{name}-config", name, client, times)


def written(client: DynamoDBClient, table: str) -> list[dict[str, Any]]:
    """Return everything in a table, as plain values."""
    pages = client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    found = [decode_item(item) for page in pages for item in page["Items"]]
    return sorted(found, key=lambda item: (item["pk"], item["sk"]))


def _configure(ledger: Ledger, config: Config) -> None:
    usd: Callable[..., tuple[Limit, ...]] = lambda **of: tuple(  # noqa: E731
        Limit(measure="usd", window=window, maximum=maximum)  # type: ignore[arg-type]
        for window, maximum in of.items()
    )
    calls = Limit(measure="requests", window="minute", maximum=60)
    runs = RunPolicy(limits=usd(life=2 * 10**12), expire_after=timedelta(hours=24), stop_on_unknown=True)
    for policy in (
        BudgetPolicy(path="acme", rev=0, limits=usd(day=400 * 10**12, month=5000 * 10**12)),
        BudgetPolicy(
            path="acme/triage", rev=0, limits=(calls, *usd(day=40 * 10**12, hour=5 * 10**12, request=10**12)),
            default_output_tokens=8192, failover=True, runs=runs, allow=(("web_search", 5),), stop_on_unknown=False,
        ),
        BudgetPolicy(path="acme/observed", rev=0, limits=usd(day=10**12), mode="observe"),
        BudgetPolicy(path="acme/free", rev=0, unbudgeted=True),
        BudgetPolicy(path="acme/stopped", rev=0, limits=usd(day=10**12), stop_on_unknown=True),
    ):  # fmt: skip
        ledger.put_budget(policy, expected_rev=None, now=NOW, event=_event("budget_created", policy.path))
    config.put_provider(
        Provider(
            name="openai", dialect="openai", base_url="https://api.openai.com/v1", secret="env:OPENAI_API_KEY",
            framing=Framing(request=3), service_tier="default", prices="openai",
        ),
        _event("provider_created", "openai"),
    )  # fmt: skip
    config.add_price(row(), _event("price_added", row().id))
    config.put_route(Route(name="agent-model", candidates=(MODEL,)), _event("route_created", "agent-model"))
    config.put_key(
        Key(hash=KEY_HASH, name="triage-prod", budget="acme/triage", models=("agent-model",), expires_at=NOW + timedelta(days=30)),
        _event("key_created", "triage-prod"),
    )  # fmt: skip
    config.put_managed(frozenset({"key/triage-prod", "route/agent-model"}))


def _call(ledger: Ledger, reservation_id: str, leaf: str, state: str) -> None:
    policies = [one.policy for one in ledger.budgets_on(("acme", "acme/triage"))]
    if leaf == RUN:
        policies.append(new_run(policies[-1], RUN, NOW))
    asked = Amounts(usd=3_172_500_000, requests=1, tokens=1101, tool_calls=2)
    reservation = Reservation(
        id=reservation_id, state="in_flight", path=leaf, key_name="triage-prod", route="agent-model", dialect="openai",
        fingerprint="60d413b1" * 8, asked=asked, holds=tuple(hold_of(policy, NOW) for policy in policies),
        quotes=(Quote(candidate=MODEL, rows=(row(),), terms=Terms(factors=(("geo", 1_100_000),))),), created_at=NOW,
        deadline=NOW + timedelta(minutes=10), input_tokens_max=1045, output_tokens_max=56, output_cap=40, stamped=True,
        idempotency_key=f"step-{state}", stops_on_unknown=(RUN,) if leaf == RUN else (),
    )  # fmt: skip
    ledger.reserve(reservation, policies, NOW)
    usage = Usage(input_uncached=6, cache_read=3, output=12, fees=(("web_search", 1),))
    served: dict[str, Any] = {"provider": MODEL.provider, "model": MODEL.model}
    resolution = {
        "unknown": Resolution(state="unknown", reason="the stream was cut", response_id="chatcmpl-7", **served),
        "settled": Resolution(
            state="settled", reason="answered", actual=Amounts(usd=135_000_000, requests=1, tokens=21, tool_calls=1), usage=usage,
            response_model="house-model", response_id="chatcmpl-8", **served,
        ),
        "released": Resolution(state="released", reason="never connected"),
        "charged": Resolution(state="charged", reason="reconciled by an operator", evidence="no record", by="ada"),
    }.get(state)  # fmt: skip
    if resolution is not None:
        ledger.resolve(reservation_id, resolution, NOW + timedelta(seconds=2))


def _event(kind: str, subject: str) -> Event:
    return Event(kind=kind, subject=subject, at=NOW, by="ada", reason="a story", before=None, after={"as": "told"})


def main(file: str) -> None:
    """Write down what this version of the code leaves in tables of moto's."""
    import boto3  # noqa: PLC0415 - of no test
    from moto import mock_aws  # noqa: PLC0415

    with mock_aws():
        client: Any = boto3.client(
            "dynamodb", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
        )
        ledger, config = create(client, "story")
        tell(ledger, config)
        found = {"ledger": written(client, ledger.table), "config": written(client, config.table)}
    Path(file).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
