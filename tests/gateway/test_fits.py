"""The output cap that a refusal says fits does fit, whichever limits of whichever budgets are in the way."""

from collections.abc import Mapping
from typing import Any, Final

import httpx
import pytest

from spendgate.dialects.registry import DIALECTS
from tests.gateway.stand import Stand

BUDGETS = {
    "a smaller window behind the limit that refuses": '$: {limits: {usd: {request: "0.05", hour: "0.02"}}}',
    "a tighter budget below": '$: {limits: {usd: {request: "0.05"}}}\n$/below: {limits: {usd: {hour: "0.02"}}}',
    "tokens beside money": '$: {limits: {usd: {request: "0.05"}, tokens: {day: 900}}}',
}


def fits_of(answer: Any) -> int:
    assert answer.status_code == 402
    return int(answer.json()["error"]["fits"]["max_output_tokens"])


@pytest.mark.parametrize("budgets", BUDGETS.values(), ids=BUDGETS)
def test_what_is_said_to_fit_passes_and_one_token_more_does_not(stand: Stand, budgets: str) -> None:
    key = stand.open(budgets)
    stand.chat(key, max_completion_tokens=10)
    hits = stand.hits

    fits = fits_of(stand.chat(key, max_completion_tokens=100_000))

    assert fits_of(stand.chat(key, max_completion_tokens=fits + 1)) == fits
    assert stand.hits == hits
    assert stand.chat(key, max_completion_tokens=fits).status_code == 200


def test_a_rate_that_is_used_up_too_leaves_no_cap_that_fits(stand: Stand) -> None:
    key = stand.open('$: {limits: {usd: {day: "0.02"}, requests: {day: 1}}}')
    stand.chat(key, max_completion_tokens=10)

    answer = stand.chat(key, max_completion_tokens=1900)

    assert answer.status_code == 402
    assert answer.json()["error"]["fits"] is None


ASKED: Final = [{"role": "user", "content": "Hello"}]
CONVERSED: Final = [{"role": "user", "content": [{"text": "Hello"}]}]
AT_BEDROCK: Final = "/model/us.anthropic.claude-demo-v1:0"
WITHOUT_OUTPUT: Final = frozenset({"openai-embeddings", "gemini-embeddings", "gemini-batch-embeddings"})


def asking(cap: int) -> Mapping[str, tuple[str, dict[str, Any]]]:
    """The path and the body of a small request of each dialect with an output cap."""
    gemini = {"contents": [{"parts": [{"text": "Hello"}]}], "generationConfig": {"maxOutputTokens": cap}}
    converse = {"messages": CONVERSED, "inferenceConfig": {"maxTokens": cap}}
    return {
        "openai": ("/v1/chat/completions", {"model": "gpt", "messages": ASKED, "max_completion_tokens": cap}),
        "openai-responses": ("/v1/responses", {"model": "gpt", "input": "Hello", "max_output_tokens": cap}),
        "openai-completions": ("/v1/completions", {"model": "gpt", "prompt": "Hello", "max_tokens": cap}),
        "anthropic": ("/v1/messages", {"model": "claude", "messages": ASKED, "max_tokens": cap}),
        "gemini": ("/v1beta/models/gemini:generateContent", gemini),
        "gemini-stream": ("/v1beta/models/gemini:streamGenerateContent?alt=sse", gemini),
        "bedrock-converse": (f"{AT_BEDROCK}/converse", converse),
        "bedrock-converse-stream": (f"{AT_BEDROCK}/converse-stream", converse),
    }


def told(answer: httpx.Response, dialect: str) -> dict[str, Any]:
    """The facts of a refusal, wherever its dialect has them."""
    document = answer.json()
    if DIALECTS[dialect].family == "bedrock":
        return dict(document["details"])
    details = document["error"].get("details", document["error"])
    return dict(details[0] if isinstance(details, list) else details)


def test_every_dialect_with_output_is_asked() -> None:
    assert asking(1).keys() == DIALECTS.keys() - WITHOUT_OUTPUT


@pytest.mark.parametrize("dialect", sorted(asking(1)))
@pytest.mark.parametrize(
    ("budget", "code"), [('{request: "0.01"}', "request_too_expensive"), ('{day: "0.01"}', "over_budget")]
)
def test_in_every_dialect_the_cap_that_is_told_passes_and_one_more_does_not(
    stand: Stand, dialect: str, budget: str, code: str
) -> None:
    key = stand.open(f"$: {{limits: {{usd: {budget}}}}}")
    if code == "over_budget":
        # Something of the day has to be used up: what never fits is told by the other name.
        assert stand.chat(key, max_completion_tokens=100).status_code == 200
        stand.ended()
    hits = stand.hits

    def ask(cap: int) -> httpx.Response:
        path, body = asking(cap)[dialect]
        return stand.post(path, body, key)

    def fits(answer: httpx.Response) -> int:
        assert answer.status_code in {400, 402}
        return int(told(answer, dialect)["fits"]["max_output_tokens"])

    cap = 988 if code == "over_budget" else 4000
    refused = ask(cap)
    assert told(refused, dialect)["code"] == code
    most = fits(refused)
    assert fits(ask(most + 1)) == most
    assert stand.hits == hits
    assert ask(most).status_code == 200
    assert stand.hits == hits + 1
