"""Calls over the ends of days and months and through a rolling hour, against a naive model; the clock is a parameter."""

import asyncio
import io
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import httpx
import pytest

from spendgate.admin import Admin
from spendgate.asgi import create_app
from spendgate.core.money import usd, usd_text
from spendgate.local.demo_book import Behaviour, DemoBook
from spendgate.local.demo_provider import create_app as create_demo_provider
from spendgate.local.serving import served
from spendgate.observability import JsonLog
from spendgate.settings import Settings
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.wiring import wire
from tests.operators import Clock
from tests.scenarios.configurations import configuration, key_of

LEAF = "acme/team"
OUTPUT_TOKENS = 40
HOUR = timedelta(hours=1)
HOUR_AT_MOST = timedelta(minutes=65)
MOMENT = timedelta(microseconds=50)


@dataclass
class World:
    """A gateway on a clock that is turned, its provider's book, and what a list of (time, cost) says."""

    clock: Clock
    http: httpx.AsyncClient
    book: DemoBook
    ledger: Ledger
    admin: Admin
    url: str
    spent: list[tuple[datetime, int]] = field(default_factory=list)

    def limit(self, limits: dict[str, str]) -> None:
        """Set the limits of the two budgets, each in the file's own words."""
        text = configuration(self.url, dict.fromkeys(limits, 1))
        for words in limits.values():
            text = text.replace('{life: "0.000000000001"}', words, 1)
        assert self.admin.apply(text, by="test")["complete"]

    async def call(self, output_tokens: int = OUTPUT_TOKENS) -> httpx.Response:
        """Make a call, and write its cost down."""
        at, billed = self.clock.now, self.book.billed_picodollars
        body = {
            "model": "demo",
            "max_tokens": OUTPUT_TOKENS,
            "messages": [{"role": "user", "content": f"[[output:{output_tokens:02}]] a question"}],
        }
        answer = await self.http.post("/v1/chat/completions", json=body, headers={"x-api-key": key_of(LEAF)})
        if answer.status_code == 200:
            self.spent.append((at, self.book.billed_picodollars - billed))
        else:
            assert (answer.status_code, answer.json()["error"]["code"]) == (402, "over_budget")
            assert self.book.billed_picodollars == billed
        return answer

    def sum(self, counts: Callable[[datetime], bool]) -> int:
        """Return what was spent at the instants that count."""
        return sum(cost for at, cost in self.spent if counts(at))


@asynccontextmanager
async def _world(ledger: Ledger, config: Config) -> AsyncIterator[World]:
    clock, book = Clock(), DemoBook()
    settings = Settings(
        ledger_table=ledger.table,
        config_table=config.table,
        endpoint_url=ledger.client.meta.endpoint_url,
        ledger_deadline_seconds=20,
    )
    log = JsonLog(stream=io.StringIO())
    wired = wire(settings, environ={}, log=log, clock=clock)
    admin = Admin(wired.ledger, wired.config, clock=clock, randomness=secrets.token_bytes, loopback_http=True)
    transport = httpx.ASGITransport(create_app(wired.gateway, settings=settings, log=log))
    try:
        async with (
            served(create_demo_provider(book=book)) as url,
            httpx.AsyncClient(transport=transport, base_url="http://gateway", timeout=60) as http,
        ):
            yield World(clock=clock, http=http, book=book, ledger=wired.ledger, admin=admin, url=url)
    finally:
        await wired.gateway.aclose(grace_seconds=5)
        wired.ledger.client.close()


def _in_world(ledger: Ledger, config: Config, story: Callable[[World], Awaitable[None]]) -> None:
    async def told() -> None:
        async with _world(ledger, config) as world:
            await story(world)

    asyncio.run(told())


async def _bound(world: World) -> int:
    """Return what each call reserves."""
    world.limit({"acme": "{life: 1}", LEAF: "{life: 1}"})
    reserved = usd((await world.call()).headers["x-spendgate-reserved-usd"])
    world.spent.clear()
    return reserved


BOUNDARIES = {
    "midnight": datetime(2026, 11, 30, tzinfo=UTC),
    "a-month-of-31-days": datetime(2027, 2, 1, tzinfo=UTC),
    "a-short-february": datetime(2027, 3, 1, tzinfo=UTC),
    "into-a-leap-day": datetime(2028, 2, 29, tzinfo=UTC),
    "out-of-a-leap-day": datetime(2028, 3, 1, tzinfo=UTC),
    "new-year": datetime(2027, 1, 1, tzinfo=UTC),
}


@pytest.mark.parametrize("boundary", BOUNDARIES.values(), ids=BOUNDARIES)
def test_a_day_and_a_month_begin_at_their_instant_and_not_before(
    ledger: Ledger, config: Config, boundary: datetime
) -> None:
    async def story(world: World) -> None:
        # Far from the boundary, or the probe's cost would count in its windows.
        world.clock.now = boundary - timedelta(days=70)
        bound = await _bound(world)
        day, month = 3 * bound, 5 * bound
        world.limit({"acme": f'{{month: "{usd_text(month)}"}}', LEAF: f'{{day: "{usd_text(day)}"}}'})

        instants = [
            *[boundary - timedelta(days=1) + timedelta(hours=hour) for hour in range(0, 24, 6)],
            *[boundary - MOMENT] * 2,
            *[boundary] * 5,
            boundary + timedelta(hours=23, minutes=59, seconds=59),
            *[boundary + timedelta(days=1)] * 5,
        ]
        statuses = [await _call_at(world, at, bound, day=day, month=month) for at in instants]
        assert {200, 402} == set(statuses)
        # Spent out a moment before the day ends, and open again in its first moment.
        assert (statuses[5], statuses[6]) == (402, 200)

    _in_world(ledger, config, story)


async def _call_at(world: World, at: datetime, bound: int, *, day: int, month: int) -> int:
    """Call at an instant; AssertionError unless the answer is that of the naive model."""
    world.clock.now = at
    of_day = world.sum(lambda then: then.date() == at.date())
    of_month = world.sum(lambda then: (then.year, then.month) == (at.year, at.month))
    fits = of_day + bound <= day and of_month + bound <= month
    answer = await world.call()
    assert (answer.status_code == 200) == fits, (at, of_day, of_month)
    if not fits:
        window = answer.json()["error"]["limit"]["window"]
        assert window == ("month" if of_month + bound > month else "day")
        start = at.replace(hour=0, minute=0, second=0, microsecond=0)
        ends = {"day": start + timedelta(days=1), "month": (start.replace(day=28) + timedelta(days=4)).replace(day=1)}
        assert datetime.fromisoformat(answer.json()["error"]["resets_at"]) == ends[window]
    return answer.status_code


def test_a_call_over_midnight_counts_on_the_day_it_was_reserved(ledger: Ledger, config: Config) -> None:
    async def story(world: World) -> None:
        world.limit({"acme": "{month: 1}", LEAF: "{day: 1}"})
        world.clock.now = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)
        world.book.behave(Behaviour(name="slow", delay_seconds=0.3), calls=1)
        calling = asyncio.create_task(world.call())
        while world.book.hits == 0:  # noqa: ASYNC110 - the provider has no event to wait for
            await asyncio.sleep(0.01)
        world.clock.now = datetime(2026, 12, 1, 0, 0, 1, tzinfo=UTC)
        cost = usd((await calling).headers["x-spendgate-cost-usd"])

        for path in ("acme", LEAF):
            state = world.ledger.budget(path)
            assert state is not None
            counters = {name: value for name, value in state.counters.items() if value and name.startswith("usd.")}
            assert counters == {"usd.day.2026-11-30": cost, "usd.month.2026-11": cost, "usd.life": cost}

    _in_world(ledger, config, story)


def test_a_rolling_hour_stepped_minute_by_minute_never_holds_more_than_its_limit_and_gives_room_back(
    ledger: Ledger, config: Config
) -> None:
    async def story(world: World) -> None:
        chance = random.Random(20261129)  # noqa: S311 - a seed, not a secret
        world.clock.now = datetime(2026, 11, 30, 22, 58, 30, tzinfo=UTC)
        bound = await _bound(world)
        limit = 12 * bound
        world.limit({"acme": "{life: 1}", LEAF: f'{{hour: "{usd_text(limit)}"}}'})
        statuses = []
        for _ in range(200):
            world.clock.turn(minutes=1)
            statuses.append(await _call_in_the_hour(world, bound, limit, chance.randint(10, OUTPUT_TOKENS)))
        # The hour was full and had room again, more than once: over midnight and the end of a month too.
        turns = sum(before != after for before, after in pairwise(statuses))
        assert turns >= 4
        audit = world.admin.audit()
        assert audit["clean"], audit

    _in_world(ledger, config, story)


async def _call_in_the_hour(world: World, bound: int, limit: int, output_tokens: int) -> int:
    """Call now; AssertionError where the true hour is exceeded, or where room is kept for more than 65 minutes."""
    now = world.clock.now
    of_hour = world.sum(lambda then: then > now - HOUR)
    at_most = world.sum(lambda then: then > now - HOUR_AT_MOST)
    status = (await world.call(output_tokens)).status_code
    if of_hour + bound > limit:
        assert status == 402, now
    if at_most + bound <= limit:
        assert status == 200, now
    return status
