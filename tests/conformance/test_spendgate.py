"""A few cases of each kind against a running Spendgate; `make conformance` plays all of them."""

from spendgate.local.conformance.at_spendgate import Spendgate
from spendgate.local.conformance.cases import CASES
from spendgate.local.conformance.run import play
from spendgate.local.conformance.verdict import Kind

# Of what other tests of this repository do not play against the running whole.
NAMES = ("usage said twice", "names itself", "midnight")


def test_spendgate_holds_in_cases_that_stand_for_the_rest() -> None:
    report = play(Spendgate(), [case for case in CASES if case.name in NAMES])

    assert {one.case.name: (one.verdict.kind, one.verdict.reason) for one in report.results} == dict.fromkeys(
        NAMES, (Kind.HOLDS, "")
    )
