"""A case as a file for Spendgate: everything in it has the case's name."""

import json
from collections.abc import Mapping
from typing import Any

from spendgate.core.money import Picodollars, usd_text
from spendgate.local.conformance.driver import Setup


def configuration(name: str, setup: Setup, secret_of: Mapping[str, str]) -> str:
    """Return the file of a case: everything in it has the case's name."""
    family = "openai" if setup.dialect == "openai-responses" else setup.dialect
    base = f"{setup.provider_url}/v1" if family == "openai" else setup.provider_url
    served = (*(model.name for model in setup.models), *setup.unpriced)
    budgets: dict[str, Any] = {name: _budget(setup)}
    budgets |= {f"{name}/share-{at}": {"limits": {"usd": {"life": _text(one)}}} for at, one in enumerate(setup.shares)}
    leaves = [f"{name}/share-{at}" for at in range(len(setup.shares))] or [name]
    document = {
        "version": 1,
        "providers": {
            name: {
                "dialect": family,
                "base_url": base,
                # What the suite's provider documents that it adds to a request: four tokens a message.
                "framing": {"request": 0, "tooling": 0, "tool": 0, "part": 8, "output_overshoot": 0},
            }
        },
        "prices": [
            {
                "provider": name,
                "model": model.name,
                "input": _text(Picodollars(model.input * 1_000_000)),
                "output": _text(Picodollars(model.output * 1_000_000)),
                "cache_read": _text(Picodollars(model.cache_read * 1_000_000)),
                "cache_write": _text(Picodollars(model.cache_write * 1_000_000)),
                "context_tokens": 128_000,
                "output_tokens_max": 4096,
            }
            for model in setup.models
        ],
        "routes": {f"{name}-{one}": [{"provider": name, "model": one}] for one in served},
        "budgets": budgets,
        "keys": {
            key: {"budget": leaf, "secret": secret}
            for (key, secret), leaf in zip(secret_of.items(), leaves, strict=True)
        },
    }
    # A subset of YAML, and exact about what is a string.
    return json.dumps(document, indent=1)


def _budget(setup: Setup) -> dict[str, Any]:
    limits: dict[str, Any] = {"usd": {"life": _text(setup.limit)}}
    if setup.daily is not None:
        limits["usd"]["day"] = _text(setup.daily)
    if setup.requests_a_minute is not None:
        limits["requests"] = {"minute": setup.requests_a_minute}
    budget: dict[str, Any] = {"limits": limits}
    if setup.runs is not None:
        budget["runs"] = {"limits": {"usd": {"life": _text(setup.runs)}}, "expire_after": "24h"}
    return budget


def _text(amount: int) -> str:
    return usd_text(amount)
