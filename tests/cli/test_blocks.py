"""``spendgate blocks``: the real commands against a real admin API, after a bill above its bound."""

from spendgate.store.ledger import Ledger
from tests.builders import a_quote
from tests.cli.conftest import CommandLine
from tests.operators import Clock, admit, lose


def broken(applied: CommandLine, ledger: Ledger, clock: Clock) -> str:
    """Settle a call for more than was held, as its invoice says, and return its reservation's id."""
    lost = admit(ledger, clock.now, held="0.3", quotes=(a_quote(),))
    lose(ledger, lost, clock.now)
    applied("reconcile", "settle", lost.id, "--cost", "0.9", "--evidence", "the provider's invoice")
    return lost.id


def test_where_no_bill_was_above_its_bound_nothing_is_blocked(applied: CommandLine) -> None:
    done = applied("blocks", "list")

    assert (done.exit_code, done.stdout.strip()) == (0, "Nothing is blocked: no bill was above its bound.")
    assert applied.json("blocks", "list")["blocks"] == []


def test_what_is_blocked_is_listed_with_the_call_that_showed_it_and_lifted_with_a_reason(
    applied: CommandLine, ledger: Ledger, clock: Clock
) -> None:
    reservation = broken(applied, ledger, clock)

    (one,) = applied.json("blocks", "list")["blocks"]
    assert (one["reservation"], one["reserved"], one["billed"]) == (reservation, "0.3", "0.9")
    assert reservation in applied("blocks", "list").stdout
    tree = " ".join(applied("status").stdout.split())
    lift = f"spendgate blocks lift {one['provider']} {one['model']} {one['feature']} --reason TEXT"
    assert f"■ BLOCKED for every budget since {one['at'][:10]}" in tree
    assert f"which billed $0.9 for a call that was bounded at $0.3 (reservation {reservation})" in tree
    assert f"Once you know why: {lift}" in tree
    lifted = applied(
        "blocks", "lift", one["provider"], one["model"], one["feature"], "--reason", "the row has the new rate"
    )

    assert lifted.exit_code == 0
    assert f"{one['model']} at {one['provider']} is let through again." in lifted.stdout
    assert applied.json("blocks", "list")["blocks"] == []
    assert "BLOCKED" not in applied("status").stdout
    events = applied.json("events")["events"]
    assert [(event["kind"], event["reason"]) for event in events if event["kind"] == "block_lifted"] == [
        ("block_lifted", "the row has the new rate")
    ]


def test_a_block_that_is_not_there_cannot_be_lifted(applied: CommandLine) -> None:
    done = applied("blocks", "lift", "openai", "house-model", "text", "--reason", "none")

    assert done.exit_code != 0
    assert "house-model" in done.stderr
