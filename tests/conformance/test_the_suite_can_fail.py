"""The suite is only worth something if it finds what is wrong: gateways that leak in one known way each."""

import json

import pytest
from click.testing import CliRunner

from spendgate.cli.main import cli
from spendgate.local.conformance.case import Case, Stand
from spendgate.local.conformance.cases import CASES
from spendgate.local.conformance.manner import Manner
from spendgate.local.conformance.run import Result, play
from spendgate.local.conformance.verdict import Kind
from tests.conformance.credulous import Credulous
from tests.conformance.leaky import ToyDriver

NEWER = ("responses protocol", "gemini protocol")
BY_NAME = {case.name: case for case in CASES}
FAILURES = {Kind.OVERSPENT, Kind.UNDER_BOOKED, Kind.MISSED}
FAILS = Manner(name="error", status=500)


def _few(stand: Stand) -> None:
    for _ in range(3):
        stand.call()


def _at_once(stand: Stand) -> None:
    # The provider keeps each until all have come: what is counted at the end was not yet counted for any.
    stand.burst([stand.body()] * 16)


AT_ONCE = Case(name="at once", group="concurrency", title="16", play=_at_once, manner=Manner(delay_seconds=1))
# Three calls: not enough to reach the limit, enough to see whether they are booked.
A_FEW_FAIL = Case(name="a few fail", group="provider failures", title="three billed failures", play=_few, manner=FAILS)


def _played(leak: str, case: Case) -> Result:
    (result,) = play(ToyDriver(leak), [case]).results
    return result


@pytest.mark.parametrize(
    "leak,case,kind",
    [
        ("late", AT_ONCE, Kind.OVERSPENT),
        ("forgetful", BY_NAME["500 after the work"], Kind.OVERSPENT),
        ("forgetful", A_FEW_FAIL, Kind.UNDER_BOOKED),
        ("silent", A_FEW_FAIL, Kind.UNEXPLAINED),
        ("", AT_ONCE, Kind.HOLDS),
        ("", BY_NAME["500 after the work"], Kind.HOLDS),
        ("", A_FEW_FAIL, Kind.HOLDS),
        ("", BY_NAME["revoked key"], Kind.UNSUPPORTED),
        ("", BY_NAME["spent or only held"], Kind.MISSED),
    ],
    ids=lambda value: getattr(value, "name", value) or "sound",
)
def test_a_leak_has_its_verdict_and_a_sound_gateway_has_none(leak: str, case: Case, kind: Kind) -> None:
    result = _played(leak, case)

    assert (result.verdict.kind, result.verdict.reason) == (kind, result.verdict.reason)
    assert kind == Kind.HOLDS or result.verdict.reason


def test_a_gateway_that_believes_everything_passes_no_case_of_the_newer_protocols() -> None:
    report = play(ToyDriver(kind=Credulous), [case for case in CASES if case.group in NEWER])

    passed = [one.case.name for one in report.results if one.verdict.kind not in FAILURES]
    assert passed == []


def test_a_driver_of_ones_own_is_played_and_the_exit_code_says_what_came_of_it() -> None:
    arguments = ["conformance", "--driver", "tests.conformance.leaky:ToyDriver", "--case", "names itself", "--json"]

    ran = CliRunner().invoke(cli, arguments, standalone_mode=False)

    assert ran.exit_code == 0, ran.output
    (gateway,) = json.loads(ran.stdout)["gateways"]
    assert (gateway["gateway"], gateway["holds"], gateway["cases"][0]["verdict"]) == ("toy", True, "holds")
