"""What a history begins with: providers and prices, a tree of budgets, and keys."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from random import Random
from typing import TYPE_CHECKING, Any, Final

from spendgate.core.budget import BudgetPolicy, Limit, RunPolicy
from spendgate.core.event import Event
from spendgate.core.key import Key
from spendgate.core.price import PriceRow, RateCard, Rates, Tier
from spendgate.core.route import Candidate, Route
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.transact import Timing
from tests.simulation.bills import CONTEXT, IMAGE_MAX, LONG_ABOVE, LONG_PERCENT, PLACES, SEARCH_FEE, TIERS, Tariff
from tests.simulation.providers import PROVIDERS
from tests.simulation.records import CONFIG, LEDGER
from tests.simulation.wants import RICH

if TYPE_CHECKING:
    from tests.simulation.world import World

# Picodollars a token, in and out: 2.50 and 10 USD a million, and a dearer model.
PLAIN: Final = (2_500_000, 10_000_000)
DEAR: Final = (5_000_000, 25_000_000)
CHEAP: Final = (1_000_000, 30_000_000)
_LONG_AGO: Final = datetime(2026, 1, 1, tzinfo=UTC)
_ROUTES: Final = {
    "gpt": (("gpt", "m"),),
    "oai": (("oai", "m"),),
    "router": (("router", "m"),),
    "two": (("gpt", "m"), ("router", "dear")),
    "bare": (("gpt", "bare"),),
    "claude": (("claude", "m"),),
    "claude-there": (("claude-there", "anthropic.claude-m"),),
    "gemini": (("gemini", "m"),),
    "converse": (("converse", "anthropic.claude-m"),),
    # Another name of a model, under which its rows are found; and one that is another model's own name too.
    "latest": (("gpt", "latest"),),
    "dear": (("gpt", "dear"),),
    "gpt-rich": (("gpt", "rich"),),
    "oai-rich": (("oai", "rich"),),
    "claude-rich": (("claude", "rich"),),
    "gemini-rich": (("gemini", "rich"),),
    "converse-rich": (("converse", "anthropic.claude-rich"),),
}
_ALIASES: Final = {"m": ("latest", "dear")}
# How often a call may search where no budget says anything.
ALLOWED: Final = {"gpt-rich": 1, "oai-rich": 2, "claude-rich": 2, "gemini-rich": 2}
# What a call of middling size is bounded by; limits are some of these.
_UNIT: Final = 3_000_000_000
_PATHS: Final = ("a", "a/b", "a/b/c", "a/d", "e", "e/f")


@dataclass(slots=True)
class Opened:
    """A key that callers have."""

    secret: str
    name: str
    budget: str
    minted: bool = False

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.secret.encode()).hexdigest()


@dataclass(slots=True)
class Founded:
    """What was made, and what callers and operators know of it."""

    paths: list[str]
    keys: list[Opened]
    with_runs: set[str] = field(default_factory=set)
    # (provider, model) to the instants from which tariffs are in force.
    prices: dict[tuple[str, str], list[tuple[datetime, Tariff]]] = field(default_factory=dict)


def found(world: World) -> Founded:
    """Write what a history begins with; nothing goes wrong yet."""
    random, now = world.random, world.epoch - timedelta(hours=2)
    timing = Timing(monotonic=lambda: 0.0, sleep=lambda _: None, random=lambda: 0.0, randomness=world.random.randbytes)
    ledger, config = Ledger(LEDGER, world.store, timing), Config(CONFIG, LEDGER, world.store, timing)
    made = Founded(paths=[], keys=[])
    event = Event(kind="founded", subject="all", at=now, by="the simulation")
    for provider in PROVIDERS:
        config.put_provider(provider, event)
    for name, candidates in _ROUTES.items():
        listed = tuple(Candidate(provider=provider, model=model) for provider, model in candidates)
        allow = (("web_search", ALLOWED[name]),) if name in ALLOWED else ()
        config.put_route(Route(name=name, candidates=listed, allow=allow), event)
        for one in listed:
            if one.model not in ("bare", "latest") and (one.provider, one.model) not in made.prices:
                add_price(config, made, one, DEAR if one.model == "dear" else PLAIN, _LONG_AGO, event)
    for path in _PATHS[: random.randrange(2, len(_PATHS) + 1)]:
        policy = _policy(random, path)
        ledger.put_budget(policy, expected_rev=None, now=now)
        made.paths.append(path)
        if policy.runs is not None:
            made.with_runs.add(path)
        for number in range(random.choice((1, 1, 2))):
            secret = f"sg-{random.randbytes(24).hex()}"
            opened = Opened(secret, f"{path.replace('/', '-')}-{number}", path)
            models = ("gpt", "claude", "gemini") if random.random() < 0.1 else ()
            key = Key(hash=opened.hash, name=opened.name, budget=path, models=models)
            config.put_key(key, event)
            made.keys.append(opened)
    return made


def add_price(
    config: Config, made: Founded, one: Candidate, rates: tuple[int, int], at: datetime, event: Event
) -> None:
    """Add a price row, and write down when it comes into force."""
    tariff = Tariff(*rates, rich=one.model.endswith(RICH))
    service = tuple((tier, _card(tariff, percent)) for tier, percent in TIERS.items() if tier != "standard")
    row = PriceRow(
        provider=one.provider,
        model=one.model,
        valid_from=at,
        card=_card(tariff, 100),
        service=service if tariff.rich else (),
        factors=(("geo", "us", PLACES["us"] * 10_000),) if tariff.rich and one.provider == "claude" else (),
        fees=(("web_search", SEARCH_FEE),) if tariff.rich else (),
        context_tokens=CONTEXT if tariff.rich else 100_000,
        output_tokens_max=2048,
        image_tokens_max=IMAGE_MAX if tariff.rich else None,
        aliases=_ALIASES.get(one.model, ()),
    )
    made.prices.setdefault((one.provider, one.model), []).append((at, tariff))
    config.add_price(row, event)


def _card(tariff: Tariff, percent: int) -> RateCard:
    """Return the rates of a service tier as a price row has them."""
    plain = Rates(
        input=tariff.fresh * percent // 100,
        cache_read=tariff.read * percent // 100,
        cache_write=tariff.written * percent // 100,
        cache_write_long=tariff.written_long * percent // 100,
        output=tariff.out * percent // 100,
        audio_input=tariff.sound * percent // 100 if tariff.rich else None,
    )
    if not tariff.rich:
        return RateCard(rates=plain)
    return RateCard(rates=plain, tiers=(Tier(above=LONG_ABOVE, rates=_dearer(plain)),))


def _dearer(rates: Rates) -> Rates:
    return Rates(
        input=rates.input * LONG_PERCENT // 100,
        cache_read=rates.cache_read * LONG_PERCENT // 100,
        cache_write=rates.cache_write * LONG_PERCENT // 100,
        cache_write_long=rates.cache_write_long * LONG_PERCENT // 100,
        output=rates.output * LONG_PERCENT // 100,
        audio_input=(rates.audio_input or 0) * LONG_PERCENT // 100,
    )


def tariff_at(made: Founded, provider: str, model: str, at: datetime) -> Tariff:
    """Return the tariff in force."""
    return max((row for row in _rows(made, provider, model) if row[0] <= at), key=itemgetter(0))[1]


def tariffs_between(made: Founded, provider: str, model: str, start: datetime, end: datetime) -> Iterable[Tariff]:
    """Return all tariffs in force at some time between."""
    yield tariff_at(made, provider, model, start)
    rows = _rows(made, provider, model)
    yield from (tariff for at, tariff in rows if start < at <= end + timedelta(minutes=5))


def _rows(made: Founded, provider: str, model: str) -> list[tuple[datetime, Tariff]]:
    """Return the rows of a model, by its own name before another's other name; any where it has no price."""
    named = next((name for name, others in _ALIASES.items() if model in others), model)
    nobody = [(_LONG_AGO, Tariff(*PLAIN))]
    return made.prices.get((provider, model)) or made.prices.get((provider, named)) or nobody


def limits_of(random: Random, scale: int) -> tuple[Limit, ...]:
    """Draw limits: some tight, some wide, now and then none."""
    found: dict[tuple[str, str], Limit] = {}
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        measure: Any = random.choice(("usd", "usd", "usd", "usd", "requests", "tokens", "tool_calls"))
        windows = ("request", "minute", "hour", "hour", "day", "month", "life")
        window: Any = random.choice(windows)
        most = {"usd": _UNIT * scale, "requests": 4 * scale, "tokens": 1500 * scale, "tool_calls": 2 * scale}[measure]
        least = 0 if random.random() < 0.1 else most // 3
        found[measure, window] = Limit(measure=measure, window=window, maximum=random.randrange(least, most + 1))
    return tuple(found.values())


def _policy(random: Random, path: str) -> BudgetPolicy:
    scale = {0: 30, 1: 12, 2: 6}[path.count("/")] * random.choice((1, 1, 10))
    policy = BudgetPolicy(
        path=path,
        rev=0,
        limits=limits_of(random, scale),
        mode="observe" if random.random() < 0.08 else "enforce",
        default_output_tokens=random.choice((None, 200)),
        failover=random.random() < 0.3,
        stop_on_unknown=random.random() < 0.06,
        allow=random.choice(((), (), (("web_search", 2),), (("web_search", 0),))),
    )
    if random.random() < 0.4:
        policy = replace(policy, runs=_runs(random))
    if not policy.limits and random.random() < 0.7:
        policy = replace(policy, unbudgeted=True)
    return policy


def _runs(random: Random) -> RunPolicy:
    return RunPolicy(
        limits=(
            *limits_of(random, 4),
            *((Limit(measure="active_milliseconds", window="life", maximum=60_000),) if random.random() < 0.3 else ()),
        ),
        expire_after=random.choice((None, timedelta(minutes=10), timedelta(hours=24))),
        stop_on_unknown=random.random() < 0.3,
        elapsed_max=random.choice((None, None, timedelta(minutes=5))),
        stop_on_refusal=random.random() < 0.3,
        delegate=random.choice((0, 1, 2)),
    )
