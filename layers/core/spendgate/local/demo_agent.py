"""The demo's agent: a plain HTTP client of the gateway, like anybody's, that checks what was promised as it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx

from spendgate.core.money import usd, usd_text

# By this header the demo plays the adapter that tells the gateway how long the platform lets a call live.
DEADLINE_HEADER: Final = "x-demo-deadline"
# What the gateway keeps of it for itself (admitter.PLATFORM_MARGIN).
MARGIN_SECONDS: Final = 5
_TIMEOUT_SECONDS: Final = 60


class PromiseBroken(Exception):
    """A guarantee did not hold; the message says which, with the amounts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer to one call: what a client sees of it."""

    status: int
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def error(self) -> Mapping[str, Any]:
        """The facts of a refusal; empty for an answer."""
        found: Mapping[str, Any] = self.body.get("error", {})
        return found

    @property
    def is_admitted(self) -> bool:
        """Whether the gateway reserved for this call and sent it."""
        return self.status == 200 or self.error.get("code") == "outcome_unknown"

    @property
    def text(self) -> str:
        """What the model said."""
        text: str = self.body["choices"][0]["message"]["content"]
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How one budget stands, in picodollars."""

    path: str
    maximum: int
    settled: int
    reserved: int
    unknown: int

    @property
    def free(self) -> int:
        """What is left of the limit."""
        return max(self.maximum - self.settled - self.reserved, 0)

    def as_json(self) -> dict[str, str]:
        """Return it with exact USD."""
        names = ("maximum", "settled", "reserved", "unknown", "free")
        return {"path": self.path, **{name: usd_text(getattr(self, name)) for name in names}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The ledger and the provider at one moment: the budgets of a key's path, root first, and what was billed."""

    budgets: tuple[Standing, ...]
    hits: int
    billed: int

    @property
    def leaf(self) -> Standing:
        """The key's own budget."""
        return self.budgets[-1]


class Agent:
    """Calls the gateway, looks at budgets with its own key, and asks the provider what it has billed."""

    def __init__(self, client: httpx.AsyncClient, *, url: str, provider_url: str) -> None:
        self._client = client
        self._url = url
        self._provider_url = provider_url
        self.checks = 0
        self.admitted = 0

    async def call(
        self, key: str, messages: Sequence[Mapping[str, str]], *, output_cap: int, deadline_ms: int | None = None
    ) -> Answered:
        """Make one chat completion."""
        headers = {"authorization": f"Bearer {key}"}
        if deadline_ms is not None:
            headers[DEADLINE_HEADER] = f'{{"deadline": {deadline_ms}}}'
        body = {"model": "demo", "max_tokens": output_cap, "messages": list(messages)}
        response = await self._client.post(
            f"{self._url}/v1/chat/completions", json=body, headers=headers, timeout=_TIMEOUT_SECONDS
        )
        answered = Answered(status=response.status_code, headers=response.headers, body=response.json())
        self.admitted += answered.is_admitted
        return answered

    async def look(self, key: str) -> Look:
        """Read the provider's count, then the key's budgets, and hold them to the promises; PromiseBroken."""
        # In this order: what was billed before must still be covered when the ledger is read.
        provider = await self._get(f"{self._provider_url}/_demo")
        found = await self._get(f"{self._url}/v1/budget", authorization=f"Bearer {key}")
        budgets = tuple(_standing(budget) for budget in found["budgets"])
        for budget in budgets:
            if budget.settled + budget.reserved > budget.maximum:
                raise PromiseBroken(
                    f"{budget.path}: settled {usd_text(budget.settled)} + reserved {usd_text(budget.reserved)}"
                    f" > limit {usd_text(budget.maximum)}"
                )
        root, billed = budgets[0], int(provider["billed_picodollars"])
        if billed > root.settled + root.reserved:
            raise PromiseBroken(
                f"billed {usd_text(billed)} > ledger {usd_text(root.settled + root.reserved)} on {root.path}"
            )
        self.checks += 1
        return Look(budgets=budgets, hits=int(provider["hits"]), billed=billed)

    async def tell_provider(self, **behaviour: Any) -> None:
        """Tell the demo provider how to answer from now on."""
        response = await self._client.post(f"{self._provider_url}/_demo", json=behaviour)
        response.raise_for_status()

    async def admin(self, path: str, token: str) -> Mapping[str, Any]:
        """Ask the admin API, as an operator would."""
        return await self._get(f"{self._url}/admin{path}", authorization=f"Bearer {token}")

    async def _get(self, url: str, **headers: str) -> Mapping[str, Any]:
        response = await self._client.get(url, headers=headers, timeout=_TIMEOUT_SECONDS)
        response.raise_for_status()
        document: Mapping[str, Any] = response.json()
        return document


def _standing(budget: Mapping[str, Any]) -> Standing:
    window = next(one for one in budget["windows"] if (one["measure"], one["window"]) == ("usd", "life"))
    return Standing(
        path=budget["path"],
        **{name: usd(window[name]) for name in ("maximum", "settled", "reserved", "unknown")},
    )
