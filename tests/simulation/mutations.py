"""Faults of the ledger, of a call's way and of the sweeper; those of what calls bring are in ``mutations_of_bills.py``."""

from __future__ import annotations

from typing import Final

from tests.simulation.mutant import Mutant
from tests.simulation.mutations_of_bills import OF_BILLS

_TRANSACTIONS: Final = "spendgate.store.transactions"
_EXCHANGE: Final = "spendgate.exchange"
_WINDOW: Final = "spendgate.core.window"
_BUDGET: Final = "spendgate.core.budget"
_COUNTERS: Final = "spendgate.core.counters"
_ATTEMPT: Final = "spendgate.providers.attempt"
_SEND: Final = "response = await transport.handle_async_request(request)"

MUTANTS: Final = (
    Mutant(
        "guards",
        "the conditions of limits are dropped from the transaction",
        _TRANSACTIONS,
        "    for guard in allowed:\n        update.at_most(",
        "    for guard in ():\n        update.at_most(",
    ),
    Mutant(
        "guard-asked",
        "a guard holds the limit, not what the call leaves of it",
        "spendgate.core.policy",
        "at_most=limit.maximum - asked.of(limit.measure))",
        "at_most=limit.maximum)",
    ),
    Mutant(
        "revision",
        "the condition on a budget's revision is dropped",
        _TRANSACTIONS,
        'update.equals("rev", policy.rev).absent("stop")',
        'update.absent("stop")',
    ),
    Mutant(
        "ancestors",
        "a reservation skips the budgets above the leaf",
        _TRANSACTIONS,
        "    for policy, hold in zip(path, reservation.holds, strict=True):",
        "    for policy, hold in [(path[-1], reservation.holds[-1])]:",
    ),
    Mutant(
        "state",
        "a resolution does not check the state that it leaves",
        _TRANSACTIONS,
        'Update(table, items.reservation_key(reservation.id)).equals("state", expected)',
        "Update(table, items.reservation_key(reservation.id))",
    ),
    Mutant(
        "settles-leaf-only",
        "a settlement changes the leaf budget only",
        _TRANSACTIONS,
        "    for hold in reservation.holds:\n        changes = on_resolve",
        "    for hold in reservation.holds[-1:]:\n        changes = on_resolve",
    ),
    Mutant(
        "clipped",
        "what a provider bills above the bound is booked at the bound",
        _TRANSACTIONS,
        "            return _with_time(reservation, resolution.actual)",
        "            usd = min(resolution.actual.usd, asked.usd)\n"
        "            return _with_time(reservation, replace(resolution.actual, usd=usd))",
    ),
    Mutant(
        "no-stop",
        "a bill above the bound does not stop the budget",
        _TRANSACTIONS,
        "        if hold.budget == reservation.path and broke_bound(reservation, actual):",
        "        if False:",
    ),
    Mutant(
        "no-usage-record",
        "the usage record leaves out what is charged in full",
        _TRANSACTIONS,
        '"cost": actual.usd, "tokens"',
        '"cost": actual.usd if resolution.state == "settled" else 0, "tokens"',
    ),
    Mutant(
        "eviction-unconditional",
        "the sweeper evicts a bucket whatever it has become since it was read",
        _TRANSACTIONS,
        "        for name, value in buckets.items():\n            update.equals(name, value)\n",
        "",
    ),
    Mutant(
        "mixed-reasons",
        "a conflict beside a failed condition counts as a failed condition",
        "spendgate.store.transact",
        '    if codes - {"None", "ConditionalCheckFailed"} or "ConditionalCheckFailed" not in codes:',
        '    if "ConditionalCheckFailed" not in codes:',
    ),
    Mutant(
        "conflict-is-done",
        "a conflict that ended no transaction counts as done",
        "spendgate.store.transact",
        "            if not _is_passing(error):",
        '            if _code(error) == "TransactionCanceledException":\n                return None  # type: ignore\n'
        "            if not _is_passing(error):",
    ),
    Mutant(
        "lost-answer",
        "a reservation whose answer was lost is not known again",
        "spendgate.store.ledger",
        "                if self._is_applied(conditions.failed):",
        "                if False:",
    ),
    Mutant(
        "sends-anyway",
        "a call is sent although the ledger gave no answer",
        "spendgate.admitter",
        "            await asyncio.shield(parts.offload(lambda: parts.fallback.defer(reservation, release)))\n            raise\n",
        "            await asyncio.shield(parts.offload(lambda: parts.fallback.defer(reservation, release)))\n",
    ),
    Mutant(
        "failover",
        "a further candidate is tried though no budget opts in",
        "spendgate.admitter",
        "slice(None if any(policy.failover for policy in path) else 1)",
        "slice(None)",
    ),
    Mutant(
        "failover-unclear",
        "a further candidate is tried after an unclear outcome",
        _EXCHANGE,
        "        except (Unclear, TimeoutError) as error:\n            raise await self._unknown(broken(provider.name, error)",
        "        except (Unclear, TimeoutError) as error:\n            if not is_last:\n                return None\n"
        "            raise await self._unknown(broken(provider.name, error)",
    ),
    Mutant(
        "released-on-doubt",
        "a call whose answer breaks off or times out is released",
        _EXCHANGE,
        "        await self._end(unclear(self._candidate, what, report))",
        "        await self._end(unbilled(self._candidate, what))",
    ),
    Mutant(
        "cut-is-whole",
        "a stream that was cut is taken for a whole one",
        _EXCHANGE,
        "            if (broke is None and has_ended) or (report.finished and report.usage is not None):",
        "            if report.partial or report.usage:\n"
        "                report = replace(report, usage=report.usage or report.partial, finished=True)\n"
        "            if (broke is None and has_ended) or (report.finished and report.usage is not None):",
    ),
    Mutant(
        "unbilled-500",
        "an answer of 500 counts as proof that nothing was billed",
        "spendgate.core.kind",
        "\n_REFUSED: Final = frozenset({400,",
        "\n_REFUSED: Final = frozenset({500, 400,",
    ),
    Mutant(
        "sum-of-frames",
        "the counts of a stream's frames are added up",
        "spendgate.dialects.metering",
        "self._values[name] = max(count, self._values.get(name, 0))",
        "self._values[name] = count + self._values.get(name, 0)",
    ),
    Mutant(
        "so-far-gemini",
        "what a stream of Gemini's has counted so far is settled where its last usage has no counts",
        "spendgate.dialects.gemini_usage",
        '_is_whole(chunk.get("usageMetadata"))',
        '(chunk.get("usageMetadata") is not None)',
    ),
    Mutant(
        "so-far-chat",
        "what a chat has counted so far is settled where it puts out more after that",
        "spendgate.dialects.openai_usage",
        'or ("usage_missing" if self._uncounted else None)',
        "",
    ),
    Mutant(
        "retry",
        "a request is sent once more when its connection breaks",
        _ATTEMPT,
        f"            {_SEND}\n",
        f"            try:\n                {_SEND}\n            except httpx.ReadError:\n                {_SEND}\n",
    ),
    Mutant(
        "redirects",
        "a redirect is followed",
        _ATTEMPT,
        f"            {_SEND}\n",
        f"            {_SEND}\n            if response.has_redirect_location:\n"
        '                request.url = request.url.join(response.headers["location"])\n'
        f"                {_SEND}\n",
    ),
    Mutant(
        "broken-is-unsent",
        "a connection that breaks counts as proof that nothing was sent",
        _ATTEMPT,
        "        except httpx.HTTPError as error:\n            raise Unclear(",
        "        except httpx.HTTPError as error:\n            raise Unsent(str(error)) from error\n            raise Unclear(",
    ),
    Mutant(
        "local-day",
        "windows are named by a local time, five hours behind",
        _WINDOW,
        '    match window:\n        case "minute":\n            return f',
        '    at -= timedelta(hours=5)\n    match window:\n        case "minute":\n            return f',
    ),
    Mutant(
        "short-hour",
        "a bucket leaves the hour five minutes early",
        _WINDOW,
        "bucket_start(name) + BUCKET <= now - HOUR",
        "bucket_start(name) <= now - HOUR",
    ),
    Mutant(
        "unknown-uncounted",
        "money of unknown outcome is not counted as such",
        _COUNTERS,
        "    return {UNKNOWN: asked.usd}",
        "    return {UNKNOWN: 0}",
    ),
    Mutant(
        "unknown-stays",
        "money of unknown outcome stays counted as such when it is resolved",
        _COUNTERS,
        "    if was_unknown:\n",
        "    if False:\n",
    ),
    Mutant(
        "released-overdue",
        "the sweeper releases what is past its deadline",
        "spendgate.sweep",
        'Resolution(state="unknown", reason=OVERDUE, by=SWEEPER)',
        'Resolution(state="released", reason=OVERDUE, by=SWEEPER)',
    ),
    Mutant(
        "charged-early",
        "the sweeper charges what is unknown at once",
        "spendgate.sweep",
        "    charge_at = reservation.deadline + charge_after\n",
        "    charge_at = reservation.deadline\n",
    ),
    Mutant(
        "revoked-later",
        "a revoked key lives until this function's clock reaches its revocation",
        "spendgate.directory",
        "        if key.revoked_at is not None:",
        "        if key.revoked_at is not None and key.revoked_at <= now:",
    ),
    Mutant(
        "revoked-cached",
        "a key that is revoked or moved does not raise the revision of its budget",
        "spendgate.store.config",
        "        raised = [raise_rev_step(self.ledger_table, path) for path in sorted(budgets)]",
        "        raised: list[Step] = []",
    ),
    Mutant(
        "idempotency",
        "an idempotency key is not claimed with its reservation",
        _TRANSACTIONS,
        "    if reservation.idempotency_key is not None:\n",
        "    if False:\n",
    ),
    Mutant(
        "temporary-stays",
        "limits that were raised for a while stay raised",
        _BUDGET,
        "self.temporary is not None and now < self.temporary.until else None",
        "self.temporary is not None else None",
    ),
    Mutant(
        "unbudgeted-anywhere",
        "a caller passes without a price though a budget of its path has a limit",
        _BUDGET,
        "    return not any(policy.limits for policy in path) and any(",
        "    return any(",
    ),
    Mutant(
        "runs-observe",
        "a run only observes, whatever the budget above it does",
        _BUDGET,
        "        mode=parent_policy.mode,\n",
        '        mode="observe",\n',
    ),
    Mutant(
        "reconciled-at-bound",
        "an operator's settlement books what was held and not what the bill says",
        "spendgate.admin_reconcile",
        "settled = Amounts(usd=cost or 0, ",
        "settled = Amounts(usd=asked.usd, ",
    ),
    *OF_BILLS,
)
