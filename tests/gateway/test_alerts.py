"""What a refused call leaves behind for people; through a real gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from spendgate.alerts import store_of
from spendgate.core.alert import Alert
from spendgate.core.alert_text import message
from spendgate.outbox import Outbox
from spendgate.store.client import dynamodb
from spendgate.store.ledger import Ledger
from tests.conftest import a_timing
from tests.gateway.stand import Stand
from tests.store.builders import NOW

T = TypeVar("T")
# Room for one call of the usual size, and not for two.
TIGHT = '$: {limits: {usd: {day: "0.0003"}}}'


def outbox(stand: Stand) -> list[Alert]:
    """What this test's budgets left behind: an earlier test's write may still be tried again when this one begins."""
    return [one for one in store_of(stand.reader).outbox() if one.scope.split("/")[0] == stand.root]


def waiting(stand: Stand) -> list[tuple[str, str]]:
    return sorted((one.kind, one.scope.replace(stand.root, "$")) for one in outbox(stand))


def test_the_first_call_that_does_not_fit_is_told_and_of_the_next_hundred_none(stand: Stand) -> None:
    key = stand.open(TIGHT)
    assert stand.chat(key).status_code == 200
    assert waiting(stand) == []
    stand.store.operations.clear()
    assert {stand.chat(key).status_code for _ in range(5)} == {402}

    assert waiting(stand) == [("exceeded", "$")]
    assert stand.store.operations.count("TransactWriteItems") == 5 + 1
    (alert,) = outbox(stand)
    assert (
        "it may need 0.0002325 USD, and 0.000165 USD are left of the limit of 0.0003 USD a day" in message(alert).email
    )


def test_b57_a_store_that_takes_no_alert_costs_the_caller_nothing(stand: Stand) -> None:
    """B57: telling somebody must not fail the call, nor its refusal."""
    key = stand.open(TIGHT)
    stand.chat(key)
    stand.chat(key)
    stand.clock.turn(days=1)
    stand.chat(key)
    refused = 0

    def second_write(operation: str) -> bool:
        nonlocal refused
        refused += operation == "TransactWriteItems"
        return refused > 1

    with stand.store.failing(second_write):
        assert stand.chat(key).status_code == 402
    assert len(waiting(stand)) == 1
    assert stand.chat(key).status_code == 402
    assert len(waiting(stand)) == 2


def test_a_candidate_without_a_price_is_told_by_the_budget_that_asked_for_it(stand: Stand) -> None:
    routes = "  nobody: [{provider: gpt-host, model: demo}, {provider: gpt-host, model: nobody-knows}]\n"
    key = stand.open("$: {limits: {usd: {day: 1}}}", routes=routes)
    assert {stand.chat(key, model="nobody").status_code for _ in range(3)} == {402}

    (alert,) = outbox(stand)
    assert (alert.kind, alert.scope) == ("unpriced", stand.root)
    assert alert.facts == {"route": "nobody", "provider": "gpt-host", "model": "nobody-knows"}


def test_a_run_that_is_used_up_is_told_by_its_budget(stand: Stand) -> None:
    key = stand.open('$: {limits: {usd: {day: 1}}, runs: {limits: {usd: {life: "0.0003"}}}}')
    for run in ("1", "2"):
        statuses = [stand.chat(key, headers={"x-spendgate-run": run}).status_code for _ in range(2)]
        assert statuses == [200, 402]

    assert waiting(stand) == [("run_exceeded", "$")]


# -- what is remembered ----------------------------------------------------------------------------------------------------


def an_alert(hours: int | None = None) -> Alert:
    """A warning of a day; where a number is given, of a rolling hour, so many hours on."""
    at = NOW + timedelta(hours=hours or 0)
    rearms_at = None if hours is None else at + timedelta(hours=1)
    return Alert(kind="warn", scope="acme", mark="m", at=at, severity="warning", facts={}, rearms_at=rearms_at)


def at_once(call: Callable[[], T]) -> Awaitable[T]:
    """Do the store's work here and now."""
    done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    done.set_result(call())
    return done


def told(ledger: Ledger, *alerts: Alert) -> list[str]:
    """Tell one alert after the other, and return what was logged."""
    lines: list[str] = []
    outbox = Outbox(ledger, at_once, lambda line, **_: lines.append(line))

    async def tell() -> None:
        for one in alerts:
            await outbox.tell(one, None)

    asyncio.run(tell())
    return lines


def test_a_gateway_posts_once_and_does_not_ask_again(ledger: Ledger) -> None:
    lines: list[str] = []
    outbox = Outbox(ledger, at_once, lambda line, **_: lines.append(line))
    store = store_of(ledger)

    async def tell_twice() -> None:
        await outbox.tell(an_alert())
        # Were it posted again, it would wait again: its mark is gone with the table's other items.
        for key in (
            {"pk": {"S": "ALERT#MARK#acme"}, "sk": {"S": "warn#m"}},
            {"pk": {"S": "ALERT#OUTBOX"}, "sk": {"S": an_alert().name}},
        ):
            ledger.client.delete_item(TableName=ledger.table, Key=key)
        await outbox.tell(an_alert())

    asyncio.run(tell_twice())

    assert store.outbox() == ()
    assert lines == []


def test_a_store_that_is_away_is_tried_by_the_next_refusal(ledger: Ledger) -> None:
    client = dynamodb(region="us-east-1", endpoint_url="http://127.0.0.1:9")
    away = Ledger(ledger.table, client, a_timing(deadline_seconds=0.05))

    assert told(away, an_alert(), an_alert()) == ["an alert could not be posted"] * 2


def test_a_rolling_hour_is_posted_again_after_an_hour(ledger: Ledger) -> None:
    told(ledger, an_alert(0), an_alert(0), an_alert(1))

    assert [one.at for one in store_of(ledger).outbox()] == [NOW + timedelta(hours=1)]
