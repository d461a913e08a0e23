"""A few cases of each kind against a running Spendgate; `make conformance` plays all of them."""

from spendgate.local.conformance.at_spendgate import Spendgate
from spendgate.local.conformance.cases import CASES
from spendgate.local.conformance.run import play
from spendgate.local.conformance.verdict import Kind

# It needs the gateway's clock: what does not is played in test_target.
NAMES = ("midnight",)


def test_spendgate_holds_in_cases_that_stand_for_the_rest() -> None:
    report = play(Spendgate(), [case for case in CASES if case.name in NAMES])

    assert {one.case.name: (one.verdict.kind, one.verdict.reason) for one in report.results} == dict.fromkeys(
        NAMES, (Kind.HOLDS, "")
    )
