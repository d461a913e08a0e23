"""What callers see of a provider's answer, and what is said where there is none."""

from __future__ import annotations

import asyncio

from spendgate.calls import Parts, Reply
from spendgate.errors import ProviderRefusedUs, ProviderUnreachable
from spendgate.providers.attempt import AnswerTooLarge, Outbound, Unclear, Unsent


async def pass_through(parts: Parts, outbound: Outbound, *, provider: str, seconds: float) -> Reply:
    """Send a request that costs nothing and return its answer; ProviderUnreachable where there is none."""
    try:
        async with asyncio.timeout(seconds):
            answer = await parts.pool.send(outbound)
            try:
                body = await answer.read(parts.settings.answer_bytes_max)
            finally:
                await answer.aclose()
    except (Unsent, Unclear, AnswerTooLarge, TimeoutError) as error:
        raise ProviderUnreachable(broken(provider, error), retry_after_seconds=1) from error
    if answer.status in outbound.kind.credentials:
        raise ProviderRefusedUs(f"provider {provider} answered {answer.status} to the gateway's own credentials")
    headers = (*answer.headers, ("x-spendgate-provider", provider))
    return Reply(status=answer.status, headers=headers, body=scrubbed(body, outbound))


def scrubbed(data: bytes, outbound: Outbound) -> bytes:
    """Return a provider's words without the gateway's credentials, should it repeat them."""
    if outbound.secret is None or not data:
        return data
    return data.replace(outbound.secret.encode(), b"[secret]")


def not_to_be_repeated(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return the headers of an answer that no repetition changes: a client that repeats a 429 is told not to."""
    advice = {"x-should-retry", "retry-after", "retry-after-ms"}
    return (*((name, value) for name, value in headers if name not in advice), ("x-should-retry", "false"))


def broken(provider: str, error: BaseException) -> str:
    """Return what is said of an answer that did not come, or not to its end."""
    if timed_out(error):
        return f"provider {provider} gave no answer in time"
    if isinstance(error, Unclear | AnswerTooLarge | Unsent):
        return f"the answer of provider {provider} broke off: {error}"
    return f"the answer of provider {provider} was not read to its end"


def timed_out(error: BaseException) -> bool:
    """Tell a silence from a break."""
    return isinstance(error, TimeoutError) or (isinstance(error, Unclear) and error.timed_out)
