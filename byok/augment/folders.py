"""Read which folders a client has open; only the bodies of its chats name them."""

from byok.augment.body import first_text, integer, mapping, objects
from byok.augment.nodes import CARRIERS, RequestNode
from byok.chat import Json

_MOST, _LONGEST = 64, 4096


def open_folders(body: Json) -> list[str]:
    """Return the folders in the newest message of a chat; empty if it names none.

    A client sends them when they change, and repeats old messages in every turn.
    """
    for message in (body, *reversed(objects(body, "chat_history"))):
        for carrier in CARRIERS:
            for node in objects(message, carrier):
                if integer(node, "type") == RequestNode.IDE_STATE:
                    state = mapping(node, "ide_state_node")
                    if found := _roots(state):
                        return found
    return []


def _roots(state: Json) -> list[str]:
    folders = objects(state, "workspace_folders")[:_MOST]
    roots = (first_text(folder, "folder_root", "repository_root") for folder in folders)
    return [root for root in roots if 0 < len(root) <= _LONGEST]
