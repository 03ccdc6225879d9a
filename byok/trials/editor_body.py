"""Bodies of /chat-stream as an editor's agent sends them.

The texts of the user stand in nodes, and the history keeps the nodes of each answer.
"""

from collections.abc import Sequence

from byok.chat import Json
from byok.trials.tools import TOOLS
from byok.trials.trial_files import ROOT


def chat_body(
    model: str,
    conversation: str,
    message: str,
    nodes: Sequence[Json],
    history: Sequence[Json],
) -> Json:
    """Return a body; the `message` is "" where the nodes are results of tools."""
    return {
        "message": message,
        "model": model,
        "mode": "AGENT",
        "path": None,
        "lang": None,
        "prefix": None,
        "selected_code": None,
        "suffix": None,
        "nodes": nodes,
        "chat_history": history,
        "tool_definitions": [tool.definition for tool in TOOLS.values()],
        "blobs": {"checkpoint_id": None, "added_blobs": [], "deleted_blobs": []},
        "user_guided_blobs": [],
        "user_guidelines": "",
        "workspace_guidelines": "",
        "rules": [],
        "silent": False,
        "conversation_id": conversation,
        "feature_detection_flags": {
            "support_tool_use_start": True,
            "support_parallel_tool_use": True,
        },
    }


def first_nodes(question: str) -> list[Json]:
    """Return the nodes of a question: its text, and where the workspace is."""
    folders = [{"folder_root": ROOT, "repository_root": ROOT}]
    state = {
        "workspace_folders": folders,
        "workspace_folders_unchanged": False,
        "current_terminal": None,
    }
    return [
        {"id": 0, "type": 0, "text_node": {"content": question}},
        {"id": 1, "type": 4, "ide_state_node": state},
    ]


def result_node(place: int, call_id: str, content: str, *, is_error: bool) -> Json:
    """Return the node with the result of a call."""
    result = {"tool_use_id": call_id, "content": content, "is_error": is_error}
    return {"id": place, "type": 1, "tool_result_node": result}


def past_exchange(request_id: str, nodes: Sequence[Json], said: Sequence[Json]) -> Json:
    """Return an exchange as the history keeps it; `said` are the answer's nodes."""
    return {
        "request_id": request_id,
        "request_message": "",
        "request_nodes": nodes,
        "response_nodes": said,
    }
