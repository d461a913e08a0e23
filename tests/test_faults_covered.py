"""Where each fault that was seen in the open in other gateways is a test here.

B01  a cache write counted twice
     core/test_faults.py::test_b01_a_cache_write_is_counted_once
     dialects/test_faults.py::test_a_cache_write_is_billed_once
B02  cache reads billed twice under an own price
     dialects/test_faults.py::test_cache_reads_are_in_one_bucket_only
B03  a second cost formula
     gateway/test_faults.py::test_no_second_formula_stands_beside_the_one_that_reserves_and_settles
B05  the convention of counts, guessed
     core/test_faults.py::test_b05_disjoint_buckets_cannot_go_below_zero
     dialects/test_faults.py::test_whether_input_contains_the_cache_is_decided_by_the_dialect_and_never_below_zero
B08  cache writes inside the input
     core/test_faults.py::test_b08_a_prompt_that_may_be_written_to_a_cache_is_bounded_at_the_dearer_rate
     dialects/test_faults.py::test_openais_cache_writes_are_inside_the_input
     dialects/test_openai_responses_usage.py::test_cache_writes_are_inside_the_input_and_split_by_lifetime
B09  an unknown model is free
     gateway/test_admission.py::test_a_model_without_a_price_is_refused_by_its_name_its_provider_and_how_many_more_there_are
     test_configuration.py::test_b09_a_model_is_free_where_zero_is_written_down
B10  an operator's price ignored
     gateway/test_faults.py::test_an_operator_s_own_price_is_what_the_budget_is_checked_with
B11  opaque profile names
     gateway/test_faults.py::test_a_name_that_looks_like_a_priced_one_has_no_price
B12  the closest name
     core/test_faults.py::test_b12_a_dearer_model_is_not_priced_by_the_row_of_a_shorter_name
     gateway/test_admission.py::test_a_name_is_exact_and_anything_close_to_it_is_not_found
     store/test_config.py::test_an_alias_is_priced_by_its_row_and_no_other_name_is
     store/test_config.py::test_no_name_is_priced_by_the_row_of_one_that_is_like_it
B13  no price, no reservation
     core/test_bound.py::test_b13_an_answer_is_settled_with_its_pinned_rows_whatever_the_clock_says
     core/test_faults.py::test_b13_a_price_that_was_removed_still_settles_the_calls_that_it_was_pinned_in
     gateway/test_faults.py::test_a_price_that_is_gone_at_the_settlement_changes_nothing
     gateway/test_faults.py::test_unpriced_calls_at_once_are_all_refused
B15  fine-tuned names
     core/test_faults.py::test_b15_a_missing_cached_rate_is_the_full_one
     gateway/test_faults.py::test_a_name_that_looks_like_a_priced_one_has_no_price
B16  another model's name in the answer
     dialects/test_faults.py::test_the_model_that_the_answer_names_is_reported
     gateway/test_outcomes.py::test_another_model_s_name_in_the_answer_is_kept_and_the_reserved_price_counts
B17  check, then add
     core/test_faults.py::test_b17_of_parallel_calls_of_a_run_as_many_pass_as_fit
     gateway/test_faults.py::test_of_calls_at_once_on_a_run_as_many_pass_as_fit
B19  a limit on a linked object
     gateway/test_faults.py::test_a_budget_that_cannot_be_read_denies
B20  the edge of a limit
     core/test_faults.py::test_b20_a_call_passes_up_to_the_limit_and_equality_passes
     gateway/test_admission.py::test_the_last_picodollar_of_a_limit_may_be_used_and_not_one_more
B21  phantom spend
     core/test_faults.py::test_b21_a_call_that_ended_leaves_nothing_behind
     gateway/test_faults.py::test_after_every_kind_of_end_the_counters_are_the_sum_of_the_reservations
B22  a denial that cannot be understood
     core/test_faults.py::test_b22_a_denial_shows_spent_held_limit_and_asked_apart
     dialects/test_faults.py::test_a_refusal_tells_in_one_look_what_is_spent_held_and_asked
     gateway/test_faults.py::test_what_is_only_held_is_told_from_what_is_spent
B23  ends that forget
     gateway/test_faults.py::test_a_stream_that_is_refused_with_429_at_once_gives_its_money_back
     gateway/test_faults.py::test_after_every_kind_of_end_the_counters_are_the_sum_of_the_reservations
B24  a hold that stops everyone
     core/test_bound.py::test_an_absent_cap_is_stamped_with_the_smallest_that_is_known
     core/test_faults.py::test_b24_a_hold_in_the_way_is_told_from_a_call_that_can_never_fit_and_what_would_fit_is_named
     gateway/test_faults.py::test_a_call_without_a_cap_holds_the_policy_s_default_and_not_the_head_room
B25  a transaction conflict taken for a denial
     gateway/test_faults.py::test_a_conflict_between_transactions_is_tried_again_and_is_no_denial
B27  time zones
     core/test_faults.py::test_b27_a_day_s_limit_covers_24_hours_and_not_32
     core/test_window.py::test_b27_a_day_is_utc_s_day
     test_configuration.py::test_b27_a_time_without_a_zone_or_a_calendar_is_refused
B28  months
     core/test_faults.py::test_b28_march_begins_on_the_first_whatever_happened_before
     core/test_window.py::test_b28_a_month_is_the_calendar_s_whatever_its_length
     gateway/test_admission.py::test_windows_are_those_of_the_reservation_s_own_instant
B30  zero and none
     core/test_budget.py::test_b30_a_path_is_unbudgeted_only_where_it_is_said_and_nothing_limits_it
     core/test_faults.py::test_b30_zero_denies_every_paid_call_and_no_limit_denies_none
     gateway/test_admission.py::test_a_limit_of_zero_denies_every_paid_call
B31  which level counts
     core/test_faults.py::test_b31_every_level_of_a_path_counts_and_the_tightest_is_named
     gateway/test_admission.py::test_the_tightest_budget_of_the_path_counts_and_the_refusal_names_it
B32  identity from the request
     core/test_budget.py::test_b32_a_run_lies_below_its_budget_and_nowhere_else
     dialects/test_faults.py::test_no_identity_is_read_from_a_body
     gateway/test_admission.py::test_runs_of_one_name_below_two_agents_are_two_runs
B33  side doors
     gateway/test_admission.py::test_a_path_that_is_not_served_is_a_404_and_never_a_way_around
     gateway/test_faults.py::test_what_has_no_price_of_its_own_has_no_path
B36  no usage asked, none sent
     dialects/test_faults.py::test_usage_is_asked_for_though_the_caller_did_not
     gateway/test_faults.py::test_a_stream_without_usage_costs_its_bound_until_somebody_knows_better
     gateway/test_outcomes.py::test_an_answer_without_usage_keeps_the_money
B38  usage on every chunk
     dialects/test_faults.py::test_cumulative_usage_counts_once
     dialects/test_gemini_usage.py::test_b38_usage_on_every_chunk_counts_once
B39  ends of Responses
     dialects/test_openai_responses_usage.py::test_a_response_is_billed_by_its_usage_however_it_ended
     dialects/test_openai_responses_usage.py::test_a_response_that_says_its_usage_after_an_error_is_billed_by_it
     dialects/test_openai_responses_usage.py::test_a_response_without_usage_is_not_a_free_one
     gateway/test_openai_protocols.py::test_an_absent_cap_is_stamped_and_a_response_that_it_cuts_is_billed_too
B41  an answer that dies half-way
     dialects/test_faults.py::test_a_stream_that_dies_half_way_is_neither_guessed_nor_free
     gateway/test_faults.py::test_what_was_seen_of_a_broken_stream_is_kept_as_a_floor_and_settles_nothing
     gateway/test_outcomes.py::test_a_stream_that_is_cut_after_any_frame_is_held_and_told_or_settled_exactly
B42  an error inside a 200
     dialects/test_faults.py::test_an_error_inside_a_successful_stream_is_passed_on_and_settles_nothing
     gateway/test_faults.py::test_what_was_seen_of_a_broken_stream_is_kept_as_a_floor_and_settles_nothing
     gateway/test_outcomes.py::test_an_error_within_a_stream_is_passed_on_and_keeps_the_money
B44  compression
     dialects/test_faults.py::test_a_compressed_answer_that_nobody_asked_for_settles_nothing
     gateway/test_faults.py::test_an_answer_that_nobody_can_decode_keeps_its_money
     gateway/test_outcomes.py::test_a_compressed_answer_nobody_asked_for_is_read_or_held_but_never_free
B46  odd values
     core/test_faults.py::test_b46_an_odd_value_is_no_count_and_raises_nothing
     dialects/test_faults.py::test_an_odd_count_holds_the_money_and_raises_nothing
     gateway/test_outcomes.py::test_a_count_that_is_no_whole_number_keeps_the_money_and_hurts_nothing
     gateway/test_hostile_usage.py::test_a_hostile_count_settles_no_less_than_an_honest_one_or_holds_the_money
     gateway/test_hostile_usage.py::test_an_answer_with_a_hostile_count_reaches_its_caller_and_its_money_is_accounted_for
B49  fees of tools
     core/test_feature.py::test_b49_a_feature_without_a_fee_in_the_price_row_is_refused
     dialects/test_faults.py::test_a_server_tool_that_ran_is_not_settled_without_its_fee
     dialects/test_gemini_usage.py::test_every_search_that_was_allowed_is_a_fee
     dialects/test_openai_responses_usage.py::test_two_searches_and_one_in_files_cost_their_fees_beside_the_tokens
     dialects/test_openai_responses_usage.py::test_anything_that_a_server_did_beside_the_tokens_holds_the_money
     dialects/test_openai_responses_usage.py::test_the_server_s_searches_are_counted_once_and_held_since_nothing_bounded_them
     dialects/test_faults.py::test_a_server_tool_that_was_asked_for_is_settled_with_its_fee
     dialects/test_faults.py::test_searches_that_an_answer_does_not_count_are_settled_as_they_were_allowed
B52  batches
     gateway/test_faults.py::test_what_has_no_price_of_its_own_has_no_path
B53  embeddings and rerank
     dialects/test_faults.py::test_a_missing_completion_is_not_zero_where_there_is_output
     dialects/test_openai_embeddings.py::test_a_missing_count_of_output_is_zero
     gateway/test_gemini.py::test_an_embedding_that_does_not_say_what_it_used_is_charged_in_full_and_told
     gateway/test_openai_protocols.py::test_embeddings_of_texts_and_of_token_ids_cost_their_input_alone
     gateway/test_faults.py::test_what_has_no_price_of_its_own_has_no_path
B55  floats
     core/test_faults.py::test_b55_2500_calls_of_0_004_fit_into_10_and_the_next_does_not
     gateway/test_faults.py::test_a_budget_of_exactly_so_many_calls_takes_exactly_so_many
B57  alert storms
     core/test_alert.py::test_b57_80_and_100_are_both_told_where_one_call_jumps_over_both
     core/test_alert.py::test_b57_a_new_window_and_a_raised_limit_are_told_again_and_nothing_else
     gateway/test_alerts.py::test_b57_a_store_that_takes_no_alert_costs_the_caller_nothing
     test_alerts.py::test_b57_80_and_100_are_both_told_of_one_jump_and_told_again_the_next_day
     test_alerts.py::test_b57_a_hundred_calls_after_80_percent_are_one_message
     test_alerts.py::test_b57_a_topic_that_fails_is_tried_again_the_next_minute
B58  a refusal taken for a passing fault
     dialects/test_faults.py::test_a_refusal_tells_in_one_look_what_is_spent_held_and_asked
     gateway/test_faults.py::test_a_refusal_of_money_is_never_a_status_that_clients_repeat
B60  a lost store
     gateway/test_settlement.py::test_a_store_that_cannot_be_reached_is_a_503_and_nothing_is_sent
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parent
_NUMBER: Final = re.compile(r"B\d\d")


def _table() -> Iterator[tuple[str, list[str]]]:
    """Yield each fault's number and what stands below it."""
    assert __doc__ is not None
    _, *rows = re.split(r"^(?=B\d\d  )", __doc__, flags=re.MULTILINE)
    for row in rows:
        title, *lines = row.strip().splitlines()
        yield title[:3], [line.strip() for line in lines]


TABLE: Final[Mapping[str, list[str]]] = dict(_table())
NAMED: Final = [(number, line) for number, lines in TABLE.items() for line in lines if "::" in line]


@pytest.mark.parametrize("number", TABLE)
def test_every_fault_has_a_test_or_the_reason_why_it_has_none_yet(number: str) -> None:
    assert all("::" in line or line.startswith("later: ") for line in TABLE[number])
    assert TABLE[number]


@pytest.mark.parametrize("number, test", NAMED)
def test_the_test_of_a_fault_exists_and_says_which_fault_it_is_of(number: str, test: str) -> None:
    path, _, name = test.partition("::")
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    documented = {
        node.name: ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
    }
    assert name in documented
    assert number in _NUMBER.findall(documented[name])
