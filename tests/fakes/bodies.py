"""Short ways to write the parts of a client's body."""

import base64
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


def image_node(data: Any = PNG, form: Any = 1) -> dict[str, Any]:
    """Write a request node that holds a picture."""
    return {"id": 0, "type": 2, "image_node": {"image_data": data, "format": form}}


def call_node(
    call_id: Any, name: Any = "view", arguments: Any = "{}", kind: int = 5
) -> dict[str, Any]:
    """Write a response node that calls a tool."""
    use = {"tool_use_id": call_id, "tool_name": name, "input_json": arguments}
    return {"id": 0, "type": kind, "content": "", "tool_use": use}


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
