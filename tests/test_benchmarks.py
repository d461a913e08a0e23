"""The benchmarks run, and what they count (round trips, write units) is what is promised; nothing here is a time."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks import cpu, imports, load, peers, report, round_trips, shares, tightness, turns, write_units
from benchmarks.peers import DIRECT, KINDS, OURS, Found, Gateway, Seen
from benchmarks.rig import rig


def test_a_warm_call_makes_one_round_trip_before_egress_and_one_after(store_url: str) -> None:
    found = {one.name: one for one in asyncio.run(round_trips.measure(rig(store_url)))}

    once = ("TransactWriteItems",)
    for name in ("warm call", "warm call, streamed", "warm call with an idempotency key", "first call of a run"):
        assert (found[name].status, found[name].before, found[name].after) == (200, once, once), name
    stale = found["after a limit above the key's budget changed"]
    assert (stale.status, stale.before, stale.after) == (200, once * 2, once)
    refused = found["refused by a limit (402)"]
    assert (refused.status, refused.before, refused.after) == (402, once, ())


def test_each_budget_of_a_path_costs_a_call_at_most_two_units_a_transaction(store_url: str) -> None:
    found = asyncio.run(write_units.measure(rig(store_url)))

    # Reservation and two index entries; when it is settled, the usage record and the entry that disappears.
    assert [(one.name, one.depth) for one in found] == [
        (name, depth) for depth in (1, 2, 3, 4) for name in ("reserve", "settle")
    ]
    for one in found:
        budgets = [item for item in one.items if item.kind == "BUDGET"]
        assert len(budgets) == one.depth
        assert [item.units for item in budgets] == [2] * one.depth
        assert [item.index_units for item in budgets] == [0] * one.depth
        assert one.index_units == (2 if one.name == "reserve" else 1)
        assert one.table_units <= 2 * one.depth + (4 if one.name == "reserve" else 6)


@pytest.mark.parametrize(
    ("item", "size"),
    [
        ({}, 0),
        ({"ab": {"S": "xyz"}}, 5),
        ({"ä": {"S": "ö"}}, 4),
        ({"n": {"N": "0"}}, 3),
        ({"n": {"N": "12345"}}, 5),
        # Zeros at the end are not kept.
        ({"n": {"N": "120000"}}, 3),
        ({"n": {"N": "-12"}}, 4),
        ({"b": {"BOOL": True}}, 2),
        ({"l": {"L": [{"S": "ab"}, {"N": "7"}]}}, 1 + 3 + 1 + 2 + 1 + 2),
        ({"m": {"M": {"ab": {"S": "c"}}}}, 1 + 3 + 1 + 3),
    ],
)
def test_an_items_size_is_that_of_its_names_and_values(item: Mapping[str, Any], size: int) -> None:
    assert write_units.item_bytes(item) == size


@pytest.mark.parametrize(
    ("before", "after", "units"), [(0, 1024, 1), (0, 1025, 2), (1025, 10, 2), (0, 0, 1), (4096, 4097, 5)]
)
def test_a_write_takes_a_unit_for_each_kilobyte_of_the_larger_item(before: int, after: int, units: int) -> None:
    def item(size: int) -> Mapping[str, Any]:
        return {"t": {"S": "x" * (size - 1)}} if size else {}

    assert write_units.write_units(item(before), item(after)) == units


def test_what_is_timed_runs_once(store_url: str) -> None:
    async def run() -> tuple[list[cpu.CallCost], list[tuple[str, float]]]:
        made = rig(store_url)
        return await cpu.measure(made, calls=1, repetitions=1), await shares.measure(made, calls=20)

    costs, parts = asyncio.run(run())

    assert [one.name for one in costs] == ["whole, 1 KB", "streamed, 1 KB", "whole, 100 KB", "streamed, 100 KB"]
    assert parts
    assert sum(share for _, share in parts) == pytest.approx(1)


def test_the_proxy_of_the_limits_passes_calls_through_whole_and_streamed() -> None:
    with peers.provided() as provider_url, peers.proxied(provider_url) as proxy:
        for kind in KINDS:
            taken = asyncio.run(load.calls(proxy.target, peers.body_of(proxy, kind), count=17, at_once=kind.at_once))
            assert len(taken) == 17
            assert all(0 < one.first <= one.whole for one in taken)


def test_the_store_alone_takes_both_transactions_of_a_call_as_the_gateway_has_sent_them(store_url: str) -> None:
    assert len(asyncio.run(peers.store_seconds(store_url, 4, 2))) == 4


def test_the_page_has_each_gateway_beside_spendgate_with_ratios() -> None:
    def gateway(name: str, seconds: float, cpu_seconds: float) -> Gateway:
        seen = Seen(taken=[load.Taken(seconds / 2, seconds)], cpu_seconds=[cpu_seconds])
        target = load.Target(url="", headers={})
        return Gateway(name=name, version="1", target=target, model="m", pids=(), seen=dict.fromkeys(KINDS, seen))

    gateways = [gateway(DIRECT, 0.001, 0), gateway(OURS, 0.011, 0.004), gateway("other", 0.006, 0.008)]
    found = Found(gateways=gateways, absent={"gone": "it is not installed"}, store={1: [0.002], 16: [0.003]})

    page = report.document(machine="a machine", command="a command", found=found, profiles=())

    assert "| **spendgate 1** | 10.0 | 10.0 | 10.0 | 1.00 | 5.0 | 4.00 | 1.00 |" in page
    assert "| other 1 | 5.0 | 5.0 | 5.0 | 0.50 | 2.5 | 8.00 | 2.00 |" in page
    assert "| the store alone | 2.0 | 2.0 | 2.0 | 0.20 |  |  |  |" in page
    assert "Not measured: gone: it is not installed" in page


def test_the_gateways_imports_are_measured_beside_boto3s() -> None:
    found = imports.measure(repetitions=1)
    modules = imports.modules()

    assert [one.name for one in found] == list(imports.PROGRAMS)
    assert "spendgate.asgi" in {one.name for one in modules}
    # They are no part of the deployed layer.
    assert "rich.console" not in {one.name for one in modules}


def test_no_turn_of_the_corpus_costs_more_than_its_bound() -> None:
    corpus = turns.turns(6)

    for case in tightness.cases():
        for provider in (case.provider, case.declared):
            found = tightness.measure(case, corpus, len, provider=provider)
            # ``len`` is a tokenizer that makes a token of every character: the worst there is.
            assert found.median > 1
            assert found.dominant.total() == len(corpus)
