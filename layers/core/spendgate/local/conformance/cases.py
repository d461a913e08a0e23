"""Every case of the suite, by group."""

from typing import Final

from spendgate.local.conformance import (
    cases_budgets,
    cases_failures,
    cases_gemini,
    cases_load,
    cases_media,
    cases_names,
    cases_refusals,
    cases_responses,
    cases_streams,
)
from spendgate.local.conformance.case import GROUPS, Case


def _ordered() -> tuple[Case, ...]:
    found = (
        *cases_load.CASES,
        *cases_media.CASES,
        *cases_streams.CASES,
        *cases_failures.CASES,
        *cases_names.CASES,
        *cases_budgets.CASES,
        *cases_refusals.CASES,
        *cases_responses.CASES,
        *cases_gemini.CASES,
    )
    return tuple(sorted(found, key=lambda case: GROUPS.index(case.group)))


CASES: Final = _ordered()
