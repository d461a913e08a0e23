"""What tools, edits and betas of an Anthropic request add to its bound."""

from dataclasses import replace
from typing import Any

import pytest

from spendgate.core.bound import bound
from spendgate.core.feature import granted
from spendgate.core.media import Media
from spendgate.core.money import usd_text
from spendgate.core.request import Demand
from spendgate.dialects import anthropic_betas, anthropic_tools
from spendgate.dialects.measure import json_bytes
from spendgate.errors import CostBoundUnknown, RequestInvalid
from tests.builders import a_card, a_price_row, an_offer, rates
from tests.dialects.builders import USER, read_messages

COMPACT = {"type": "compact_20260112", "instructions": "short"}
SCREEN = {"display_width_px": 1024, "display_height_px": 768}
CLIENT: dict[str, dict[str, Any]] = {
    "bash_20250124": {"name": "bash"},
    "text_editor_20250124": {"name": "str_replace_editor"},
    "text_editor_20250429": {"name": "str_replace_based_edit_tool"},
    "text_editor_20250728": {"name": "str_replace_based_edit_tool", "max_characters": 10_000},
    "computer_20250124": {"name": "computer", "display_number": 1} | SCREEN,
    "computer_20251124": {"name": "computer", "enable_zoom": True} | SCREEN,
    "computer_toolset_20260801": {"configs": {"zoom": {"enabled": False}, "wait": None}},
    "browser_toolset_20260801": {"configs": None, "cache_control": {"type": "ephemeral"}},
}


def edited(*edits: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"context_management": {"edits": list(edits)}} | changes


def test_every_tool_that_the_caller_runs_has_its_hidden_tokens() -> None:
    assert set(CLIENT) == set(anthropic_tools.CLIENT_TOOLS) == set(anthropic_tools.HIDDEN_TOKENS)


@pytest.mark.parametrize("kind", sorted(CLIENT))
def test_a_tool_that_the_caller_runs_adds_what_the_provider_writes_of_it(kind: str) -> None:
    tool = CLIENT[kind] | {"type": kind}

    facts = read_messages(tools=[tool]).facts

    assert (facts.tools, facts.demands) == (1, ())
    assert facts.json_bytes == json_bytes(tool)
    assert facts.hidden_tokens == anthropic_tools.HIDDEN_TOKENS[kind]


def test_hidden_tokens_are_part_of_the_bound_to_the_token() -> None:
    facts = read_messages(tools=[{"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}]).facts
    offer = an_offer(a_price_row(context_tokens=200_000))

    more = bound(facts, [offer], output_tokens_default=None)
    less = bound(replace(facts, hidden_tokens=0), [offer], output_tokens_default=None)

    # 700 tokens at 2.50 USD a million.
    assert more.input_tokens_max - less.input_tokens_max == 700
    assert usd_text(more.amount - less.amount) == "0.00175"


def test_a_call_of_a_toolset_is_measured_with_its_toolset() -> None:
    use = {"type": "tool_use", "id": "t", "name": "click", "toolset_name": "browser", "input": {}}

    facts = read_messages(messages=[USER, {"role": "assistant", "content": [use]}]).facts

    assert facts.text_bytes == read_messages().facts.text_bytes + len("t" + "click" + "browser")


@pytest.mark.parametrize("kind", sorted(anthropic_tools.FILTERING_TOOLS))
def test_web_tools_that_filter_by_code_are_bounded_as_the_loop_that_they_are(kind: str) -> None:
    name = kind.rpartition("_")[0]
    tool = {"type": kind, "name": name, "max_uses": 4, "allowed_callers": ["direct", "code_execution_20260120"]}

    facts = read_messages(tools=[tool | {"response_inclusion": "excluded"}]).facts

    fee = "web_search" if name == "web_search" else None
    demand = Demand(feature=name, field="tools[0]", uses=4, states_uses=True, turns=11, fee=fee, uses_field="max_uses")
    assert facts.demands == (demand,)


def test_what_code_found_in_an_earlier_answer_may_fill_the_context() -> None:
    caller = {"type": "code_execution_20260120", "tool_id": "c1"}
    blocks: list[dict[str, Any]] = [
        {"type": "server_tool_use", "id": "c1", "name": "code_execution", "input": {"code": "search()"}},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}, "caller": caller},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [], "caller": caller},
        {"type": "code_execution_tool_result", "tool_use_id": "c1", "content": {"encrypted_stdout": "x"}},
    ]

    facts = read_messages(messages=[USER, {"role": "assistant", "content": blocks}, USER]).facts

    assert facts.media == (Media(kind="document", field="messages[1].content[2]", count=2),)


def test_the_code_that_called_a_tool_is_measured_by_its_name() -> None:
    use: dict[str, Any] = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    caller = {"type": "code_execution_20260120", "tool_id": "ab" * 500}

    facts = read_messages(messages=[USER, {"role": "assistant", "content": [use | {"caller": caller}]}]).facts

    assert facts.text_bytes == read_messages().facts.text_bytes + len("s1" + "web_search") + 1_000


def test_edits_that_clear_change_nothing_of_the_facts() -> None:
    clearing = edited(
        {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 2}},
        {"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 30_000}},
    )

    assert read_messages(**clearing).facts == read_messages().facts


def test_compaction_is_a_demand_for_the_turns_around_those_of_the_model() -> None:
    search = {"type": "web_search_20250305", "name": "web_search", "max_uses": 1}

    plain = read_messages(**edited(COMPACT)).facts
    looped = read_messages(**edited(COMPACT, tools=[search])).facts

    demand = Demand(feature="compaction", field="context_management.edits[0]", uses=2, uncapped=True)
    assert plain.demands == (demand,)
    assert plain.text_bytes == read_messages().facts.text_bytes + len("short")
    assert [demand.uses for demand in looped.demands] == [1, 12]


def test_compaction_twice_is_refused() -> None:
    with pytest.raises(RequestInvalid) as refused:
        read_messages(**edited(COMPACT, COMPACT))

    assert refused.value.facts.field == "context_management.edits[1]"


def test_compaction_costs_whole_contexts_and_whole_outputs_at_most() -> None:
    # 3 turns x 200,000 x 3 USD + (100 + 16 + 2 x (8,192 + 16)) x 15 USD, a million tokens each.
    facts = granted(read_messages(**edited(COMPACT, max_tokens=100)).facts, {"compaction": 2})
    card = a_card(rates=rates(input=3_000_000, cache_read=300_000, output=15_000_000))
    offer = an_offer(a_price_row(card=card, context_tokens=200_000, output_tokens_max=8_192))

    assert usd_text(bound(facts, [offer], output_tokens_default=None).amount) == "2.04798"


@pytest.mark.parametrize("allowed", [{}, {"compaction": 1}])
def test_compaction_that_is_not_allowed_as_often_as_it_may_happen_is_refused(allowed: dict[str, int]) -> None:
    with pytest.raises(CostBoundUnknown, match="compaction") as refused:
        granted(read_messages(**edited(COMPACT)).facts, allowed)

    assert refused.value.facts.field == "context_management.edits[0]"


def test_compaction_of_a_model_whose_output_nobody_knows_is_refused() -> None:
    facts = granted(read_messages(**edited(COMPACT)).facts, {"compaction": 2})
    offer = an_offer(a_price_row(context_tokens=200_000))

    with pytest.raises(CostBoundUnknown, match="more than the output cap") as refused:
        bound(facts, [offer], output_tokens_default=None)

    assert refused.value.facts.field == "context_management.edits[0]"


def test_what_was_summed_up_comes_back_as_a_document_of_unknown_size() -> None:
    block = {"type": "compaction", "content": "so far", "encrypted_content": "x", "signature": "s"}

    facts = read_messages(messages=[{"role": "assistant", "content": [block]}, USER]).facts

    assert facts.media == (Media(kind="document", field="messages[0].content[0]"),)


def test_every_beta_that_may_be_sent_says_why() -> None:
    assert all(reason for reason in anthropic_betas.FREE_BETAS.values())
