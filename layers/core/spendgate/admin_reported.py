"""The endpoint of the report: what it is asked, and what it answers. ``admin_report.py`` adds up."""

from typing import Annotated, Final

from pydantic import Field

# Of this one since pydantic reads no other before Python 3.12.
from typing_extensions import TypedDict

from spendgate.admin import Admin
from spendgate.admin_models import Answer, Asked, Endpoint, Parameter
from spendgate.admin_records import Count, Day, Money, Usage, closed
from spendgate.core.report import By


@closed
class ReportedSums(TypedDict):
    calls: Annotated[Count, Field(description="Calls that have ended, however they did.")]
    calls_settled: Count
    calls_released: Count
    calls_charged: Count
    tokens: Annotated[Count, Field(description="As limits count them: of a charged call the most that it asked for.")]
    usage: Annotated[Usage, Field(description="Of settled calls.")]
    cost: Money


@closed
class _ReportedNames(TypedDict, total=False):
    day: Day
    budget: str
    provider: Annotated[str | None, Field(description="None where nobody served the call, or nobody knows who did.")]
    model: str | None


@closed
class ReportedRow(ReportedSums, _ReportedNames):
    """A sum, with the names that `by` asks for."""


@closed
class Held(TypedDict):
    reserved: Annotated[Money, Field(description="For calls that have not ended.")]
    unknown: Annotated[Money, Field(description="Of it, for calls whose outcome nobody knows.")]


_ReportedDays = TypedDict("_ReportedDays", {"from": Day, "to": Day})


@closed
class Report(_ReportedDays):
    """One part of a report: rows of one name in several parts add up, and so do the totals."""

    budget: str | None
    by: list[By]
    rows: list[ReportedRow]
    total: ReportedSums
    held: Annotated[Held | None, Field(description="As it is now; in the first part only.")]
    runs_complete_from: Annotated[
        Day | None, Field(description="Usage of runs before this day may be missing; none where nothing is.")
    ]
    next: Annotated[str | None, Field(description="The cursor of the next part; none at the end.")]


def _report(admin: Admin, asked: Asked) -> Answer:
    days = {"first": asked.query["from"], "last": asked.query["to"]}
    return admin.report.part(**days, **{name: asked.query[name] for name in ("by", "budget", "cursor")})


REPORT: Final = Endpoint(
    method="GET",
    path="/report",
    summary="Calls, tokens and cost of what has ended, added up by day, budget, provider or model; in parts.",
    call=_report,
    answer=Report,
    query=(
        Parameter("from", "The first UTC day, like 2026-11-01; otherwise the first of the last day's month."),
        Parameter("to", "The last UTC day; otherwise today."),
        Parameter("by", "One or more of day, budget, provider, model, with commas between; otherwise budget."),
        Parameter("budget", "Only of this budget and all below it; or of one run."),
        Parameter("cursor", "`next` of the part before, with the same days and budget."),
    ),
)
