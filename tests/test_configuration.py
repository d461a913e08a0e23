"""spendgate.yaml: what it means, and what is said of one that is wrong."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from spendgate.configuration import Configuration, KeySpec
from spendgate.configuration_checks import LIMITS_MAX
from spendgate.configuration_reader import parse
from spendgate.configuration_yaml import DEPTH_MAX, TEXT_LENGTH_MAX
from spendgate.core.alert import AlertPolicy
from spendgate.core.budget import Limit, RunPolicy
from spendgate.core.price import PriceRow, Rates, Tier
from spendgate.core.route import CANDIDATES_MAX, Candidate, Framing, Provider
from spendgate.dialects.registry import FAMILIES
from spendgate.errors import ConfigurationInvalid, Problem

EXAMPLE = Path(__file__).parent.parent / "examples" / "spendgate.yaml"

# The file of design 6.2, whole.
DESIGN = """\
version: 1
providers:
  openai:     {dialect: openai, base_url: https://api.openai.com/v1, secret: secretsmanager:spendgate/openai}
  anthropic:  {dialect: anthropic, base_url: https://api.anthropic.com, secret: env:ANTHROPIC_API_KEY}
prices:                       # beside the shipped catalogue; additive, never overwriting
  - {provider: openai, model: house-model, from: 2026-01-01, input: "2.50", cache_read: "1.25", output: "10",
     context_tokens: 128000, output_tokens_max: 16384}
routes:
  agent-model: [{provider: openai, model: gpt-5.6-sol}, {provider: openai, model: house-model}]
budgets:
  acme:                {limits: {usd: {month: 5000, day: 400}}}
  acme/search/triage:
    limits: {usd: {request: "0.50", hour: 5, day: 40}, requests: {minute: 60}}
    default_output_tokens: 8192
    allow: {web_search: 5, web_fetch: 3}
    runs: {limits: {usd: {life: 2}, requests: {life: 50}}, expire_after: 24h, stop_on_unknown: true}
  acme/sandbox:        {unbudgeted: true}      # said aloud, or it is an error
keys:
  triage-prod: {budget: acme/search/triage, models: [agent-model], expires: 2027-01-01}
alerts: {warn_at: [80], slack: false}
"""

USD = 10**12
HEAD = "version: 1\nproviders:\n  p: {dialect: openai, base_url: https://example.com}\n"
BUDGET = "budgets:\n  acme: {limits: {usd: {day: 1}}}\n"


def problems_of(text: str, *, loopback_http: bool = False) -> tuple[Problem, ...]:
    with pytest.raises(ConfigurationInvalid) as caught:
        parse(text, loopback_http=loopback_http)
    return caught.value.problems


def problem_of(text: str, *, loopback_http: bool = False) -> Problem:
    (problem,) = problems_of(text, loopback_http=loopback_http)
    return problem


def a_row(fields: str) -> PriceRow:
    text = f"{HEAD}prices:\n  - {{provider: p, model: m, {fields}}}\n"
    return parse(text, loopback_http=False).prices[0]


def limits_of(fields: str) -> tuple[Limit, ...]:
    return parse(f"version: 1\nbudgets:\n  acme: {{limits: {{{fields}}}}}\n", loopback_http=False).budgets[0].limits


def test_the_file_of_the_design_means_what_it_says() -> None:
    configuration = parse(DESIGN, loopback_http=False)

    assert configuration.providers == (
        Provider(
            name="openai",
            dialect="openai",
            base_url="https://api.openai.com/v1",
            secret="secretsmanager:spendgate/openai",
        ),
        Provider(
            name="anthropic", dialect="anthropic", base_url="https://api.anthropic.com", secret="env:ANTHROPIC_API_KEY"
        ),
    )
    (row,) = configuration.prices
    assert (row.provider, row.model, row.valid_from) == ("openai", "house-model", datetime(2026, 1, 1, tzinfo=UTC))
    assert (row.context_tokens, row.output_tokens_max) == (128_000, 16_384)
    (route,) = configuration.routes
    assert route.candidates == (
        Candidate(provider="openai", model="gpt-5.6-sol"),
        Candidate(provider="openai", model="house-model"),
    )
    assert configuration.keys == (
        KeySpec(
            name="triage-prod",
            budget="acme/search/triage",
            models=("agent-model",),
            expires_at=datetime(2027, 1, 1, tzinfo=UTC),
        ),
    )
    assert configuration.alerts == AlertPolicy(warn_at=(80,), slack=False)


def test_every_prefix_of_a_declared_path_is_a_budget_and_parents_come_first() -> None:
    budgets = parse(DESIGN, loopback_http=False).budgets

    assert [budget.path for budget in budgets] == ["acme", "acme/sandbox", "acme/search", "acme/search/triage"]
    assert {budget.rev for budget in budgets} == {0}
    _, sandbox, search, triage = budgets
    assert (sandbox.limits, sandbox.unbudgeted) == ((), True)
    assert (search.limits, search.unbudgeted) == ((), False)
    assert triage.limits == (
        Limit(measure="usd", window="request", maximum=USD // 2),
        Limit(measure="usd", window="hour", maximum=5 * USD),
        Limit(measure="usd", window="day", maximum=40 * USD),
        Limit(measure="requests", window="minute", maximum=60),
    )
    assert triage.default_output_tokens == 8192
    assert triage.allow == (("web_fetch", 3), ("web_search", 5))
    assert triage.runs == RunPolicy(
        limits=(
            Limit(measure="usd", window="life", maximum=2 * USD),
            Limit(measure="requests", window="life", maximum=50),
        ),
        expire_after=timedelta(hours=24),
        stop_on_unknown=True,
    )


def test_the_example_that_we_ship_is_right() -> None:
    configuration = parse(EXAMPLE.read_text(encoding="utf-8"), loopback_http=False)

    assert configuration.unpriced() == ()
    assert all(row.source and row.checked for row in configuration.prices)


def test_a_file_may_say_nothing_but_its_version() -> None:
    assert parse("version: 1\n", loopback_http=False) == Configuration()


@pytest.mark.parametrize("written", ["0.50", '"0.50"', "'0.50'", "0.5", "0.500"])
def test_money_is_exact_however_it_is_quoted(written: str) -> None:
    assert limits_of(f"usd: {{day: {written}}}") == (Limit(measure="usd", window="day", maximum=USD // 2),)


def test_money_that_no_float_can_hold_is_kept_to_the_last_picodollar() -> None:
    assert limits_of("usd: {day: 9007199254740993.000000000001}")[0].maximum == 9007199254740993 * USD + 1


@pytest.mark.parametrize(
    "written",
    ["1e3", ".nan", ".inf", "-1", "+1", "1_000", "0x10", "010", "0.0000000000001", "1.", ".5", "true", "yes", '""', "$5",
     "1:30", "five", "[1]", "{a: 1}", "٣", "9" * 25],
)  # fmt: skip
def test_what_is_no_exact_amount_is_refused_without_being_repeated(written: str) -> None:
    problem = problem_of(f"version: 1\nbudgets:\n  acme: {{limits: {{usd: {{day: {written}}}}}}}\n")

    assert (problem.place, problem.line) == ("budgets.acme.limits.usd.day", 3)
    assert problem.message.startswith("must be an amount in USD")


def test_b30_a_limit_of_zero_is_a_limit_that_denies() -> None:
    """B30: zero is not none."""
    assert limits_of("usd: {day: 0}, requests: {minute: 0}") == (
        Limit(measure="usd", window="day", maximum=0),
        Limit(measure="requests", window="minute", maximum=0),
    )


@pytest.mark.parametrize("written", ["", "~", "null"])
def test_b30_a_limit_of_nothing_is_an_error_and_not_no_limit(written: str) -> None:
    """B30: null is refused when it is written."""
    text = f"version: 1\nbudgets:\n  acme:\n    limits:\n      usd:\n        day: {written}\n        month: 5\n"

    assert problem_of(text) == Problem(
        "budgets.acme.limits.usd.day", "has no value: give it one, or leave the line out", 6
    )


@pytest.mark.parametrize("written", ["-1", "1.5", "1.0", '"5"', '""', "true", "1e3", ".inf", str(2**53)])
def test_b30_a_count_is_a_whole_number(written: str) -> None:
    """B30: anything that is not a non-negative number is refused when it is written."""
    problem = problem_of(f"version: 1\nbudgets:\n  acme: {{limits: {{tokens: {{day: {written}}}}}}}\n")

    assert problem.place == "budgets.acme.limits.tokens.day"
    assert "whole number" in problem.message


def test_names_that_yaml_takes_for_booleans_elsewhere_are_names() -> None:
    text = (
        "version: 1\nproviders:\n  no: {dialect: openai, base_url: https://example.com}\n"
        "routes:\n  on: [{provider: no, model: off}]\n"
        "budgets:\n  yes: {limits: {usd: {day: 1}}}\n"
        "keys:\n  n: {budget: yes, models: [on]}\n"
    )

    configuration = parse(text, loopback_http=False)

    assert configuration.routes[0].name == "on"
    assert configuration.routes[0].candidates == (Candidate(provider="no", model="off"),)
    assert configuration.keys == (KeySpec(name="n", budget="yes", models=("on",)),)


def test_an_absent_rate_falls_back_to_what_it_cannot_exceed() -> None:
    assert a_row("input: 2, output: 10").card.rates == Rates(
        input=2_000_000, cache_read=2_000_000, cache_write=2_000_000, cache_write_long=4_000_000, output=10_000_000
    )


def test_a_long_cache_write_falls_back_to_the_dearest_write_where_that_is_more() -> None:
    assert a_row("input: 2, output: 10, cache_write: 5").card.rates.cache_write_long == 5_000_000


def test_a_cache_write_of_zero_is_not_free_but_a_cache_read_of_zero_is() -> None:
    rates = a_row("input: 2, output: 10, cache_read: 0, cache_write: 0, cache_write_long: 0").card.rates

    assert (rates.cache_read, rates.cache_write, rates.cache_write_long) == (0, 2_000_000, 4_000_000)


def test_b09_a_model_is_free_where_zero_is_written_down() -> None:
    """B09: an explicit price of 0 counts as free."""
    rates = a_row("input: 0, output: 0").card.rates

    assert rates == Rates(input=0, cache_read=0, cache_write=0, cache_write_long=0, output=0)


def test_a_tier_falls_back_within_itself() -> None:
    row = a_row(
        "input: 1, output: 2, cache_read: '0.1', tiers: [{above: 200000, inclusive: true, input: 4, output: 8}]"
    )

    assert row.card.tiers == (
        Tier(
            above=200_000,
            inclusive=True,
            rates=Rates(
                input=4_000_000,
                cache_read=4_000_000,
                cache_write=4_000_000,
                cache_write_long=8_000_000,
                output=8_000_000,
            ),
        ),
    )


def test_a_service_tier_without_long_context_rates_costs_no_less_than_the_standard_one_there() -> None:
    row = a_row(
        "input: 2, output: 10, audio_input: 3, image_input: 5, "
        "tiers: [{above: 1000, input: 6, output: 12, audio_input: 4}], "
        "service: {priority: {input: 4, output: 20, audio_input: 9}, flex: {input: 1, output: 5, tiers: []}}"
    )

    priority = row.card_of("priority")
    assert priority is not None
    long = priority.at(1001)
    assert (long.input, long.output, long.audio_input, long.image_input) == (6_000_000, 20_000_000, 9_000_000, None)
    flex = row.card_of("flex")
    assert flex is not None
    assert flex.at(1001) == flex.rates


def test_a_row_keeps_all_that_is_said_of_it() -> None:
    row = a_row(
        "from: '2026-12-01T06:30:00+01:00', input: 1, output: 2, cache_write_long: 3, audio_input: 4, audio_output: 5, "
        "image_input: 6, image_output: 7, factors: {geo: {us: '1.1'}, speed: {fast: 2}, residency: {eu: '1.000001'}}, "
        "fees: {web_search: '0.01'}, image_tokens_max: 1700, aliases: [m-latest], source: a page, checked: 2026-11-29"
    )

    assert row.valid_from == datetime(2026, 12, 1, 5, 30, tzinfo=UTC)
    assert row.card.rates.cache_write_long == 3_000_000
    assert (row.card.rates.audio_input, row.card.rates.audio_output) == (4_000_000, 5_000_000)
    assert (row.card.rates.image_input, row.card.rates.image_output) == (6_000_000, 7_000_000)
    assert row.factors == (("geo", "us", 1_100_000), ("speed", "fast", 2_000_000), ("residency", "eu", 1_000_001))
    assert row.fees == (("web_search", USD // 100),)
    assert row.image_tokens_max == 1700
    assert (row.aliases, row.source, row.checked) == (("m-latest",), "a page", "2026-11-29")


def test_a_row_without_an_instant_is_valid_from_the_beginning() -> None:
    assert a_row("input: 1, output: 2").valid_from == datetime(1970, 1, 1, tzinfo=UTC)


def test_framing_and_declared_defaults_of_an_account_are_kept() -> None:
    text = (
        "version: 1\nproviders:\n  p: {dialect: openai, base_url: 'https://example.com/v1/', service_tier: default, "
        "geo: us, speed: standard, framing: {request: 10, output_overshoot: 0}}\n"
    )

    assert parse(text, loopback_http=False).providers == (
        Provider(
            name="p",
            dialect="openai",
            base_url="https://example.com/v1",
            framing=Framing(request=10, output_overshoot=0),
            service_tier="default",
            geo="us",
            speed="standard",
        ),
    )


@pytest.mark.parametrize("url", ["http://localhost:8080", "http://127.0.0.1", "http://[::1]:9/v1", "http://127.8.8.8"])
def test_http_is_for_loopback_hosts_in_local_runs(url: str) -> None:
    text = f"version: 1\nproviders:\n  p: {{dialect: openai, base_url: '{url}'}}\n"

    assert parse(text, loopback_http=True).providers[0].base_url == url
    assert "must be https" in problem_of(text).message


def test_an_address_has_one_spelling() -> None:
    text = "version: 1\nproviders:\n  p: {dialect: openai, base_url: 'HTTPS://API.Example.com:8443/V1/'}\n"
    assert parse(text, loopback_http=False).providers[0].base_url == "https://api.example.com:8443/V1"


@pytest.mark.parametrize(
    "url",
    ["http://example.com", "http://127.0.0.1.example.com", "http://localhost.example.com", "http://0.0.0.0",
     "http://10.0.0.1", "https://user:password@example.com", "https://example.com?x=1", "https://example.com#x",
     "https://", "example.com", "ftp://example.com", "https://example.com:99999", "https://example.com:0",
     "https://exa mple.com", "https://[::1", "https://example.com\\\\@evil", "file:///etc/passwd"],
)  # fmt: skip
def test_an_address_that_may_not_be_called_is_refused_even_locally(url: str) -> None:
    text = f'version: 1\nproviders:\n  p: {{dialect: openai, base_url: "{url}"}}\n'

    problem = problem_of(text, loopback_http=True)

    assert (problem.place, problem.line) == ("providers.p.base_url", 3)


@pytest.mark.parametrize(
    "pasted", ["sk-proj-abcdefghijklmnop", "AKIAABCDEFGHIJKLMNOP", "env:", "env:A B", "ENV:A", "secretsmanager:", "5"]
)
def test_a_secret_is_a_reference(pasted: str) -> None:
    text = f"version: 1\nproviders:\n  p: {{dialect: openai, base_url: https://example.com, secret: '{pasted}'}}\n"

    problem = problem_of(text)

    assert (problem.place, problem.line) == ("providers.p.secret", 3)
    assert "never the secret itself" in problem.message


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\nkeys:\n  sg-0123456789abcdefghij: {budget: acme}\n",
        "version: 1\nproviders: {p: {sk-0123456789abcdefghij: 1}}\n",
        "version: 1\nsk-0123456789abcdefghij: 1\n",
        "version: 1\nproviders: {p: {dialect: openai, base_url: https://example.com, secret: 0123456789abcdefghij}}\n",
        "version: 1\nproviders: {p: {dialect: openai, base_url: 'https://0123456789abcdefghij@example.com'}}\n",
        "version: 1\nproviders: {p: {dialect: sk-0123456789abcdefghij}}\n",
        "version: 1\nkeys: {k: {budget: sk-0123456789abcdefghij, secret: sg-0123456789abcdefghij/}}\n",
        "version: 1\nbudgets: {sk-0123456789abcdefghij!: {limits: {usd: {day: sk-0123456789abcdefghij}}}}\n",
        "version: 1\nx: &sk-0123456789abcdefghij 1\ny: *sk-0123456789abcdefghij\n",
        "version: 1\nx: !sk-0123456789abcdefghij 1\n",
        "version: 1\nx: 'sk-0123456789abcdefghij\n",
    ],
)
def test_no_error_repeats_what_looks_like_a_secret(text: str) -> None:
    for loopback_http in (False, True):
        assert "0123456789abcdefghij" not in "\n".join(map(str, problems_of(text, loopback_http=loopback_http)))


def test_a_fixed_key_is_for_local_runs_and_not_shown_by_its_record() -> None:
    text = f"version: 1\n{BUDGET}keys:\n  k: {{budget: acme, secret: sg-local-0123456789abcdef}}\n"

    (key,) = parse(text, loopback_http=True).keys

    assert key.secret == "sg-local-0123456789abcdef"
    assert "0123456789abcdef" not in repr(key)
    assert "local runs only" in problem_of(text).message


def test_two_keys_cannot_have_one_secret() -> None:
    text = (
        f"version: 1\n{BUDGET}keys:\n"
        "  a: {budget: acme, secret: sg-local-0123456789abcdef}\n  b: {budget: acme, secret: sg-local-0123456789abcdef}\n"
    )

    assert problem_of(text, loopback_http=True) == Problem(
        "keys.b.secret", "is the secret of key a too: give each key its own", 6
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2027-01-31", datetime(2027, 1, 31, tzinfo=UTC)),
        ("'2027-01-31'", datetime(2027, 1, 31, tzinfo=UTC)),
        ("2028-02-29", datetime(2028, 2, 29, tzinfo=UTC)),
        ("2027-01-31T18:00Z", datetime(2027, 1, 31, 18, tzinfo=UTC)),
        ("2027-01-31 18:00:05+02:00", datetime(2027, 1, 31, 16, 0, 5, tzinfo=UTC)),
    ],
)
def test_a_date_is_its_start_in_utc_and_an_instant_names_its_zone(written: str, meant: datetime) -> None:
    text = f"version: 1\n{BUDGET}keys:\n  k: {{budget: acme, expires: {written}}}\n"

    assert parse(text, loopback_http=False).keys[0].expires_at == meant


@pytest.mark.parametrize(
    "written",
    ["2027-02-29", "2027-13-01", "2027-01-31T18:00", "20270131", "tomorrow", "1", "1969-12-31", "0001-01-01T00:00+14:00",
     "9999-12-31T23:59-14:00", "2027-01-31T25:00Z", "2027-W01-1"],
)  # fmt: skip
def test_b27_a_time_without_a_zone_or_a_calendar_is_refused(written: str) -> None:
    """B27: UTC only, nothing naive."""
    assert (
        problem_of(f"version: 1\n{BUDGET}keys:\n  k: {{budget: acme, expires: {written}}}\n").place == "keys.k.expires"
    )


@pytest.mark.parametrize("written", ["24", "0h", "1w", "-1h", "1.5h", "24 h", "367d", "999999d", "[]"])
def test_a_time_span_has_a_unit(written: str) -> None:
    text = f"version: 1\nbudgets:\n  acme: {{limits: {{usd: {{day: 1}}}}, runs: {{expire_after: {written}}}}}\n"

    assert "time span" in problem_of(text).message


# Each: the file's text after HEAD (three lines), then line, place and what the message says.
WRONG: tuple[tuple[str, int | None, str, str], ...] = (
    ("provders: {}\n", 4, "provders", "did you mean providers?"),
    ("zzz: {}\n", 4, "zzz", "known: alerts, budgets, keys, prices, providers, routes, version"),
    ("budgets:\n  a: {limits: {usd: {dya: 1, day: 1}}}\n", 5, "budgets.a.limits.usd.dya", "did you mean day?"),
    ("budgets:\n  a: {limits: {dollars: {day: 1}}}\n", 5, "budgets.a.limits.dollars", "known: requests, tokens, tool_c"),
    ("budgets:\n  a: {limits: {usd: {day: 1}}, runs: {limits: {usd: {lief: 1}}}}\n", 5, "budgets.a.runs.limits.usd.lief",
     "did you mean life?"),
    ("budgets:\n  a: {limits: {usd: {day: 1}}, mode: enfroce}\n", 5, "budgets.a.mode", "must be enforce or observe"),
    ("budgets:\n  a: {unbudgeted: yes}\n", 5, "budgets.a.unbudgeted", "must be true or false"),
    ("budgets:\n  a: {}\n", 5, "budgets.a", "has no limits: give it some, or say unbudgeted: true"),
    ("budgets:\n  a: {limits: {usd: {day: 1}}}\n  a/b: {}\n", 6, "budgets.a/b", "has no limits"),
    ("budgets:\n  a:\n", 5, "budgets.a", "has no value"),
    ("budgets:\n  a: {unbudgeted: true, limits: {usd: {day: 0}}}\n", 5, "budgets.a.unbudgeted", "contradicts limits"),
    ("budgets:\n  a: {unbudgeted: true, limits: {usd: {}}}\n", 5, "budgets.a.limits.usd", "has no window"),
    ("budgets:\n  a: {unbudgeted: true, runs: {limits: {usd: {}}}}\n", 5, "budgets.a.runs.limits.usd", "has no window"),
    ("budgets:\n  a: {unbudgeted: true, default_output_tokens: 0}\n", 5, "budgets.a.default_output_tokens", "from 1"),
    ("budgets:\n  a: {unbudgeted: true, allow: {web_serch: 1}}\n", 5, "budgets.a.allow", "did you mean web_search?"),
    ("budgets:\n  a: {unbudgeted: true, allow: {web_search: 101}}\n", 5, "budgets.a.allow.web_search", "to 100"),
    ("budgets:\n  a: {unbudgeted: true, allow: {web_search: true}}\n", 5, "budgets.a.allow.web_search", "to 100"),
    ("budgets:\n  a b: {unbudgeted: true}\n", 5, "budgets.a b", "a budget path is"),
    ("budgets:\n  a/run:7: {unbudgeted: true}\n", 5, "budgets.a/run:7", "runs are not declared"),
    ("budgets:\n  /a: {unbudgeted: true}\n", 5, "budgets./a", "a budget path is"),
    ("budgets: []\n", 4, "budgets", "must be a mapping (name: entry)"),
    ("budgets: {a: 5}\n", 4, "budgets.a", "must be a mapping (name: value)"),
    ("prices: {}\n", 4, "prices", "must be a list of price rows"),
    ("prices:\n  - {provider: q, model: m, input: 1, output: 1}\n", 5, "prices[0].provider", "is not in providers"),
    ("prices:\n  - {provider: p, model: m, output: 1}\n", 5, "prices[0].input", "is missing"),
    ("prices:\n  - {provider: p, model: 5, input: 1, output: 1}\n", 5, "prices[0].model", "a number goes in quotes"),
    ("prices:\n  - {provider: p, model: m, input: '0.0000001', output: 1}\n", 5, "prices[0].input", "6 decimal places"),
    ("prices:\n  - {provider: p, model: m, input: 1, output: 1, cached: 1}\n", 5, "prices[0].cached",
     "did you mean cache_read?"),
    ("prices:\n  - {provider: p, model: m, input: 1, output: 1, form: 2026-01-01}\n", 5, "prices[0].form",
     "did you mean from?"),
    ("prices:\n  - {provider: p, model: m, input: 1, output: 1, tiers: [{above: 5, input: 1}]}\n", 5,
     "prices[0].tiers[0].output", "is missing"),
    ("prices:\n  - {provider: p, model: m, input: 1, output: 1, tiers: [{above: 5, input: 1, output: 1, abov: 1}]}\n", 5,
     "prices[0].tiers[0].abov", "did you mean above?"),
    (("prices:\n  - {provider: p, model: m, input: 1, output: 1,\n     tiers: [{above: 5, input: 1, output: 1},\n"
      "             {above: 5, input: 1, output: 1}]}\n"), 6, "prices[0].tiers", "rising"),
    ("prices:\n  - {provider: p, model: m, input: 1, output: 1, service: {flex: {input: 1}}}\n", 5,
     "prices[0].service.flex.output", "is missing"),
    ("prices:\n  - {provider: p, model: m, input: 1, output: 1, service: {flex: {input: 1, output: 1, inpt: 1}}}\n", 5,
     "prices[0].service.flex.inpt", "did you mean input?"),
    ("prices:\n  - {provider: p, model: m, input: 1, output: 1, service: {default: {input: 1, output: 1}}}\n", 5,
     "prices[0].service", "that is the row itself"),
    ("prices:\n  - {provider: p, model: m, input: 1, output: 1, factors: {geo: {us: 0}}}\n", 5, "prices[0].factors.geo.us",
     "above 0"),
    ("prices:\n  - {provider: p, model: m, input: 1, output: 1, factors: {geo: {us: '1.0000001'}}}\n", 5,
     "prices[0].factors.geo.us", "6 decimal places"),
    ("prices:\n  - {provider: p, model: m, input: 1, output: 1, checked: yesterday}\n", 5, "prices[0].checked", "a date"),
    ("prices:\n  - {provider: p, model: m, input: 1, output: 1, checked: 2026-02-30}\n", 5, "prices[0].checked",
     "calendar"),
    ("prices:\n  - {provider: p, model: m, input: 1, output: 1}\n  - {provider: p, model: m, input: 2, output: 1}\n", 6,
     "prices[1]", "a new rate needs a `from` of its own"),
    ("prices:\n  - {provider: p, model: m, input: 1, output: 1, aliases: [m]}\n", 5, "prices[0].aliases[0]", "already"),
    (("prices:\n  - {provider: p, model: m, input: 1, output: 1, aliases: [n]}\n"
      "  - {provider: p, model: n, input: 1, output: 1}\n"), 5, "prices[0].aliases[0]", "already the name of a model: a name leads to the prices of one"),
    ("prices:\n  - {provider: p, model: m, input: 1, output: 1, source: " + "x" * 501 + "}\n", 5, "prices[0].source",
     "too long: at most 500 characters"),
    ("routes:\n  r: []\n", 5, "routes.r", "must be a list of 1 to 8"),
    ("routes:\n  r: p\n", 5, "routes.r", "must be a list of 1 to 8"),
    ("routes:\n  r:\n", 5, "routes.r", "has no value"),
    ("routes: 5\n", 4, "routes", "must be a mapping"),
    ("routes:\n  r: [{provider: pp, model: m}]\n", 5, "routes.r[0].provider", "did you mean p?"),
    ("routes:\n  r: [{model: m}]\n", 5, "routes.r[0].provider", "is missing"),
    ("routes:\n  r: [{provider: p, model: m}, {provider: p, model: m}]\n", 5, "routes.r[1]", "is listed twice: each candidate is tried once at most"),
    (
        "routes:\n  r: [{provider: p, model: 'arn:aws:bedrock:us-east-1:1:prompt/ABC'}]\n",
        5,
        "routes.r[0].model",
        "names a prompt or a router of Bedrock, whose text or model nobody can bound",
    ),
    ("routes:\n  a b: [{provider: p, model: m}]\n", 5, "routes.a b", "without spaces"),
    ("keys:\n  k: {budget: acme}\n", 5, "keys.k.budget", "is not in budgets of this file, which has none: add it there"),
    ("keys:\n  k: {}\n", 5, "keys.k.budget", "is missing"),
    ("keys:\n  K: {budget: a}\nbudgets: {a: {unbudgeted: true}}\n", 5, "keys.K", "a name has 1 to 64"),
    ("keys:\n  k: {budget: a, models: []}\nbudgets: {a: {unbudgeted: true}}\n", 5, "keys.k.models", "is empty"),
    ("keys:\n  k: {budget: a, models: [x]}\nbudgets: {a: {unbudgeted: true}}\n", 5, "keys.k.models[0]", "is not in routes"),
    ("keys:\n  k: {budget: a, models: x}\nbudgets: {a: {unbudgeted: true}}\n", 5, "keys.k.models", "must be a list"),
    ("keys:\n  k: {budget: a}\nbudgets: {a/b: {unbudgeted: true}}\n", 5, "keys.k.budget", "known: a/b"),
    ("alerts: {warn_at: [0]}\n", 4, "alerts.warn_at[0]", "from 1 to 99"),
    ("alerts: {warn_at: [100]}\n", 4, "alerts.warn_at[0]", "from 1 to 99"),
    ("alerts: {warn_at: [80, 80]}\n", 4, "alerts.warn_at", "has a number twice: leave one of them out"),
    ("alerts: {warn_at: [80, 80]}\n", 4, "alerts.warn_at", "twice"),
    ("budgets:\n  a: {limits: {usd: {day: 1}}, alerts: {warn_at: [80, 80]}}\n", 5, "budgets.a.alerts.warn_at", "twice"),
    ("budgets:\n  a: {limits: {usd: {day: 1}}, alerts: {warn_at: [0]}}\n", 5, "budgets.a.alerts.warn_at[0]", "from 1 to 99"),
    ("budgets:\n  a: {limits: {usd: {day: 1}}, alerts: {}}\n", 5, "budgets.a.alerts.warn_at", "is missing"),
    ("budgets:\n  a: {limits: {usd: {day: 1}}, alerts: {warn_at: [5], warn: [5]}}\n", 5, "budgets.a.alerts.warn", "did you mean"),
    ("alerts: {slack: on}\n", 4, "alerts.slack", "must be true or false"),
    ("alerts: {5: 1}\n", 4, "alerts.5", "is not known here"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "line", "place", "message"), WRONG)
def test_a_mistake_is_told_with_its_line_its_place_and_what_is_allowed(
    text: str, line: int, place: str, message: str
) -> None:
    problem = problem_of(HEAD + text)

    assert (problem.line, problem.place) == (line, place)
    assert message in problem.message


@pytest.mark.parametrize(
    ("text", "line", "place", "message"),
    [
        ("", 1, "", "the file is empty"),
        ("# nothing\n", 1, "", "the file is empty"),
        ("- 1\n", 1, "", "must be a mapping"),
        ("5", 1, "", "must be a mapping"),
        ("providers: {}\n", 1, "", "version is missing"),
        ("providers: {}\nversion: 2\n", 2, "version", "must be 1"),
        ("version: '1'\n", 1, "version", "must be 1"),
        ("version: true\n", 1, "version", "must be 1"),
        ("version: 1.0\n", 1, "version", "must be 1"),
        ("version:\n", 1, "version", "has no value"),
        ("version: 1\nversion: 1\n", 2, "version", "written twice; the first is on line 1"),
        (
            "version: 1\nbudgets: {a: {unbudgeted: true, unbudgeted: false}}\n",
            2,
            "budgets.a.unbudgeted",
            "written twice",
        ),
        ("version: 1\nbudgets: [\n", 3, "", "not YAML: a quote, a [ or a { is opened and never closed"),
        ("version: 1\nbudgets:\n  a: 'x\n", 4, "", "never closed (on line 3)"),
        ("version: 1\n\tbudgets: 1\n", 2, "", "not YAML: a tab, which cannot indent: use spaces"),
        ("version: 1\nroutes: a: b\n", 2, "", "put text with ': ' in quotes"),
        ("version: 1\nroutes: @a\n", 2, "", "begins with a special character: put it in quotes"),
        ("version: 1\nroutes:\n  a: 1\n b: 1\n", 4, "", "indented unlike those around it"),
        ("version: 1\n---\nversion: 1\n", 2, "", "not YAML"),
        ("version: 1\nx: &a {}\nbudgets: *a\n", 3, "", "aliases (*name) are not allowed"),
        ("version: !!float 1\n", 1, "version", "tags (!name) are not allowed"),
        ("version: !!python/name:os.system 1\n", 1, "version", "tags (!name) are not allowed"),
        ("version: 1\nbudgets: !!set {a}\n", 2, "budgets", "tags (!name) are not allowed"),
        ("version: 1\n? [a, b]\n: 1\n", 2, "", "a key must be plain text"),
        ('version: 1\n"\\ud800": 1\n', 2, "", "a key must be plain text"),
        ('version: "\\ud800"\n', 1, "version", "which alone is no character: write the character itself"),
        ('version: "\\UFFFFFFFF"\n', 1, "", "out of range"),
        (
            "version: 1\nx: \x00\n",
            2,
            "",
            "a character that YAML does not allow, such as a control character: delete it",
        ),
        ("[" * 100_000, 1, "", f"nested deeper than {DEPTH_MAX} levels"),
        (" " * (TEXT_LENGTH_MAX + 1), None, "", "longer than 512 KiB"),
    ],
)
def test_what_is_no_file_of_ours_is_told_too(text: str, line: int | None, place: str, message: str) -> None:
    problem = problem_of(text)

    assert (problem.line, problem.place) == (line, place)
    assert message in problem.message


def test_a_small_file_of_aliases_cannot_grow() -> None:
    bomb = "a: &a [x]\n" + "".join(
        f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
        for before, after in zip("abcdefgh", "bcdefghi", strict=True)
    )

    assert "aliases" in problem_of(bomb).message


@given(st.dictionaries(st.text(), st.text(), min_size=1, max_size=4))
def test_what_is_told_of_a_wrong_file_can_be_printed_on_lines_of_their_own(names: dict[str, str]) -> None:
    problems = problems_of(yaml.safe_dump({"version": 1, **{f"{name}?": value for name, value in names.items()}}))

    assert len(problems) == len(str(ConfigurationInvalid(problems)).encode("utf-8").splitlines())


def test_all_problems_are_told_at_once_in_the_order_of_their_lines() -> None:
    text = (
        "version: 1\nproviders:\n  a: {dialect: opnai, base_url: http://example.com, secret: sk-x}\n"
        "  b: {dialect: anthropic, base_url: https://example.com, tiemout: 5}\n"
        "prices:\n  - {provider: c, model: m, input: x, output: 1}\n"
        "routes:\n  r: [{provider: d, model: m}]\n"
        "budgets:\n  acme: {limits: {usd: {dya: 1}}}\n  acme:\n"
        "keys:\n  k: {budget: acm, models: [s]}\nalerts: {warn_at: 5}\n"
    )

    assert [(problem.line, problem.place) for problem in problems_of(text)] == [
        (3, "providers.a.dialect"),
        (3, "providers.a.base_url"),
        (3, "providers.a.secret"),
        (4, "providers.b.tiemout"),
        (6, "prices[0].provider"),
        (6, "prices[0].input"),
        (8, "routes.r[0].provider"),
        (10, "budgets.acme.limits.usd.dya"),
        (11, "budgets.acme"),
        (13, "keys.k.budget"),
        (13, "keys.k.models[0]"),
        (14, "alerts.warn_at"),
    ]


def test_an_unknown_dialect_is_answered_with_those_that_are_spoken() -> None:
    problem = problem_of("version: 1\nproviders:\n  p: {dialect: smoke, base_url: https://example.com}\n")

    assert problem.message == f"is no dialect that is spoken here; known: {', '.join(sorted(FAMILIES))}"


@pytest.mark.parametrize(
    ("entry", "place", "message"),
    [
        (
            "dialect: anthropic, base_url: https://example.com, kind: azure",
            "kind",
            "speaks the dialect openai, and this provider anthropic: change the kind or the dialect",
        ),
        (
            "dialect: openai, base_url: https://example.com, api_version: preview",
            "api_version",
            "goes with kind: azure only: leave it out, or say kind: azure",
        ),
    ],
)
def test_a_kind_that_does_not_fit_says_what_to_change(entry: str, place: str, message: str) -> None:
    problem = problem_of(f"version: 1\nproviders:\n  p: {{{entry}}}\n")

    assert (problem.place, problem.message) == (f"providers.p.{place}", message)


def test_a_route_of_two_dialects_names_both() -> None:
    text = (
        f"{HEAD}  q: {{dialect: anthropic, base_url: https://example.com}}\n"
        "routes:\n  r: [{provider: p, model: m}, {provider: q, model: m}]\n"
    )

    assert problem_of(text) == Problem(
        "routes.r", "must be of one dialect, but has openai (p) and anthropic (q): make a route for each", 6
    )


def test_a_route_has_no_more_candidates_than_can_be_bounded() -> None:
    candidates = ", ".join(f"{{provider: p, model: m{index}}}" for index in range(CANDIDATES_MAX + 1))

    assert "1 to 8 candidates" in problem_of(f"{HEAD}routes:\n  r: [{candidates}]\n").message


def test_a_budget_has_no_more_limits_than_its_item_can_hold() -> None:
    windows = "{request: 1, minute: 1, hour: 1, day: 1, month: 1, life: 1}"
    most = f"usd: {windows}, requests: {windows}"
    text = "version: 1\nbudgets:\n  acme: {{unbudgeted: true, runs: {{limits: {{{}}}}}}}\n"

    assert parse(text.format(most), loopback_http=False).budgets[0].runs is not None
    assert problem_of(text.format(f"{most}, tokens: {{day: 1}}")).message.startswith(
        f"has 13 limits, more than {LIMITS_MAX}: put some of them"
    )


def test_one_instant_after_another_is_a_new_price_of_the_same_model() -> None:
    text = (
        f"{HEAD}prices:\n  - {{provider: p, model: m, input: 1, output: 1, aliases: [n]}}\n"
        "  - {provider: p, model: m, from: 2026-12-01, input: 2, output: 2, aliases: [n]}\n"
    )

    assert [row.card.rates.input for row in parse(text, loopback_http=False).prices] == [1_000_000, 2_000_000]


UNPRICED = (
    f"{HEAD}prices: [{{provider: p, model: m, aliases: [n], input: 1, output: 1}}]\n"
    "routes:\n  priced: [{provider: p, model: m}, {provider: p, model: n}]\n  other: [{provider: p, model: x}]\n"
    "budgets: {acme: {limits: {usd: {day: 1}}}, free: {unbudgeted: true}}\n"
)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("", ["x"]),
        ("keys: {k: {budget: acme}}\n", ["x"]),
        ("keys: {k: {budget: acme, models: [priced]}, f: {budget: free, models: [other]}}\n", []),
        ("keys: {k: {budget: acme, models: [other]}, f: {budget: free, models: [other]}}\n", ["x"]),
        ("keys: {k: {budget: acme, models: [priced]}}\n", ["x"]),
    ],
)
def test_b12_a_candidate_without_a_price_is_named_where_a_budgeted_caller_may_reach_it(
    keys: str, expected: list[str]
) -> None:
    """B12: an exact name or a written alias has a price, and nothing that is merely close."""
    assert [candidate.model for candidate in parse(UNPRICED + keys, loopback_http=False).unpriced()] == expected


def parses_or_says_why(text: str) -> None:
    # Local runs allow more, so a text that is read there gets further.
    with suppress(ConfigurationInvalid):
        parse(text, loopback_http=True)


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_is_read_or_refused_with_problems(text: str) -> None:
    parses_or_says_why(text)


@given(st.text(alphabet="version: 1\n-[]{}&*!%@`'\"?|>#,\\uUxd8~<=.5e\t", max_size=60))
def test_any_text_of_yaml_s_own_characters_is_read_or_refused_with_problems(text: str) -> None:
    parses_or_says_why(text)


KNOWN_NAMES = st.sampled_from(
    [
        *("version", "providers", "prices", "routes", "budgets", "keys", "alerts", "dialect", "base_url", "secret"),
        *("framing", "request", "provider", "model", "from", "input", "output", "tiers", "above", "service", "factors"),
        *("geo", "us", "fees", "aliases", "limits", "usd", "day", "tokens", "mode", "unbudgeted", "runs", "acme", "p"),
        *("expire_after", "budget", "models", "expires", "warn_at", "slack", "openai", "default_output_tokens"),
    ]
)
LEAVES = (
    KNOWN_NAMES
    | st.sampled_from(["https://example.com", "env:A", "sg-0123456789abcdef", "24h", "2027-01-01", "0.5"])
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.dates()
    | st.text()
)
STRUCTURES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KNOWN_NAMES | st.integers(), inner, max_size=6),
    max_leaves=25,
)
SECTIONS = st.dictionaries(
    st.sampled_from(["providers", "prices", "routes", "budgets", "keys", "alerts"]), STRUCTURES, max_size=6
)


@given(SECTIONS)
def test_any_structure_is_read_or_refused_with_problems(sections: dict[str, Any]) -> None:
    parses_or_says_why(yaml.safe_dump({"version": 1, **sections}))


@given(st.data())
def test_the_design_s_file_with_anything_in_any_place_is_read_or_refused_with_problems(data: st.DataObject) -> None:
    document = yaml.safe_load(DESIGN)
    at: Any = document
    while True:
        step = data.draw(st.sampled_from(list(at) if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[step], dict | list) or not at[step] or data.draw(st.booleans()):
            break
        at = at[step]
    at[step] = data.draw(STRUCTURES)

    parses_or_says_why(yaml.safe_dump(document))
