"""The flags that clients expect are there, each of its own type."""

import json

import pytest

from byok.core.purposes import SUMMARY_HOLDS
from byok.protocols.augment.models import FLAGS, OFF, ON, pauses

BOOLS = """
    enable_chat enable_chat_with_tools enable_agent_mode enable_agent_auto_mode
    enable_parallel_tools beachhead_enable_parallel_tool_execution
    enable_grouped_tools beachhead_enable_sub_agent_tool retry_chat_stream_timeouts
    enable_editable_history enable_chat_multimodal show_thinking_summary
    enable_summary_titles enable_exchange_storage enable_tool_use_state_storage
    enable_instructions enable_smart_paste bypass_language_filter
    enable_prompt_enhancer agent_edit_tool_enable_fuzzy_matching
    agent_edit_tool_show_result_snippet agent_edit_tool_instructions_reminder
    agent_save_file_tool_instructions_reminder enable_apply_patch_tool
    grep_search_tool_enable enable_agent_git_tracker enable_commit_indexing
    enable_context_engine context_engine_enabled enable_codebase_indexing
    codebase_indexing_enabled enable_workspace_index enable_context_canvas
    enable_guidelines enable_shared_guidelines enable_rules
    enable_hierarchical_rules enable_custom_commands enable_memory_retrieval
    memories_text_editor_enabled enable_sentry cli_enable_sentry
    beachhead_enable_sentry enable_hindsight fraud_sign_endpoints
    enable_tenant_level_tool_permissions allow_client_feature_flag_overrides
"""
NUMBERS = """
    agent_max_iterations agent_report_streamed_chat_every_chunk
    agent_edit_tool_max_lines grep_search_tool_timelimit_sec
    grep_search_tool_output_chars_limit small_sync_threshold big_sync_threshold
    max_upload_size_bytes max_trackable_file_count
    max_trackable_file_count_without_permission
    min_uploaded_percentage_without_permission notification_polling_interval_ms
"""
GATES = """
    vscode_min_version vscode_chat_with_tools_min_version
    vscode_agent_mode_min_version vscode_agent_mode_min_stable_version
    vscode_support_tool_use_start_min_version vscode_task_list_min_version
    vscode_editable_history_min_version vscode_chat_multimodal_min_version
    vscode_chat_stable_prefix_truncation_min_version
    vscode_show_thinking_summary_min_version vscode_personalities_min_version
    vscode_share_min_version vscode_rich_checkpoint_info_min_version
    vscode_design_system_rich_text_editor_min_version history_summary_min_version
    enable_smart_paste_min_version vscode_direct_apply_min_version
    vscode_next_edit_min_version vscode_next_edit_bottom_panel_min_version
    vscode_generate_commit_message_min_version
    use_checkpoint_manager_context_min_version
    vscode_use_checkpoint_manager_context_min_version vscode_sources_min_version
    vscode_external_sources_in_chat_min_version vscode_background_agents_min_version
"""
TEXTS = ["agent_chat_model", "smart_paste_precompute_mode"]
JSON_TEXTS = ["history_summary_params", "memories_params"]
TYPES: dict[str, type] = {
    **dict.fromkeys(BOOLS.split(), bool),
    **dict.fromkeys(NUMBERS.split(), int),
    **dict.fromkeys((*GATES.split(), *TEXTS, *JSON_TEXTS), str),
}


@pytest.mark.parametrize(("name", "kind"), TYPES.items(), ids=TYPES)
def test_a_flag_has_the_type_that_clients_read(name: str, kind: type) -> None:
    assert type(FLAGS[name]) is kind


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        (
            "history_summary_params",
            {
                "prompt",
                "history_tail_size_tokens_to_exclude",
                "max_history_chars",
                "input_budget_trigger_ratio",
            },
        ),
        ("memories_params", {"upper_bound_size"}),  # the remember tool needs it
    ],
)
def test_a_json_flag_is_a_text_that_parses(name: str, keys: set[str]) -> None:
    value = FLAGS[name]
    assert isinstance(value, str)
    assert json.loads(value).keys() == keys


def test_feature_flag_tells_clients_what_a_summary_must_hold() -> None:
    value = FLAGS["history_summary_params"]
    assert isinstance(value, str)
    prompt = json.loads(value)["prompt"]
    # By these words a summary is known among the silent jobs.
    assert "a clear and concise summary of our conversation so far" in prompt
    assert SUMMARY_HOLDS in prompt
    assert "'" not in value, "one client reads a flag's JSON with the quotes swapped"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vscode_min_version", OFF),  # a forced upgrade would lock the user out
        ("enable_chat", True),
        ("enable_agent_mode", True),
        ("enable_agent_auto_mode", True),  # false hides the Auto toggle
        ("enable_parallel_tools", True),
        ("vscode_support_tool_use_start_min_version", ON),
        ("history_summary_min_version", ON),
        ("agent_chat_model", ""),
        ("agent_report_streamed_chat_every_chunk", 0),
        ("smart_paste_precompute_mode", "off"),  # precomputing costs model calls
        ("vscode_next_edit_min_version", OFF),  # asks a model while one types
        ("enable_chat_input_inline_completion", False),  # so does this
        ("bypass_language_filter", True),  # else some files have no completions
        ("enable_completion_file_edit_events", True),
        ("enable_instructions", True),
        ("enable_smart_paste", True),
        ("enable_smart_paste_min_version", ON),
        ("vscode_direct_apply_min_version", ON),
        ("enable_context_engine", True),  # whose questions byok answers itself
        ("context_engine_enabled", True),
        ("enable_codebase_indexing", True),
        ("codebase_indexing_enabled", True),
        ("enable_workspace_index", True),
        ("vscode_generate_commit_message_min_version", ON),
        ("enable_apply_patch_tool", False),
        ("vscode_share_min_version", OFF),
        ("vscode_personalities_min_version", OFF),
        ("enable_sentry", False),
        ("cli_enable_sentry", False),
        ("beachhead_enable_sentry", False),
        ("enable_hindsight", False),
        ("fraud_sign_endpoints", False),
        ("vscode_background_agents_min_version", OFF),
        ("allow_client_feature_flag_overrides", False),
    ],
)
def test_a_flag_that_would_do_harm_has_its_safe_value(name: str, value: object) -> None:
    assert FLAGS[name] == value


def test_feature_flags_of_automatic_requests_are_off_and_can_be_switched_on() -> None:
    off = pauses(chat_input=False, next_edit=False)
    assert {name: FLAGS[name] for name in off} == off
    on = pauses(chat_input=True, next_edit=True)
    assert on == {
        "enable_chat_input_inline_completion": True,
        "vscode_next_edit_min_version": ON,
    }
