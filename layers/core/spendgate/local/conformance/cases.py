"""Every case of the suite, by group."""

from typing import Final

from spendgate.local.conformance import cases_answers, cases_load, cases_policy
from spendgate.local.conformance.case import GROUPS, Case


def _ordered() -> tuple[Case, ...]:
    found = (*cases_load.CASES, *cases_answers.CASES, *cases_policy.CASES)
    return tuple(sorted(found, key=lambda case: GROUPS.index(case.group)))


CASES: Final = _ordered()
