"""What the admin API is made of: the bodies that it takes, and an endpoint as data, whatever transport carries it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from spendgate.admin import Admin
from spendgate.admin_reconcile import ASK, Action
from spendgate.configuration_model import LimitsEntry

FILE_BODY_BYTES_MAX: Final = 2 * 1024 * 1024
BODY_BYTES_MAX: Final = 64 * 1024

Method = Literal["GET", "POST"]
Answer = dict[str, Any]


class Body(BaseModel):
    """A request's body: what is not named is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class PlanBody(Body):
    file: str = Field(description="The text of a spendgate.yaml.")


class ApplyBody(Body):
    file: str = Field(description="The text of a spendgate.yaml.")
    plan_id: str | None = Field(
        default=None, description="The id of a plan: only exactly that is applied, else it is a revision_conflict."
    )


class KeyBody(Body):
    name: str
    budget: str = Field(description="The path of the budget that its calls count on.")
    models: list[str] = Field(default=[], description="The routes that it may ask for; none named is every one.")
    expires_at: str | None = Field(default=None, description="2027-01-31 (its start, in UTC) or 2027-01-31T18:00:00Z.")


class LatchBody(Body):
    path: str = Field(description="The budget's path.")
    reason: str = Field(description="Why; one line.")


class ResumeBody(LatchBody):
    limits: LimitsEntry = Field(
        default=LimitsEntry(),
        description="Higher maximums for limits of the budget, written as in the file; with until.",
    )
    until: str | None = Field(
        default=None,
        description="When they end: 30m, 2h or 7d from now, or 2027-01-31T18:00:00Z; at most 31 days ahead.",
    )


class LiftBody(Body):
    provider: str
    model: str
    feature: str
    reason: str = Field(description="Why it is safe again; one line.")


class PricesBody(Body):
    file: str = Field(description="A YAML text with prices: and rows.")


class ReconcileBody(Body):
    action: str = Field(description="How it ends.", json_schema_extra={"enum": [*get_args(Action), ASK]})
    evidence: str | None = Field(default=None, description="Where it can be seen; one line. Not with ask.")
    cost: str | None = Field(default=None, description="What the call cost, in USD; with settle only.")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter; ``number`` is the default of one that is a whole number, ``values`` are all that one may have."""

    name: str
    description: str
    number: int | None = None
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, decoded: who asks, the names in its path, its query, and its body by the endpoint's model."""

    by: str
    names: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One request as a transport read it; ``by`` is the transport's own word, never the caller's where deployed."""

    by: str
    names: Mapping[str, str]
    query: Sequence[tuple[str, str]]
    raw: bytes
    content_encoding: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A request that is answered: ``path`` is below ``/admin``, ``call`` one use case."""

    method: Method
    path: str
    summary: str
    call: Callable[[Admin, Asked], Answer]
    # The type that says what the answer may be: of admin_answers.py.
    answer: Any
    body: type[Body] | None = None
    body_bytes_max: int = BODY_BYTES_MAX
    query: tuple[Parameter, ...] = ()

    @property
    def name(self) -> str:
        """A name for the operation, such as ``stop`` or ``reconcile``."""
        return self.call.__name__.strip("_")
