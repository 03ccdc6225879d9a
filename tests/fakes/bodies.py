"""Short ways to write the parts of a client's body."""

import base64
import json
from typing import Any

from hypothesis import strategies as st

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(8)).decode()

# Any JSON document, with the spellings of numbers and flags that clients confuse.
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["--5", "-", "1e9", "²", "true", "data:,", "...", "{summary}"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


def text_node(content: Any, node_id: int = 0) -> dict[str, Any]:
    """Write a request node of the user's words."""
    return {"id": node_id, "type": 0, "text_node": {"content": content}}


def result_node(call_id: Any, content: Any = "done", **fields: Any) -> dict[str, Any]:
    """Write a request node that holds a tool's result."""
    payload = {"tool_use_id": call_id, "content": content, "is_error": False, **fields}
    return {"id": 0, "type": 1, "tool_result_node": payload}


def image_node(data: Any = PNG) -> dict[str, Any]:
    """Write a request node that holds a picture."""
    return {"id": 0, "type": 2, "image_node": {"image_data": data, "format": 1}}


def call_node(
    call_id: Any, name: Any = "view", arguments: Any = "{}", kind: int = 5
) -> dict[str, Any]:
    """Write a response node that calls a tool."""
    use = {"tool_use_id": call_id, "tool_name": name, "input_json": arguments}
    return {"id": 0, "type": kind, "content": "", "tool_use": use}


def tool(
    name: str = "view", schema: Any = None, *, says: str = "", **properties: str
) -> dict[str, Any]:
    """Write the definition of a tool with a schema, or with properties by their types.

    All of these properties are required.
    """
    fields = {key: {"type": kind} for key, kind in properties.items()}
    usual = {"type": "object", "properties": fields, "required": [*fields]}
    given = json.dumps(usual if schema is None else schema)
    return {"name": name, "description": says, "input_schema_json": given}


def exchange(
    said: str = "", answer: str = "", *, nodes: Any = (), calls: Any = ()
) -> dict[str, Any]:
    """Write a history item; `calls` are ids or whole response nodes."""
    response = [c if isinstance(c, dict) else call_node(c) for c in calls]
    return {
        "request_message": said,
        "request_nodes": list(nodes),
        "response_text": answer,
        "response_nodes": response,
    }


# The endpoints that ask for one text, with a body that is fine.
EDIT: dict[str, Any] = {
    "instruction": "raise",
    "prefix": "a\n",
    "selected_text": "b\n",
    "suffix": "c\n",
}
TEXT_BODIES: dict[str, dict[str, Any]] = {
    "/prompt-enhancer": {"message": "mine"},
    "/generate-commit-message-stream": {"diff": "diff --git a b\n+x\n"},
    "/generate-conversation-title": {"chat_history": [exchange("Fog?", "Yes.")]},
    "/edit": EDIT,
    "/instruction-stream": EDIT,
    "/smart-paste-stream": {"code_block": "x", "target_file_content": "a\n"},
    "/agents/edit-file": {"file_contents": "old\n", "edit_summary": "new"},
    "/next-edit-stream": {**EDIT, "path": "a.py"},
    "/completion": {"prompt": "def f(", "suffix": ")\n", "path": "a.py"},
    "/chat-input-completion": {"prompt": "Why is"},
    "/next_edit_loc": {
        "diagnostics": [{"location": {"path": "a.py", "line_start": 1}}]
    },
}
# What any of these bodies may have, and older clients sent.
TEXT_FIELDS = """
    model message nodes chat_history diff changed_file_stats
    relevant_commit_messages example_commit_messages
    generatedCommitMessageSubrequest instruction prompt prefix selected_text suffix
    path lang blob_name prefix_begin suffix_end blobs code_block target_file_path
    target_file_content selection_begin_char selection_end_char recent_changes
    edit_events diagnostics blocked_locations num_results file_path edit_summary
    detailed_edit_description file_contents probe_only max_tokens cursor_position
    recency_info sequence_id filter_threshold user_guidelines rules
"""
