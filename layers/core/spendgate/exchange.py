"""A call after its reservation: send once, pass the answer on, and end the reservation; every path ends in ``_end``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from spendgate.call_record import count, fields_of
from spendgate.calls import Admitted, Parts, Reply
from spendgate.core.address import network_of
from spendgate.core.alert import provider_spend_limit
from spendgate.core.feature import uses_stamped
from spendgate.core.kind import kind_of, url_of
from spendgate.core.money import usd_text
from spendgate.core.reservation import Resolution
from spendgate.core.route import Provider
from spendgate.core.usage import UsageReport
from spendgate.dialects.dialect import Meter
from spendgate.errors import (
    InternalFault,
    LedgerError,
    LedgerUnavailable,
    OutcomeUnknown,
    ProviderRefusedUs,
    ProviderUnreachable,
    RefusalFacts,
    Refused,
)
from spendgate.metering import answered, refused_at_a_fee, unbilled, unclear
from spendgate.passing import broken, not_to_be_repeated, scrubbed, timed_out
from spendgate.providers import outcome
from spendgate.providers.attempt import Answer, AnswerTooLarge, Outbound, Unclear, Unsent
from spendgate.providers.signing import SignatureMissing
from spendgate.relay import Relay
from spendgate.store.transactions import broke_bound
from spendgate.tracking import ShownId, Spawn

_STOPPED: Final = "the gateway was stopped while the call was in flight"
_ERROR_BYTES_MAX: Final = 1_000_000


class Exchange:
    """One admitted call. ``run`` replies or raises Refused; afterwards, or by the end of a stream, it has ended."""

    def __init__(self, parts: Parts, admitted: Admitted, spawn: Spawn) -> None:
        self._parts = parts
        self._admitted = admitted
        self._reservation = admitted.reservation
        self._spawn = spawn
        self._started = time.perf_counter()
        self._away_seconds = 0.0
        self._candidate = admitted.candidates[0][0]
        self._request = admitted.request
        self._sent = False
        self._ended = False

    async def run(self) -> Reply:
        """Try the candidates and return the reply."""
        try:
            last = len(self._admitted.candidates) - 1
            for number, (candidate, provider) in enumerate(self._admitted.candidates):
                self._candidate = candidate
                # How a request is spelled and an answer is counted is the provider's habit.
                self._request = replace(self._admitted.request, kind=kind_of(provider))
                reply = await self._attempt(provider, is_last=number == last)
                if reply is not None:
                    return reply
            raise InternalFault("a route without a candidate")  # noqa: TRY301 - told like any fault of ours
        except BaseException as error:
            if not self._ended:
                if not isinstance(error, asyncio.CancelledError):
                    self._parts.log.exception("a call failed for a reason of ours", reservation=self._reservation.id)
                await self._abandon(error)
            if isinstance(error, Refused):
                raise
            if isinstance(error, asyncio.CancelledError):
                raise self._stopped() from error
            raise InternalFault("a fault of the gateway", facts=self._facts()) from error

    async def _attempt(self, provider: Provider, *, is_last: bool) -> Reply | None:
        """Try one candidate; None where it is proven unbilled and another may be tried under the same reservation."""
        outbound = await self._outbound(provider)
        self._sent = True
        try:
            with self._away():
                async with asyncio.timeout(self._seconds_left()):
                    answer = await self._parts.pool.send(outbound)
        except Unsent as unsent:
            self._sent = False
            if not is_last:
                return None
            reason = f"no connection to provider {provider.name}: {unsent}"
            await self._end(unbilled(self._candidate, reason))
            told = f"{reason}; nothing was sent"
            raise ProviderUnreachable(told, facts=self._facts(), retry_after_seconds=1) from unsent
        except (Unclear, TimeoutError) as error:
            raise await self._unknown(broken(provider.name, error), timed_out=timed_out(error)) from error
        try:
            if not outcome.is_answer(answer.status):
                return await self._error(answer, outbound, is_last=is_last)
            if not self._admitted.call.dialect.is_stream(answer.content_type):
                return await self._whole(answer, outbound)
        except BaseException:
            await answer.aclose()
            raise
        relay = Relay()
        self._spawn(self._pump(answer, outbound, relay))
        # From here on the pump ends the reservation.
        self._ended = True
        return Reply(status=answer.status, headers=(*self._told(answer), *self._headers(None)), pieces=relay)

    async def _outbound(self, provider: Provider) -> Outbound:
        dialect = self._admitted.call.dialect
        secret = None
        if provider.secret is not None:
            try:
                secret = await self._parts.secret(provider.secret)
            except LedgerUnavailable as missing:
                await self._end(unbilled(self._candidate, "the provider's secret is missing"))
                raise ProviderRefusedUs(str(missing), facts=self._facts()) from missing
        request, model = self._request, self._candidate.model
        query = dialect.query(request)
        path = dialect.upstream_path(request, model) + (f"?{query}" if query else "")
        cap = None if self._reservation.unpriced else self._reservation.output_cap
        outbound = Outbound(
            kind=kind_of(provider),
            url=url_of(provider, path=path, model=model),
            body=dialect.outgoing(request, model, cap),
            headers=dialect.headers(request),
            secret=secret,
            network=network_of(provider),
        )
        return await self._signed(outbound) if outbound.kind.signed and secret is None else outbound

    async def _signed(self, outbound: Outbound) -> Outbound:
        try:
            headers = await self._parts.offload(lambda: self._parts.sign(outbound))
        except SignatureMissing as missing:
            await self._end(unbilled(self._candidate, "the gateway has no credentials to sign with"))
            raise ProviderRefusedUs(str(missing), facts=self._facts()) from missing
        return replace(outbound, headers=headers)

    def _told(self, answer: Answer) -> tuple[tuple[str, str], ...]:
        """Return the headers of a streamed answer, whose content type may be that of the caller's protocol."""
        told = self._admitted.call.dialect.answer_type
        return tuple((name, told(value) if name == "content-type" else value) for name, value in answer.headers)

    async def _whole(self, answer: Answer, outbound: Outbound) -> Reply:
        try:
            with self._away():
                async with asyncio.timeout(self._seconds_left()):
                    body = await answer.read(self._parts.settings.answer_bytes_max)
        except (Unclear, AnswerTooLarge, TimeoutError) as error:
            told = broken(self._candidate.provider, error)
            raise await self._unknown(told, timed_out=timed_out(error)) from error
        await answer.aclose()
        report = self._admitted.call.dialect.report(body, self._request)
        resolution = answered(self._reservation, self._candidate, report, self._parts.clock())
        await self._end(resolution)
        headers = (*answer.headers, *self._headers(resolution))
        return Reply(status=answer.status, headers=headers, body=scrubbed(body, outbound))

    async def _error(self, answer: Answer, outbound: Outbound, *, is_last: bool) -> Reply | None:
        provider, status = self._candidate.provider, answer.status
        reason = f"provider {provider} answered {status}"
        if not outcome.may_be_unbilled(outbound.kind, status):
            raise await self._unknown(reason, timed_out=False)
        try:
            async with asyncio.timeout(self._seconds_left()):
                body = await answer.read(_ERROR_BYTES_MAX)
        except (Unclear, AnswerTooLarge, TimeoutError):
            # A status that proves it has said so already: only the provider's words are lost.
            body = b""
        await answer.aclose()
        verdict = outcome.verdict(outbound.kind, status, body, named=dict(answer.headers).get("x-amzn-errortype"))
        if not verdict.unbilled and not verdict.fee:
            raise await self._unknown(reason, timed_out=False)
        if verdict.spend_limit is not None:
            reason = f"{reason}: provider spend limit ({verdict.spend_limit})"
            self._parts.log.info(
                "provider spend limit",
                provider=provider,
                model=self._candidate.model,
                status=status,
                spend_limit=verdict.spend_limit,
                reservation=self._reservation.id,
            )
        if verdict.elsewhere and not is_last:
            await self._tell_limit(verdict.spend_limit)
            return None
        cost = "nothing was billed"
        resolution = unbilled(self._candidate, reason)
        if verdict.fee:
            cost = f"it may charge {usd_text(verdict.fee)} USD for that, which are booked"
            resolution = refused_at_a_fee(self._reservation, self._candidate, reason, verdict.fee)
        await self._end(resolution)
        await self._tell_limit(verdict.spend_limit)
        if verdict.credentials:
            to = "the content, or the gateway's own credentials" if verdict.fee else "the gateway's own credentials"
            raise ProviderRefusedUs(f"{reason} to {to}; {cost}", facts=self._facts())
        if not body:
            raise ProviderRefusedUs(f"{reason} without a word; {cost}", facts=self._facts())
        passed = answer.headers if verdict.spend_limit is None else not_to_be_repeated(answer.headers)
        headers = (*passed, *self._headers(resolution))
        return Reply(status=status, headers=headers, body=scrubbed(body, outbound))

    async def _tell_limit(self, limit: str | None) -> None:
        """Let people know that a provider's own limit of spend is reached."""
        outbox = self._parts.outbox
        if limit is not None and outbox is not None:
            path, now = self._reservation.path, self._parts.clock()
            await outbox.tell(provider_spend_limit(self._candidate, limit=limit, path=path, now=now))

    async def _pump(self, answer: Answer, outbound: Outbound, relay: Relay) -> None:
        """Read a streamed answer to its end, whoever listens, and settle before its last frame goes out."""
        self._ended = False
        dialect = self._admitted.call.dialect
        meter = dialect.meter(self._request)
        can_be_asked = outbound.kind.look_up(dialect.name) is not None
        shown = ShownId(self._parts, self._reservation, self._candidate, is_wanted=can_be_asked)
        broke: BaseException | None = None
        try:
            with self._away():
                async with asyncio.timeout(self._seconds_left()):
                    async for piece in answer.pieces():
                        passed = scrubbed(meter.feed(piece), outbound)
                        shown.look(meter, self._spawn)
                        await relay.send(passed)
        except BaseException as error:
            broke = error
            if not isinstance(error, Unclear | TimeoutError):
                raise
        finally:
            # One way out, also where the gateway is stopped: what the answer has told so far decides.
            await asyncio.shield(self._end_stream(answer, meter, broke, outbound, relay))

    async def _end_stream(
        self, answer: Answer, meter: Meter, broke: BaseException | None, outbound: Outbound, relay: Relay
    ) -> None:
        try:
            await answer.aclose()
            last = meter.end()
            report = meter.report()
            has_ended = report.finished or report.problem == "error_in_stream"
            if (broke is None and has_ended) or (report.finished and report.usage is not None):
                await self._end(answered(self._reservation, self._candidate, report, self._parts.clock()))
                await relay.send(scrubbed(last, outbound))
                return
            if broke is None:
                # A body that ends without the protocol's end looks whole to no one but a careless reader: say it.
                broke = Unclear(report.problem or "it has no end", timed_out=False)
                await relay.send(scrubbed(last, outbound))
            if not isinstance(broke, Unclear | TimeoutError):
                self._parts.log.info(
                    "a stream ended early", reservation=self._reservation.id, error=type(broke).__name__
                )
            told = broken(self._candidate.provider, broke)
            refused = await self._unknown(told, timed_out=timed_out(broke), report=report)
            error = self._admitted.call.dialect.stream_error(refused, self._reservation.id)
            await relay.send(meter.interrupted(error))
        finally:
            await relay.close()

    # -- the one way out ---------------------------------------------------------------------------------------------

    async def _end(self, resolution: Resolution) -> None:
        """Resolve the reservation; what the ledger does not take in time is left to the fallback, the money held."""
        self._ended = True
        parts, reservation = self._parts, self._reservation
        try:
            await parts.offload(
                lambda: parts.ledger.resolve(reservation.id, resolution, parts.clock(), known=reservation)
            )
        except LedgerUnavailable:
            # Shielded: what waits for a thread would be dropped with a task that is cancelled.
            await asyncio.shield(parts.offload(lambda: parts.fallback.defer(reservation, resolution)))
            parts.metrics.add({"SettlementsDeferred": 1})
        except LedgerError as error:
            parts.log.exception("a reservation could not be resolved", reservation=reservation.id, error=str(error))
        if resolution.actual is not None and broke_bound(reservation, resolution.actual):
            parts.directory.forget_blocks()
        self._tell(resolution)

    async def _unknown(self, what: str, *, timed_out: bool, report: UsageReport | None = None) -> OutcomeUnknown:
        """Mark the outcome unknown and return what the caller is told: the money stays reserved."""
        await self._end(unclear(self._candidate, what, report))
        return self._outcome_unknown(what, timed_out=timed_out)

    def _outcome_unknown(self, what: str, *, timed_out: bool) -> OutcomeUnknown:
        held = usd_text(self._reservation.asked.usd)
        action = "do not repeat the call blindly: it may have been billed; an operator reconciles the reservation"
        return OutcomeUnknown(
            f"{what}; whether it is billed is not known, so {held} USD stay reserved",
            status=504 if timed_out else 502,
            facts=replace(self._facts(), next_action=action, state="unknown"),
        )

    async def _abandon(self, error: BaseException) -> None:
        """End a call that can go no further: nothing was sent, or nobody knows."""
        if isinstance(error, asyncio.CancelledError):
            reason = _STOPPED
        else:
            reason = f"a fault of the gateway: {type(error).__name__}"
        resolution = unclear(self._candidate, reason) if self._sent else unbilled(self._candidate, reason)
        await asyncio.shield(self._end(resolution))

    def _stopped(self) -> Refused:
        """Return what the caller of a call is told that the gateway does not wait for any longer."""
        if not self._sent:
            return LedgerUnavailable("the gateway is stopping; nothing was sent", retry_after_seconds=1)
        return self._outcome_unknown(_STOPPED, timed_out=False)

    def _seconds_left(self) -> float:
        return (self._admitted.until - self._parts.clock()).total_seconds()

    def _facts(self) -> RefusalFacts:
        return RefusalFacts(budget=self._reservation.path, reservation=self._reservation.id)

    def _headers(self, resolution: Resolution | None) -> tuple[tuple[str, str], ...]:
        """Return the headers that tell the caller what was reserved, and what it cost once that is known."""
        reservation = self._reservation
        headers = [
            ("x-spendgate-reservation", reservation.id),
            ("x-spendgate-reserved-usd", usd_text(reservation.asked.usd)),
            ("x-spendgate-provider", self._candidate.provider),
            ("x-spendgate-model", self._candidate.model),
        ]
        if reservation.stamped:
            headers.append(("x-spendgate-output-cap", str(reservation.output_cap)))
        calls = uses_stamped(self._request.facts)
        if calls is not None:
            headers.append(("x-spendgate-tool-call-cap", str(calls)))
        if resolution is not None:
            headers.append(("x-spendgate-state", resolution.state))
            if resolution.state == "released":
                headers.append(("x-spendgate-cost-usd", "0"))
            elif resolution.actual is not None and not reservation.unpriced:
                headers.append(("x-spendgate-cost-usd", usd_text(resolution.actual.usd)))
        return tuple(headers)

    def _tell(self, resolution: Resolution) -> None:
        now, call = time.perf_counter(), self._admitted.call
        fields = fields_of(
            call,
            self._reservation,
            resolution,
            kind="" if self._request.kind is None else self._request.kind.name,
            milliseconds=round((now - self._started) * 1000),
        )
        self._parts.log.info("call", **fields)
        arrived = self._started if call.arrived is None else call.arrived
        own = round((now - arrived - self._away_seconds) * 1000)
        count(self._parts.metrics, self._reservation, resolution, own_milliseconds=max(own, 0))

    @contextmanager
    def _away(self) -> Iterator[None]:
        """Time what is spent waiting for others: the provider, and a caller who reads slowly."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._away_seconds += time.perf_counter() - began
