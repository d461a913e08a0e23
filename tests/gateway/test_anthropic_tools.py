"""Anthropic's own client with the tools, edits and betas that agents send."""

from typing import Any

import anthropic
import pytest

from spendgate.core.money import usd_text
from tests.gateway.stand import Stand
from tests.gateway.test_clients import settled_as_billed

ROOMY = "$: {limits: {usd: {day: 1000}}}"
SCREEN = {"display_width_px": 1024, "display_height_px": 768}
TOOLS: list[Any] = [
    {"type": "bash_20250124", "name": "bash"},
    {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 10_000},
    {"type": "computer_20251124", "name": "computer", "enable_zoom": True} | SCREEN,
]
CLEARING: Any = {
    "edits": [
        {"type": "clear_thinking_20251015", "keep": "all"},
        {"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 30_000}},
    ]
}
COMPACTING: Any = {"edits": [{"type": "compact_20260112"}]}
BETAS = ["context-management-2025-06-27", "computer-use-2025-11-24", "interleaved-thinking-2025-05-14"]


def ask(client: anthropic.Anthropic, **changes: Any) -> Any:
    said: dict[str, Any] = {
        "model": "claude",
        "max_tokens": 40,
        "messages": [{"role": "user", "content": "Hello"}],
        "betas": BETAS,
    }
    return client.beta.messages.create(**said | changes)


@pytest.mark.parametrize("stream", [False, True])
def test_the_tools_that_a_caller_runs_and_the_edits_that_clear_go_along_unchanged(stand: Stand, stream: bool) -> None:
    with stand.anthropic(stand.open(ROOMY)) as client:
        answer = ask(client, tools=TOOLS, context_management=CLEARING, stream=stream)
        if stream:
            assert [event.type for event in answer][-1] == "message_stop"

    (arrival,) = stand.provider.arrivals
    assert arrival.headers["anthropic-beta"] == ",".join(BETAS)
    assert {"tools", "context_management"} <= set(stand.calls[0].field_names)
    settled_as_billed(stand)


def test_compaction_that_a_budget_allows_reserves_its_turns_and_gives_back_what_it_did_not_use(stand: Stand) -> None:
    key = stand.open("$: {limits: {usd: {day: 1000}}, allow: {compaction: 2}}")
    with stand.anthropic(key) as client:
        ask(client, context_management=COMPACTING, betas=["compact-2026-01-12"])

    # 3 turns x 128,000 x 2.50 USD + (40 + 2 x 4,096) x 10 USD, a million tokens each.
    assert usd_text(stand.reservation().asked.usd) == "1.04232"
    assert stand.hits == 1
    settled_as_billed(stand)


@pytest.mark.parametrize(
    "changes,field",
    [
        ({"betas": ["advisor-tool-2026-03-01"]}, "anthropic-beta"),
        ({"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}, "tools[0].type"),
        ({"tools": [{"type": "memory_20250818", "name": "memory"}]}, "tools[0].type"),
        ({"fallbacks": [{"model": "claude-y"}]}, "fallbacks"),
        ({"context_management": COMPACTING}, "context_management.edits[0]"),
    ],
)
def test_what_nobody_bounded_or_allowed_is_refused_once_and_never_sent(
    stand: Stand, changes: dict[str, Any], field: str
) -> None:
    with stand.anthropic(stand.open(ROOMY)) as client, pytest.raises(anthropic.PaymentRequiredError) as refused:
        ask(client, **changes)

    body: Any = refused.value.body
    assert body["error"]["details"]["field"] == field
    assert body["error"]["details"]["next_action"]
    assert stand.hits == 0
