"""Folders that are open, remembered for each window."""

from typing import Any

from byok.core.chat import Json
from byok.protocols.augment.retrieval import decode_retrieval
from byok.server.code_endpoints import OpenFolders


def chat(root: str) -> Json:
    node = {"workspace_folders": [{"folder_root": root}]}
    return {"nodes": [{"type": 4, "ide_state_node": node}]}


def window(name: str) -> dict[str, str]:
    return {"X-Request-Session-Id": name}


def folders(known: OpenFolders, headers: dict[str, str]) -> Any:
    body = known.add_folders(headers, {"information_request": "where"})
    return list(decode_retrieval(body).folders)


def test_open_folders_are_kept_per_window() -> None:
    known = OpenFolders()
    known.note(window("a"), chat("/a"))
    known.note(window("b"), chat("/b"))
    known.note(window("a"), {"nodes": []})
    assert folders(known, window("a")) == ["/a"]
    assert folders(known, window("b")) == ["/b"]
    assert folders(known, window("c")) == []
    known.note({}, chat("/none"))
    assert folders(known, {}) == []


def test_open_folders_of_the_oldest_windows_are_forgotten() -> None:
    known = OpenFolders(most=2)
    for name in ("a", "b", "a", "c"):
        known.note(window(name), chat(f"/{name}"))
    assert folders(known, window("b")) == []
    assert folders(known, window("a")) == ["/a"]
    assert folders(known, window("c")) == ["/c"]
