"""The admin API's endpoints, one row each: a method and a path, a body and a query, and the use case that is called."""

from typing import Final

from spendgate import admin_answers as answers
from spendgate import admin_records as records
from spendgate.admin import LIST_LENGTH_MAX, Admin
from spendgate.admin_input import instant_of, invalid
from spendgate.admin_models import (
    FILE_BODY_BYTES_MAX,
    Answer,
    ApplyBody,
    Asked,
    Endpoint,
    KeyBody,
    LatchBody,
    LiftBody,
    Parameter,
    PlanBody,
    PricesBody,
    ReconcileBody,
    ResumeBody,
)
from spendgate.admin_openapi import document
from spendgate.admin_reported import REPORT
from spendgate.configuration_values import limits
from spendgate.core.reservation import STATES

_LIMIT: Final = Parameter("limit", f"At most so many, up to {LIST_LENGTH_MAX}.", number=50)


# One use case each; the function's name is the operation's.


def _plan(admin: Admin, asked: Asked) -> Answer:
    return admin.plan(asked.body.file)


def _apply(admin: Admin, asked: Asked) -> Answer:
    return admin.apply(asked.body.file, by=asked.by, plan_id=asked.body.plan_id)


def _budgets(admin: Admin, asked: Asked) -> Answer:
    return admin.budgets(asked.query["path"])


def _keys(admin: Admin, _: Asked) -> Answer:
    return admin.keys.list()


def _create_key(admin: Admin, asked: Asked) -> Answer:
    body: KeyBody = asked.body
    allowed = "a date like 2027-01-31 (its start, in UTC) or 2027-01-31T18:00:00Z"
    expires_at = None if body.expires_at is None else instant_of(body.expires_at, "expires_at", allowed)
    return admin.keys.create(body.name, budget=body.budget, models=body.models, expires_at=expires_at, by=asked.by)


def _revoke_key(admin: Admin, asked: Asked) -> Answer:
    return admin.keys.revoke(asked.names["name"], by=asked.by)


def _stop(admin: Admin, asked: Asked) -> Answer:
    return admin.stop(asked.body.path, reason=asked.body.reason, by=asked.by)


def _resume(admin: Admin, asked: Asked) -> Answer:
    body: ResumeBody = asked.body
    return admin.resume(body.path, reason=body.reason, limits=limits(body.limits), until=body.until, by=asked.by)


def _reservations(admin: Admin, asked: Asked) -> Answer:
    return admin.reservations(**asked.query)


def _reservation(admin: Admin, asked: Asked) -> Answer:
    return admin.reservation(asked.names["id"])


def _reconcile(admin: Admin, asked: Asked) -> Answer:
    body: ReconcileBody = asked.body
    return admin.reconcile(asked.names["id"], action=body.action, cost=body.cost, evidence=body.evidence, by=asked.by)


def _prices(admin: Admin, asked: Asked) -> Answer:
    provider, model = asked.query["provider"], asked.query["model"]
    if model is not None and provider is None:
        raise invalid("provider", "goes with model")
    return admin.prices.list(provider, model)


def _add_prices(admin: Admin, asked: Asked) -> Answer:
    return admin.prices.add(asked.body.file, by=asked.by)


def _check_prices(admin: Admin, _: Asked) -> Answer:
    return admin.prices.check()


def _catalogue(admin: Admin, _: Asked) -> Answer:
    return admin.catalogue_state()


def _blocks(admin: Admin, _: Asked) -> Answer:
    return admin.blocks.list()


def _lift_block(admin: Admin, asked: Asked) -> Answer:
    body: LiftBody = asked.body
    return admin.blocks.lift(
        provider=body.provider, model=body.model, feature=body.feature, reason=body.reason, by=asked.by
    )


def _audit(admin: Admin, _: Asked) -> Answer:
    return admin.audit()


def _events(admin: Admin, asked: Asked) -> Answer:
    return admin.events(**asked.query)


def _alerts(admin: Admin, asked: Asked) -> Answer:
    return admin.alerts.recent(asked.query["limit"])


def _test_alerts(admin: Admin, _: Asked) -> Answer:
    return admin.alerts.test()


def _openapi(_: Admin, __: Asked) -> Answer:
    return document(ENDPOINTS)


ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    Endpoint(
        method="POST",
        path="/plan",
        summary="What applying a configuration would change, and the plan's id.",
        call=_plan,
        answer=answers.Plan,
        body=PlanBody,
        body_bytes_max=FILE_BODY_BYTES_MAX,
    ),
    Endpoint(
        method="POST",
        path="/apply",
        summary="Apply a configuration; secrets of new keys are in the answer, this once.",
        call=_apply,
        answer=answers.Applied,
        body=ApplyBody,
        body_bytes_max=FILE_BODY_BYTES_MAX,
    ),
    Endpoint(
        method="GET",
        path="/budgets",
        summary="Every budget with its windows, or one and all below it; and what is blocked.",
        call=_budgets,
        answer=answers.Budgets,
        query=(Parameter("path", "A budget's path."),),
    ),
    Endpoint(method="GET", path="/keys", summary="Every key, never a secret.", call=_keys, answer=answers.Keys),
    Endpoint(
        method="POST",
        path="/keys",
        summary="Make a key; its secret is in the answer, this once.",
        call=_create_key,
        answer=answers.NewKey,
        body=KeyBody,
    ),
    Endpoint(
        method="POST",
        path="/keys/{name}/revoke",
        summary="Revoke a key, from the next call on.",
        call=_revoke_key,
        answer=answers.Keys,
    ),
    Endpoint(
        method="POST",
        path="/stop",
        summary="Stop a budget and all below it.",
        call=_stop,
        answer=records.Budget,
        body=LatchBody,
    ),
    Endpoint(
        method="POST",
        path="/resume",
        summary="Take the stop off a budget; with limits raise these until an instant, from which its own count again.",
        call=_resume,
        answer=records.Budget,
        body=ResumeBody,
    ),
    Endpoint(
        method="GET",
        path="/reservations",
        summary="Reservations, the newest first.",
        call=_reservations,
        answer=answers.Reservations,
        query=(
            Parameter("budget", "Only of this budget and all below it."),
            Parameter("state", "Only in this state.", values=STATES),
            _LIMIT,
        ),
    ),
    Endpoint(
        method="GET",
        path="/reservations/{id}",
        summary="One reservation.",
        call=_reservation,
        answer=records.Reservation,
    ),
    Endpoint(
        method="POST",
        path="/reservations/{id}/reconcile",
        summary="End a reservation by hand.",
        call=_reconcile,
        answer=answers.Reconciled,
        body=ReconcileBody,
    ),
    Endpoint(
        method="GET",
        path="/prices",
        summary="Every price row, or those of a provider or of a model, each beside the shipped one.",
        call=_prices,
        answer=answers.Prices,
        query=(Parameter("provider", "A provider's name."), Parameter("model", "Any name of a model of it.")),
    ),
    Endpoint(
        method="POST",
        path="/prices",
        summary="Add price rows; none is ever overwritten.",
        call=_add_prices,
        answer=answers.AddedPrices,
        body=PricesBody,
        body_bytes_max=FILE_BODY_BYTES_MAX,
    ),
    Endpoint(
        method="GET",
        path="/prices/check",
        summary="Candidates of routes without a price, and shipped prices that nobody looked at for too long.",
        call=_check_prices,
        answer=answers.CheckedPrices,
    ),
    Endpoint(
        method="GET",
        path="/catalogue",
        summary="The shipped prices of the configured providers: stored, missing, changed, stale, and the last load.",
        call=_catalogue,
        answer=answers.Catalogue,
    ),
    Endpoint(
        method="GET",
        path="/blocks",
        summary="What is refused since a bill broke its bound.",
        call=_blocks,
        answer=answers.Blocks,
    ),
    Endpoint(
        method="POST",
        path="/blocks/lift",
        summary="Take a block away.",
        call=_lift_block,
        answer=answers.Lifted,
        body=LiftBody,
    ),
    REPORT,
    Endpoint(
        method="GET",
        path="/audit",
        summary="Every counter that is not the sum over its reservations.",
        call=_audit,
        answer=answers.Audit,
    ),
    Endpoint(
        method="GET",
        path="/events",
        summary="What operators changed, and which runs keys have minted or ended, the newest first.",
        call=_events,
        answer=answers.Events,
        query=(
            Parameter("by", "Only what operators did, or only what keys did.", values=("operators", "keys")),
            _LIMIT,
        ),
    ),
    Endpoint(
        method="GET",
        path="/alerts",
        summary="What people were told in the last days, the newest first, and what waits.",
        call=_alerts,
        answer=answers.Alerts,
        query=(_LIMIT,),
    ),
    Endpoint(
        method="POST",
        path="/alerts/test",
        summary="Send one test alert of each kind.",
        call=_test_alerts,
        answer=answers.TestedAlerts,
    ),
    Endpoint(method="GET", path="/openapi.json", summary="This document.", call=_openapi, answer=answers.Document),
)
