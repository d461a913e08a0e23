"""Loading the shipped prices: it only ever adds, all of it or what is left of it, and never over an operator's row."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from spendgate.catalogue import ROWS_MAX, addable, differs, is_stale, load, no_catalogue, rows_for
from spendgate.catalogue_files import all_rows, catalogue_in, rows_of
from spendgate.core.event import Event
from spendgate.core.price import PriceRow, RateCard, Rates
from spendgate.core.route import Provider
from spendgate.errors import ConfigurationInvalid, LedgerUnavailable
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger
from spendgate.store.transactions import STEPS_MAX
from tests.catalogue.shipped import PRICES

NOW = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)


def a_row(
    model: str = "m", *, provider: str = "acme", year: int = 2026, rate: int = 1, aliases: Sequence[str] = ()
) -> PriceRow:
    rates = Rates(input=rate, cache_read=rate, cache_write=rate, cache_write_long=rate, output=rate)
    return PriceRow(
        provider=provider,
        model=model,
        valid_from=datetime(year, 1, 1, tzinfo=UTC),
        card=RateCard(rates=rates),
        aliases=tuple(aliases),
        source="https://example.com",
        checked="2026-11-29",
    )


def an_event(row: PriceRow) -> Event:
    return Event(kind="price_added", subject=row.id, at=NOW, by="ana")


def test_the_whole_catalogue_loads_into_an_empty_table_and_again_without_a_change(
    config: Config, ledger: Ledger
) -> None:
    rows = all_rows(PRICES)

    first = load(config, rows, now=NOW, by="deploy")
    stored = config.all_prices()
    events = ledger.events("2026-11-30")
    again = load(config, rows, now=NOW, by="deploy")

    assert (first.added, first.kept, first.differing) == (len(rows), 0, ())
    assert stored == tuple(sorted(rows, key=lambda row: (row.provider, row.model, row.valid_from)))
    assert first.in_force == len({(row.provider, row.model) for row in rows if row.valid_from <= NOW})
    assert (again.added, again.kept, again.differing) == (0, len(rows), ())
    assert config.all_prices() == stored
    # One event a transaction, and none where nothing was added.
    assert {event.kind for event in events} == {"prices_loaded"}
    assert len(events) < len(rows) // 40
    assert ledger.events("2026-11-30") == events


def test_a_row_can_be_found_by_each_of_its_names(config: Config) -> None:
    load(config, rows_of(PRICES / "anthropic.yaml"), now=NOW, by="deploy")

    assert config.prices("anthropic", "claude-haiku-4-5-20251001") == config.prices("anthropic", "claude-haiku-4-5")
    assert config.prices("anthropic", "claude-haiku-4-5") != ()


def test_an_operators_correction_survives_every_load(config: Config) -> None:
    corrected, other = a_row("corrected", rate=7), a_row("other")
    config.add_price(corrected, an_event(corrected))

    report = load(config, [a_row("corrected"), other], now=NOW, by="deploy")
    again = load(config, [a_row("corrected"), other], now=NOW, by="deploy")

    assert (report.added, report.kept, report.differing) == (1, 1, (corrected.id,))
    assert (again.added, again.kept, again.differing) == (0, 2, (corrected.id,))
    assert config.prices("acme", "corrected") == (corrected,)


def test_a_price_that_is_announced_later_is_added_beside_the_old_one(config: Config) -> None:
    load(config, [a_row()], now=NOW, by="deploy")

    report = load(config, [a_row(), a_row(year=2027, rate=2)], now=NOW, by="deploy")

    assert (report.added, report.kept, report.in_force) == (1, 1, 1)
    assert [row.card.rates.input for row in config.prices("acme", "m")] == [1, 2]


@pytest.mark.parametrize("rows", [[], [a_row()] * (ROWS_MAX + 1)], ids=["nothing", "too much"])
def test_nothing_or_too_much_is_an_error(config: Config, rows: list[PriceRow]) -> None:
    with pytest.raises(ConfigurationInvalid, match="nothing was loaded"):
        load(config, rows, now=NOW, by="deploy")
    assert config.all_prices() == ()


class Ending(Config):
    """A store that goes away after a number of transactions."""

    __slots__ = ()
    left = 0

    def _transact(self, steps: Sequence[object]) -> None:
        Ending.left -= 1
        if Ending.left < 0:
            raise LedgerUnavailable("the store cannot be reached")
        assert len(steps) <= STEPS_MAX
        super()._transact(steps)  # type: ignore[arg-type]


@pytest.mark.parametrize("transactions", [0, 1, 2])
def test_a_load_that_ends_early_is_finished_by_the_next_one(config: Config, transactions: int) -> None:
    rows = [a_row(f"m{number}", aliases=[f"m{number}-a", f"m{number}-b"]) for number in range(90)]
    ending = Ending(config.table, config.ledger_table, config.client, config.timing)
    Ending.left = transactions

    with pytest.raises(LedgerUnavailable):
        load(ending, rows, now=NOW, by="deploy")
    report = load(config, rows, now=NOW, by="deploy")

    assert report.added + transactions * 33 == 90
    assert len(config.all_prices()) == 90
    assert config.prices("acme", "m89-b") == (rows[89],)


def test_a_row_that_comes_in_between_stays_as_it_is(config: Config) -> None:
    first = a_row("first", rate=9)

    class Racing(Config):
        """A store into which an operator writes while it is loaded."""

        __slots__ = ()

        def all_prices(self) -> tuple[PriceRow, ...]:
            found = super().all_prices()
            self.add_price(first, an_event(first))
            return found

    racing = Racing(config.table, config.ledger_table, config.client, config.timing)

    report = load(racing, [a_row("first"), a_row("second")], now=NOW, by="deploy")

    assert report.added == 1
    assert config.prices("acme", "first") == (first,)
    assert config.prices("acme", "second") == (a_row("second"),)


# -- names -----------------------------------------------------------------------------------------------------------


def test_a_shipped_alias_never_takes_the_name_of_an_operators_model(config: Config) -> None:
    own = a_row("house", rate=9)
    config.add_price(own, an_event(own))

    load(config, [a_row("big", aliases=["house", "big-1"])], now=NOW, by="deploy")
    load(config, [a_row("big", aliases=["house", "big-1"])], now=NOW, by="deploy")

    assert config.prices("acme", "house") == (own,)
    assert [row.model for row in config.prices("acme", "big-1")] == ["big"]


def test_a_shipped_model_never_takes_an_operators_alias() -> None:
    own = a_row("house", aliases=["big"])

    assert addable([a_row("big"), a_row("small")], [own]) == [a_row("small")]


def test_rows_of_a_model_outweigh_an_alias_of_another(config: Config) -> None:
    alias, own = a_row("big", aliases=["snapshot"]), a_row("snapshot", rate=9)
    for row in (alias, own):
        config.add_price(row, an_event(row))

    assert config.prices("acme", "snapshot") == (own,)


# -- which rows, and whether they still hold -------------------------------------------------------------------------


def a_provider(name: str, prices: str | None = None, kind: str | None = None) -> Provider:
    return Provider(name=name, dialect="openai", base_url="https://example.com", prices=prices, kind=kind)


def test_a_provider_gets_the_catalogue_that_it_names_or_that_of_its_name_or_its_kind() -> None:
    catalogue = catalogue_in(PRICES)
    shipped = catalogue("openai") or ()

    assert rows_for([a_provider("openai")], catalogue) == shipped
    assert rows_for([a_provider("mine", "openai")], catalogue) == tuple(
        replace(row, provider="mine") for row in shipped
    )
    assert {row.provider for row in rows_for([a_provider("grok", kind="xai")], catalogue)} == {"grok"}
    assert rows_for([a_provider("openai", kind="xai")], catalogue) == shipped
    assert rows_for([a_provider("openai", "none"), a_provider("unheard-of")], catalogue) == ()
    assert rows_for([a_provider("openai")], no_catalogue) == ()


def test_where_a_price_was_read_is_no_part_of_it() -> None:
    row = a_row()

    assert not differs(row, replace(row, source="", checked="2027-01-01", aliases=("n",)))
    assert not differs(
        replace(row, fees=(("a", 1), ("b", 2)), factors=(("geo", "us", 2), ("geo", "eu", 2))),
        replace(row, fees=(("b", 2), ("a", 1)), factors=(("geo", "eu", 2), ("geo", "us", 2))),
    )
    assert differs(row, replace(row, context_tokens=1))
    assert differs(row, a_row(rate=2))


@pytest.mark.parametrize(
    ("at", "stale"),
    [(datetime(2027, 1, 13, tzinfo=UTC), False), (datetime(2027, 1, 13, 0, 0, 1, tzinfo=UTC), True)],
)
def test_a_shipped_price_is_fresh_for_45_days(at: datetime, *, stale: bool) -> None:
    assert is_stale(a_row(), at) is stale


def test_a_shipped_price_that_nobody_checked_is_stale() -> None:
    assert is_stale(replace(a_row(), checked=""), NOW)
