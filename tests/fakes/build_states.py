"""A daemon that reports one state of the index after the other."""

from collections.abc import Iterable
from typing import Any, cast

from byok.cli.daemon_client.client import LocalClient
from byok.core.chat import Json
from byok.core.routing import Service


def space(phase: str, root: str = "/w", **fields: Any) -> dict[str, Any]:
    return {
        "root": root,
        "phase": phase,
        "percentage": 50.0,
        "files_tracked": 1234,
        "files_processed": 617,
        "note": "",
        "counters": {},
        **fields,
    }


class Client:
    """Tells one state after the other, then the last for ever."""

    def __init__(self, states: Iterable[list[dict[str, Any]]], error: str = "") -> None:
        self.states = list(states)
        self.error = error
        self.asked = 0

    async def ask(self, service: Service, body: Json) -> Json:
        self.asked += 1
        spaces = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        state = "error" if self.error else "indexing"
        return {"state": state, "error": self.error, "workspaces": spaces}


def client(*states: list[dict[str, Any]], error: str = "") -> LocalClient:
    return cast(LocalClient, Client(states, error))
