"""Runs that a key asks for: minting a key for one, and ending it; and the latch of a run that its limits have refused.

An orchestrator gives each of its agents a key of its own. Whose budget it counts on is told by the key that mints, never by
the request, which can only narrow: docs/ledger.md, "Runs".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from spendgate.admin_view import instant_text, limits_view, span_text, stop_view
from spendgate.calls import Parts
from spendgate.core.budget import Amounts, BudgetPolicy, BudgetState, Limit, Stop, run_path
from spendgate.core.event import BY_LENGTH_MAX, Event
from spendgate.core.key import KEY_BYTES, RUN_KEY_PREFIX, Key, hash_secret, new_secret
from spendgate.core.money import usd
from spendgate.core.policy import Denied, refusal_before
from spendgate.core.reservation import new_id
from spendgate.core.run import KEYS_PER_HOUR_MAX, RunRequest, TooWide, active_limit, minted_run
from spendgate.core.usage import COUNT_MAX
from spendgate.core.window import MEASURES, WINDOWS
from spendgate.directory import Caller
from spendgate.errors import (
    LedgerUnavailable,
    NotFound,
    OverBudget,
    RateLimited,
    RefusalFacts,
    RequestConflict,
    RequestInvalid,
    RevisionConflict,
)
from spendgate.store.run_keys import TooManyKeys

BODY_BYTES_MAX: Final = 16_384
MODELS_MAX: Final = 64
_ID_BYTES: Final = 10
_FIELDS: Final = ("run", "limits", "expires_after", "elapsed_max", "active_max", "models", "delegate")
_SPAN: Final = re.compile(r"([1-9][0-9]{0,5})([smhd])", re.ASCII)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Minted:
    """A key for a run: its secret is shown once, and kept nowhere."""

    secret: str = field(repr=False)
    key: Key
    run: str
    policy: BudgetPolicy


async def mint(parts: Parts, caller: Caller, body: Mapping[str, Any]) -> Minted:
    """Mint a key for a run below the caller's budget. RequestInvalid, RequestConflict, RateLimited, BudgetStopped."""
    above, now = caller.path[-1], parts.clock()
    for policy in caller.path:
        # Below a budget that is stopped nothing begins; of its limits the first call will hear.
        never = refusal_before(policy, Amounts(), now)
        if never is not None:
            raise never.refusal
    run, asked = _parsed(body, new_id(now, parts.randomness(_ID_BYTES)))
    try:
        path = run_path(above.path, run)
    except ValueError as error:
        raise _invalid("run", str(error)) from error
    try:
        policy, ends = minted_run(above, path, asked, now, keys=caller.keys)
    except TooWide as error:
        raise _invalid(error.field, str(error), budget=above.path) from error
    secret = new_secret(parts.randomness(KEY_BYTES), prefix=RUN_KEY_PREFIX)
    key = Key(
        hash=hash_secret(secret),
        name=f"{caller.key.name}/run:{run}",
        budget=path,
        models=asked.models,
        expires_at=ends,
        minted_by=tuple((one.hash, one.budget) for one in caller.keys),
    )
    try:
        event = _minted_event(caller, key, policy, now)
        await parts.offload(lambda: parts.directory.run_keys.mint(key, policy, above.path, now, event))
    except RevisionConflict as error:
        raise RequestConflict(
            f"there is a run {run!r} already, and what it has used stays used",
            facts=RefusalFacts(budget=path, field="run", next_action="take another id, or leave it out"),
        ) from error
    except TooManyKeys as error:
        raise _too_many(above.path, now) from error
    return Minted(secret=secret, key=key, run=run, policy=policy)


async def end(parts: Parts, caller: Caller, run: str) -> BudgetState:
    """End a run of the caller's budget: no further call is admitted on it or below it; again changes nothing."""
    try:
        path = run_path(caller.key.budget, run)
    except ValueError as error:
        raise _invalid("run", str(error)) from error
    stop = Stop(reason="the run was ended", at=parts.clock(), by=_by(caller))
    event = Event(kind="run_ended", subject=path, at=stop.at, by=stop.by, reason=stop.reason, after=stop_view(stop))
    await parts.offload(lambda: parts.ledger.latch(path, stop, event))
    state = await parts.offload(lambda: parts.ledger.budget(path))
    if state is None:
        raise NotFound(f"there is no run {run!r} of this key's budget", facts=RefusalFacts(field="run"))
    return state


async def latch_refused(parts: Parts, path: Sequence[BudgetPolicy], denials: Sequence[Denied]) -> None:
    """Stop the runs of a path that their own limits have refused, where their policy says so; then nothing smaller passes.

    Only a call that is refused anyway pays for this, and the first of many that are refused at once has written it.
    """
    for policy in path:
        refused = [one.refusal for one in denials if one.refusal.facts.budget == policy.path]
        if not policy.stop_on_refusal or not any(isinstance(one, OverBudget) for one in refused):
            continue
        stop = Stop(reason=f"the run was refused by its own limits: {refused[0]}", at=parts.clock(), by="spendgate")
        budget = policy.path
        try:
            await parts.offload(lambda: parts.ledger.latch(budget, stop))  # noqa: B023 - awaited in this very turn
        except LedgerUnavailable as error:
            # The caller is refused all the same; the next refusal tries again.
            parts.log.info("a run could not be stopped", budget=budget, error=str(error))


def _by(caller: Caller) -> str:
    # A key that keys have minted has the names of all of them in its own.
    return f"key {caller.key.name}"[:BY_LENGTH_MAX]


def _minted_event(caller: Caller, key: Key, run: BudgetPolicy, now: datetime) -> Event:
    """Return what the trail keeps of a minted key: whose, for which run, with what limits and until when; no secret."""
    after: dict[str, Any] = {"key": key.name, "limits": limits_view(run.limits)}
    if key.expires_at is not None:
        after["expires"] = instant_text(key.expires_at)
    if run.elapsed_max is not None:
        after["elapsed_max"] = span_text(run.elapsed_max)
    if key.models:
        after["models"] = list(key.models)
    if run.runs is not None:
        after["delegate"] = run.runs.delegate
    return Event(kind="run_key_minted", subject=run.path, at=now, by=_by(caller), after=after)


def _parsed(body: Mapping[str, Any], run: str) -> tuple[str, RunRequest]:
    for name in body:
        if name not in _FIELDS:
            raise _invalid(name[:64], f"is not known here; known: {', '.join(_FIELDS)}")
    active = _span(body, "active_max")
    asked = RunRequest(
        limits=(*_limits(body.get("limits")), *(() if active is None else (active_limit(active),))),
        expires_after=_span(body, "expires_after"),
        elapsed_max=_span(body, "elapsed_max"),
        models=_models(body.get("models")),
        delegate=_count(body.get("delegate", 0), "delegate"),
    )
    chosen = body.get("run", run)
    if not isinstance(chosen, str):
        raise _invalid("run", "must be text")
    return chosen, asked


def _limits(given: Any) -> tuple[Limit, ...]:
    found = []
    for measure, windows in _mapping(given, "limits").items():
        place = f"limits.{measure[:64]}"
        known = next((one for one in MEASURES if one == measure), None)
        if known is None:
            raise _invalid(place, f"is not a measure; known: {', '.join(MEASURES)}")
        for window, amount in _mapping(windows, place).items():
            within = next((one for one in WINDOWS if one == window), None)
            if within is None:
                raise _invalid(f"{place}.{window[:64]}", f"is not a window; known: {', '.join(WINDOWS)}")
            maximum = _usd(amount, f"{place}.{window}") if known == "usd" else _count(amount, f"{place}.{window}")
            found.append(Limit(measure=known, window=within, maximum=maximum))
    return tuple(found)


def _mapping(given: Any, field: str) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise _invalid(field, "must be an object")
    return given


def _usd(given: Any, field: str) -> int:
    # A float is none: what it stands for was lost before it came here.
    text = str(given) if isinstance(given, int | str) and not isinstance(given, bool) else ""
    try:
        return usd(text)
    except ValueError as error:
        raise _invalid(field, 'must be an amount in USD, written like 5 or "0.25"') from error


def _count(given: Any, field: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < COUNT_MAX:
        raise _invalid(field, "must be a whole number, not negative")
    return given


def _span(body: Mapping[str, Any], field: str) -> timedelta | None:
    given = body.get(field)
    if given is None:
        return None
    match = _SPAN.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise _invalid(field, "must be a time span like 90s, 30m, 2h or 1d")
    return timedelta(**{_UNITS[match.group(2)]: int(match.group(1))})


def _models(given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(one, str) and 0 < len(one) <= 256 for one in given):
        raise _invalid("models", "must be a list of routes")
    if not 1 <= len(given) <= MODELS_MAX:
        raise _invalid("models", f"must name 1 to {MODELS_MAX} routes; left out, they are those of the key that mints")
    return tuple(dict.fromkeys(given))


def _invalid(field: str, message: str, *, budget: str | None = None) -> RequestInvalid:
    return RequestInvalid(f"{field}: {message}", facts=RefusalFacts(field=field, budget=budget))


def _too_many(budget: str, now: datetime) -> RateLimited:
    ends = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    seconds = int((ends - now).total_seconds()) + 1
    return RateLimited(
        f"{KEYS_PER_HOUR_MAX} keys were minted below budget {budget} in this hour, and no more may be",
        facts=RefusalFacts(budget=budget, next_action=f"wait {seconds} s"),
        retry_after_seconds=seconds,
    )
