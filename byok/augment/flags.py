"""The feature flags of /get-models, with the types that clients expect.

A version gate is a string: "" is off, "0.0.0" always on. A single value of a wrong type
may make a client discard all flags, so the types are tested.
"""

from typing import TypeAlias

from byok.purposes import SUMMARY_HOLDS
from byok.wire.json_body import write_json

Flag: TypeAlias = bool | int | str

ON, OFF = "0.0.0", ""

# What byok serves today decides what is on; the comment says why a flag is off. Where
# the official service answers too (`merging.py`), a table counts for the endpoints that
# byok serves; APPEARANCE and CLIENT_TOOLS concern the client alone.
CHAT: dict[str, Flag] = {
    "enable_chat": True,
    "enable_chat_with_tools": True,
    "vscode_chat_with_tools_min_version": ON,
    "enable_agent_mode": True,
    "vscode_agent_mode_min_version": ON,
    "vscode_agent_mode_min_stable_version": ON,
    "enable_agent_auto_mode": True,
    "vscode_support_tool_use_start_min_version": ON,
    "enable_parallel_tools": True,
    "beachhead_enable_parallel_tool_execution": True,
    "beachhead_enable_sub_agent_tool": True,
    "vscode_task_list_min_version": ON,
    "agent_max_iterations": 200,
    "agent_chat_model": "",
    "retry_chat_stream_timeouts": True,
    "enable_editable_history": True,
    "vscode_editable_history_min_version": ON,
    "enable_chat_multimodal": True,
    "vscode_chat_multimodal_min_version": ON,
    "vscode_chat_stable_prefix_truncation_min_version": ON,
    "show_thinking_summary": True,
    "vscode_show_thinking_summary_min_version": ON,
    "vscode_personalities_min_version": OFF,
    "enable_summary_titles": True,
    "vscode_share_min_version": OFF,  # a share link would need a server
    "enable_exchange_storage": True,
    "enable_tool_use_state_storage": True,
    "enable_prompt_enhancer": True,  # newer clients enhance through a silent chat
    "vscode_sources_min_version": OFF,
    "vscode_external_sources_in_chat_min_version": OFF,
    "enable_context_canvas": False,
    "vscode_rich_checkpoint_info_min_version": ON,
}
APPEARANCE: dict[str, Flag] = {
    "vscode_min_version": OFF,
    "enable_grouped_tools": True,
    "vscode_new_threads_menu_min_version": ON,
    "enable_new_threads_list": True,
    "enable_bulk_delete_threads": True,
    "vscode_design_system_rich_text_editor_min_version": ON,
    "enable_intersection_observer_manager": True,
}
SUMMARY: dict[str, Flag] = {
    "history_summary_min_version": ON,
    "history_summary_params": write_json(
        {
            # Some clients send it unchanged; an empty one would be an empty question.
            "prompt": "Please write a clear and concise summary of our conversation "
            f"so far, from which the work can go on. {SUMMARY_HOLDS} Write plain text, "
            "call no tool, and do not go on with the work itself.",
            "history_tail_size_tokens_to_exclude": 10_000,
            "max_history_chars": 400_000,
            "input_budget_trigger_ratio": 0.7,
        }
    ).decode(),
}
EDITING: dict[str, Flag] = {
    "enable_instructions": True,
    "enable_smart_paste": True,
    "enable_smart_paste_min_version": ON,
    "smart_paste_precompute_mode": "off",
    "vscode_direct_apply_min_version": ON,
    "vscode_next_edit_min_version": OFF,  # see pauses()
    "vscode_next_edit_bottom_panel_min_version": OFF,
    "vscode_generate_commit_message_min_version": ON,
}
COMPLETION: dict[str, Flag] = {
    "enable_chat_input_inline_completion": False,
    "enable_completion_file_edit_events": True,
    "bypass_language_filter": True,
}
CLIENT_TOOLS: dict[str, Flag] = {
    "agent_edit_tool_enable_fuzzy_matching": True,
    "agent_edit_tool_show_result_snippet": True,
    "agent_edit_tool_instructions_reminder": True,
    "agent_save_file_tool_instructions_reminder": True,
    "agent_edit_tool_max_lines": 200,
    "enable_apply_patch_tool": False,
    "grep_search_tool_enable": True,
    "grep_search_tool_timelimit_sec": 10,
    "grep_search_tool_output_chars_limit": 5000,
    "enable_agent_git_tracker": False,
}
CONTEXT: dict[str, Flag] = {
    "small_sync_threshold": 15,
    "big_sync_threshold": 1000,
    "max_upload_size_bytes": 1_048_576,
    "max_trackable_file_count": 250_000,
    "max_trackable_file_count_without_permission": 150_000,
    "min_uploaded_percentage_without_permission": 90,
    "use_checkpoint_manager_context_min_version": ON,
    "vscode_use_checkpoint_manager_context_min_version": ON,
    "enable_commit_indexing": False,
    "enable_context_engine": True,
    "context_engine_enabled": True,
    "enable_codebase_indexing": True,
    "codebase_indexing_enabled": True,
    "enable_workspace_index": True,
}
GUIDELINES: dict[str, Flag] = {
    "enable_guidelines": True,
    "enable_shared_guidelines": True,
    "enable_rules": True,
    "enable_hierarchical_rules": True,
    "enable_custom_commands": True,
    "enable_memory_retrieval": True,
    "memories_text_editor_enabled": True,
    "memories_params": '{"upper_bound_size":10000}',
}
QUIET: dict[str, Flag] = {
    "enable_sentry": False,
    "cli_enable_sentry": False,
    "beachhead_enable_sentry": False,
    "enable_hindsight": False,
    "agent_report_streamed_chat_every_chunk": 0,
    "fraud_sign_endpoints": False,
    "vscode_background_agents_min_version": OFF,
    "enable_tenant_level_tool_permissions": False,
    "allow_client_feature_flag_overrides": False,
    "notification_polling_interval_ms": 86_400_000,
}


def pauses(*, chat_input: bool, next_edit: bool) -> dict[str, Flag]:
    """Return the flags of features that ask a model after every pause in typing.

    They cost tokens even if nobody looks, so the user's settings decide.
    """
    return {
        "enable_chat_input_inline_completion": chat_input,
        "vscode_next_edit_min_version": ON if next_edit else OFF,
    }


FLAGS: dict[str, Flag] = {
    **CHAT, **APPEARANCE, **SUMMARY, **EDITING, **COMPLETION, **CLIENT_TOOLS, **CONTEXT,
    **GUIDELINES, **QUIET,
}  # fmt: skip
