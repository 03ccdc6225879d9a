"""What chats tell of the folders that a client has open."""

from typing import Any

import pytest
from hypothesis import strategies as st

from byok.protocols.augment.chat_request import open_folders


def state(*roots: str, **fields: Any) -> dict[str, Any]:
    folders = [{"folder_root": root, "repository_root": "/r"} for root in roots]
    return {"type": 4, "ide_state_node": {"workspace_folders": folders, **fields}}


@pytest.mark.parametrize(
    "carrier", ["nodes", "structured_request_nodes", "request_nodes"]
)
def test_open_folders_come_from_the_newest_message_that_names_them(
    carrier: str,
) -> None:
    history = [{"request_nodes": [state("/old")]}, {"request_nodes": [state("/new")]}]
    asked = {carrier: [{"type": 0}, state("/now", "/too")], "chat_history": history}
    assert open_folders(asked) == ["/now", "/too"]
    silent = {carrier: [state(workspace_folders_unchanged=True)]}
    assert open_folders({**silent, "chat_history": history}) == ["/new"]
    assert open_folders(silent) == []


def test_a_folder_without_a_root_is_known_by_its_repository() -> None:
    node = {"workspace_folders": [{"repository_root": "/r"}, {}, 5]}
    assert open_folders({"nodes": [{"type": 4, "ide_state_node": node}]}) == ["/r"]


def test_open_folders_are_limited_in_number_and_length() -> None:
    assert len(open_folders({"nodes": [state(*map(str, range(1, 999)))]})) == 64
    assert open_folders({"nodes": [state("/" * 5000)]}) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
