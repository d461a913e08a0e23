"""Kinds of providers: which a provider is of, and where its requests go."""

from typing import Any

import pytest

from spendgate.core.bound import bound
from spendgate.core.kind import KINDS, PLAIN, caps_reasoning, kind_of, url_of
from spendgate.core.request import RequestFacts
from spendgate.errors import CostBoundUnknown
from tests.builders import a_price_row, a_provider, an_offer


@pytest.mark.parametrize(
    "base_url, dialect, kind",
    [
        ("https://api.openai.com/v1", "openai", "openai"),
        ("https://eu.api.openai.com/v1", "openai", "openai"),
        ("https://acme.openai.azure.com/openai/v1", "openai", "azure"),
        ("https://api.anthropic.com", "anthropic", "anthropic"),
        ("https://openrouter.ai/api/v1", "openai", "openrouter"),
        ("https://api.x.ai/v1", "openai", "xai"),
        ("https://api.groq.com/openai/v1", "openai", "groq"),
        ("https://api.mistral.ai/v1", "openai", "mistral"),
        ("https://api.deepseek.com", "openai", "deepseek"),
        ("https://api.deepseek.com/anthropic", "anthropic", "anthropic"),
        ("https://openrouter.ai/api", "anthropic", "anthropic"),
        ("https://api.together.xyz/v1", "openai", "together"),
        ("https://api.fireworks.ai/inference/v1", "openai", "fireworks"),
        ("https://API.OPENAI.COM/v1", "openai", "openai"),
        ("https://api.openai.com.example.net/v1", "openai", "compatible"),
        ("https://notapi.openai.com/v1", "openai", "compatible"),
        ("http://127.0.0.1:8000/v1", "openai", "compatible"),
    ],
)
def test_a_provider_is_of_the_kind_of_its_host_in_its_dialect(base_url: str, dialect: str, kind: str) -> None:
    assert kind_of(a_provider(base_url=base_url, dialect=dialect)).name == kind


def test_a_kind_that_is_named_outweighs_the_host() -> None:
    assert kind_of(a_provider(base_url="https://proxy.example.com/v1", kind="xai")).name == "xai"


def test_every_kind_of_a_dialect_has_a_plain_one_beside_it() -> None:
    for kind in KINDS.values():
        assert KINDS[PLAIN.get(kind.dialect, kind.dialect)].dialect == kind.dialect
        assert "{}" in kind.authorization[1]


def test_no_kind_takes_a_timeout_for_proof_that_nothing_was_billed() -> None:
    for kind in KINDS.values():
        assert not kind.unbilled & {200, 408, 424, 499, 504, 524}


def test_a_limit_of_spend_is_looked_for_only_where_nothing_was_billed() -> None:
    for kind in KINDS.values():
        assert kind.spend_statuses <= kind.unbilled


@pytest.mark.parametrize(
    "base_url, version, path, url",
    [
        ("https://a.openai.azure.com", None, "/responses", "https://a.openai.azure.com/openai/v1/responses"),
        (
            "https://a.openai.azure.com/openai/v1",
            None,
            "/chat/completions",
            "https://a.openai.azure.com/openai/v1/chat/completions",
        ),
        (
            "https://a.openai.azure.com",
            "2024-10-21",
            "/chat/completions",
            "https://a.openai.azure.com/openai/deployments/my%2Fgpt/chat/completions?api-version=2024-10-21",
        ),
        (
            "https://a.openai.azure.com/openai/",
            "preview",
            "/embeddings?x=1",
            "https://a.openai.azure.com/openai/deployments/my%2Fgpt/embeddings?api-version=preview&x=1",
        ),
        (
            "https://a.openai.azure.com",
            "preview",
            "/responses",
            "https://a.openai.azure.com/openai/responses?api-version=preview",
        ),
    ],
)
def test_an_azure_deployment_stands_in_the_path(base_url: str, version: str | None, path: str, url: str) -> None:
    provider = a_provider(base_url=base_url, api_version=version, kind="azure")
    assert url_of(provider, path=path, model="my/gpt") == url


def test_every_other_kind_has_the_dialect_s_path_below_its_base_url() -> None:
    assert (
        url_of(a_provider(base_url="https://h.example/v1/"), path="/x?y=1", model="m") == "https://h.example/v1/x?y=1"
    )


def facts(**changes: Any) -> RequestFacts:
    return RequestFacts(**{"dialect": "openai", "model": "m", "text_bytes": 10, "output_cap": 100, **changes})


def test_reasoning_beyond_the_cap_is_bounded_by_all_that_the_model_can_put_out() -> None:
    row = a_price_row(context_tokens=500_000, output_tokens_max=400_000)
    within = bound(facts(), [an_offer(row)], output_tokens_default=None)
    beyond = bound(facts(), [an_offer(row, provider=a_provider(kind="xai"))], output_tokens_default=None)
    assert within.output_tokens_max == 100 + 16
    assert beyond.output_tokens_max == 500_000 + 16
    assert beyond.output_cap == 100


def test_what_the_provider_s_entry_declares_of_reasoning_outweighs_its_kind() -> None:
    assert not caps_reasoning(a_provider(kind="xai"))
    assert caps_reasoning(a_provider(kind="xai", cap_includes_reasoning=True))
    assert caps_reasoning(a_provider())
    assert not caps_reasoning(a_provider(cap_includes_reasoning=False))


def test_reasoning_beyond_the_cap_of_a_model_of_unknown_size_is_refused_by_name() -> None:
    offer = an_offer(a_price_row(), provider=a_provider(cap_includes_reasoning=False))
    with pytest.raises(CostBoundUnknown, match="demo-model has neither context_tokens nor output_tokens_max"):
        bound(facts(), [offer], output_tokens_default=None)
