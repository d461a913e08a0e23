"""The configuration's table, and what of it is strict: keys and the revisions of their budgets."""

from dataclasses import replace
from datetime import timedelta

import pytest

from spendgate.core.key import Key
from spendgate.core.price import RateCard, Rates, Tier
from spendgate.core.route import Candidate, Framing, Provider, Route
from spendgate.errors import BudgetMissing, RevisionConflict
from spendgate.store.config import Config
from spendgate.store.ledger import Ledger, PolicyStale
from tests.builders import a_price_row
from tests.store.builders import (
    NOW,
    a_policy,
    a_reservation,
    a_row,
    an_event,
    opened,
    path_of,
    rows,
)


@pytest.fixture
def ledger(either: Ledger) -> Ledger:
    """A ledger on each of the emulators."""
    return either


def a_key(name: str = "triage", *, budget: str = "acme/b", **rest: object) -> Key:
    return replace(Key(hash=f"{name:0>64}", name=name, budget=budget), **rest)  # type: ignore[arg-type]


@pytest.fixture
def budgets(ledger: Ledger) -> None:
    """Three budgets at revision 1."""
    opened(ledger, a_policy("acme"), a_policy("acme/b"))
    opened(ledger, a_policy("other"))


def revisions(ledger: Ledger) -> dict[str, int]:
    return {state.policy.path: state.policy.rev for state in ledger.budgets()}


def test_a_key_comes_back_as_it_was_written(config: Config, budgets: None) -> None:
    full = a_key("full", models=("agent-model", "other"), expires_at=NOW, revoked_at=NOW + timedelta(seconds=1))

    config.put_key(a_key(), an_event("key_created"))
    config.put_key(full, an_event("key_created"))

    assert config.key(a_key().hash) == a_key()
    assert config.key("f" * 64) is None
    assert config.keys() == (full, a_key())


def test_a_key_raises_the_revision_of_its_budget_and_of_no_other(config: Config, ledger: Ledger, budgets: None) -> None:
    config.put_key(a_key(), an_event("key_created"))

    assert revisions(ledger) == {"acme": 1, "acme/b": 2, "other": 1}
    assert ledger.events("2026-11-29") == (an_event("key_created"),)


def test_a_key_that_moves_raises_the_revision_of_the_budget_it_leaves_too(
    config: Config, ledger: Ledger, budgets: None
) -> None:
    config.put_key(a_key(), an_event())

    config.put_key(a_key(budget="other"), an_event())

    assert revisions(ledger) == {"acme": 1, "acme/b": 3, "other": 2}
    assert config.keys() == (a_key(budget="other"),)


def test_a_revoked_key_cannot_reserve_with_what_was_cached(config: Config, ledger: Ledger, budgets: None) -> None:
    config.put_key(a_key(), an_event())
    cached = path_of(ledger, "acme/b")

    config.revoke_key(a_key(), NOW, an_event("key_revoked"))

    with pytest.raises(PolicyStale):
        ledger.reserve(a_reservation(cached), cached, NOW)
    assert config.key(a_key().hash) == a_key(revoked_at=NOW)


def test_revoking_by_an_old_copy_revokes_the_key_as_it_is(config: Config, ledger: Ledger, budgets: None) -> None:
    config.put_key(a_key(), an_event())
    config.put_key(a_key(budget="other", models=("agent-model",)), an_event())
    before = revisions(ledger)

    config.revoke_key(a_key(), NOW, an_event("key_revoked"))

    assert config.keys() == (a_key(budget="other", models=("agent-model",), revoked_at=NOW),)
    assert revisions(ledger)["other"] == before["other"] + 1


def test_a_change_made_up_before_a_revocation_does_not_undo_it(config: Config, ledger: Ledger, budgets: None) -> None:
    config.put_key(a_key(), an_event())
    config.revoke_key(a_key(), NOW, an_event("key_revoked"))
    before = rows(ledger)

    with pytest.raises(RevisionConflict, match="triage"):
        config.put_key(a_key(models=("agent-model",)), an_event(), known=a_key())

    assert config.keys() == (a_key(revoked_at=NOW),)
    assert rows(ledger) == before


def test_a_key_that_was_fixed_by_hand_may_be_made_again_after_its_revocation(config: Config, budgets: None) -> None:
    config.put_key(a_key(), an_event())
    config.revoke_key(a_key(), NOW, an_event("key_revoked"))

    config.put_key(a_key(), an_event("key_created"))

    assert config.keys() == (a_key(),)


def test_a_key_of_a_budget_that_is_not_there_is_not_written(config: Config, ledger: Ledger, budgets: None) -> None:
    before = rows(ledger)

    with pytest.raises(BudgetMissing, match="gone"):
        config.put_key(a_key(budget="gone"), an_event())

    assert config.keys() == ()
    assert rows(ledger) == before


def test_a_key_is_read_with_its_budgets(config: Config, ledger: Ledger, budgets: None) -> None:
    config.put_key(a_key(), an_event())

    found, states = config.key_and_path(a_key())
    unknown, same = config.key_and_path(a_key("nobody"))

    assert found == a_key()
    assert tuple(state.policy for state in states) == path_of(ledger, "acme/b")
    assert (unknown, same) == (None, states)
    assert config.key_and_path(a_key(budget="gone/x")) == (a_key(), ())


def test_providers_come_back_as_they_were_written_and_change(config: Config, ledger: Ledger) -> None:
    plain = Provider(name="openai", dialect="openai", base_url="https://api.openai.com/v1", secret="env:KEY")
    full = replace(
        plain,
        name="other",
        secret=None,
        framing=Framing(request=1, tooling=2, tool=3, part=4, output_overshoot=5),
        service_tier="flex",
        geo="us",
        speed="fast",
    )
    for provider in (full, plain):
        config.put_provider(provider, an_event("provider_created"))

    assert config.providers() == (plain, full)
    assert (config.provider("openai"), config.provider("none")) == (plain, None)
    config.put_provider(replace(plain, base_url="https://example.com"), an_event("provider_updated"))
    assert config.provider("openai") == replace(plain, base_url="https://example.com")
    assert len(ledger.events("2026-11-29")) == 3


def test_routes_keep_the_order_of_their_candidates_and_can_be_deleted(config: Config, ledger: Ledger) -> None:
    candidates = tuple(Candidate(provider="openai", model=model) for model in ("z", "a", "m"))
    route = Route(name="agent-model", candidates=candidates)
    config.put_route(route, an_event("route_created"))
    config.put_route(Route(name="a", candidates=candidates[:1]), an_event("route_created"))

    assert config.route("agent-model") == route
    assert [one.name for one in config.routes()] == ["a", "agent-model"]
    config.delete_route("agent-model", an_event("route_deleted"))
    assert config.route("agent-model") is None
    assert len(ledger.events("2026-11-29")) == 3


def test_a_price_row_is_never_overwritten(config: Config, ledger: Ledger) -> None:
    assert config.add_price(a_row(rate=1), an_event("price_added"))
    assert not config.add_price(a_row(rate=2), an_event("price_added"))
    assert config.add_price(a_row(rate=3, valid_from=NOW + timedelta(days=1)), an_event("price_added"))
    assert config.add_price(a_row("house-2", rate=4), an_event("price_added"))

    assert config.prices("openai", "house") == (a_row(rate=1), a_row(rate=3, valid_from=NOW + timedelta(days=1)))
    assert config.prices("openai", "hous") == ()
    assert len(config.all_prices()) == 3
    assert len(ledger.events("2026-11-29")) == 3


def test_a_price_row_comes_back_whole(config: Config) -> None:
    rates = Rates(input=1, cache_read=2, cache_write=3, cache_write_long=4, output=5, audio_input=6, image_output=7)
    card = RateCard(rates=rates, tiers=(Tier(above=272_000, rates=rates, inclusive=True),))
    row = replace(
        a_row(),
        card=card,
        service=(("priority", card), ("flex", RateCard(rates=rates))),
        factors=(("geo", "us", 1_100_000),),
        fees=(("web_search", 10**10),),
        context_tokens=128_000,
        image_tokens_max=1_700,
        output_tokens_max=16_384,
        aliases=("house-latest",),
        source="a page",
        checked="2026-11-01",
    )

    config.add_price(row, an_event("price_added"))

    assert config.prices("openai", "house") == (row,)


def test_managed_names_are_those_that_were_put_last(config: Config) -> None:
    assert config.managed() == frozenset()

    config.put_managed(frozenset({"key:a", "route:b"}))
    config.put_managed(frozenset({"key:a"}))

    assert config.managed() == {"key:a"}


def test_an_alias_is_priced_by_its_row_and_no_other_name_is(config: Config) -> None:
    """B12: exact names and listed aliases only."""
    row = a_price_row(model="demo-2026-01-01", aliases=("demo", "demo-latest"))
    assert config.add_price(row, an_event())

    assert [config.prices("demo", name) for name in ("demo-2026-01-01", "demo", "demo-latest")] == [(row,)] * 3
    assert [config.prices("demo", name) for name in ("demo-2026", "demo-latest-x", "DEMO")] == [()] * 3
    assert config.all_prices() == (row,)


def test_no_name_is_priced_by_the_row_of_one_that_is_like_it(config: Config) -> None:
    """B12: no version mark, no prefix, no name without its date, no channel before it."""
    for model in ("gpt-5", "claude-opus-5", "gpt-audio-mini-2025-10-06", "codex/gpt-5.6"):
        assert config.add_price(a_price_row(model=model), an_event())

    close = ("gpt-5.6", "acme/claude-opus-5", "gpt-audio-mini", "cx/gpt-5.6", "azure/gpt-audio-mini-2025-10-06")
    assert [config.prices("demo", name) for name in close] == [()] * len(close)
