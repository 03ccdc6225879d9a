"""Every constant answer is the smallest one that keeps clients calm."""

import json
from typing import Any

import pytest

from byok.core.routing import EndpointGroup
from byok.protocols.augment.constant_replies import QUIET, ConstantReply

ROWS = {row.path: row for row in QUIET}
NO_AGENTS = '{"remote_agents":[],"max_remote_agents":0,"max_active_remote_agents":0}'


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/remote-agents/list-stream", json.loads(NO_AGENTS)),
        ("/remote-agents/agent-history-stream", None),
    ],
)
def test_constant_stream_has_one_line_or_none(path: str, line: Any) -> None:
    group = EndpointGroup.AGENTS
    assert ROWS[path] == ConstantReply(path, line, group, stream=True)


def test_remote_tool_reply_fails_with_a_sentence() -> None:
    answer = ROWS["/agents/run-remote-tool"].body
    assert answer is not None
    assert answer["is_error"] is True
    assert answer["tool_output"] == ""
    assert answer["tool_result_message"].endswith(".")
    assert isinstance(answer["status"], int)


def test_token_reply_lasts_a_year_and_reveals_nothing() -> None:
    assert ROWS["/token"].body == {
        "access_token": "",
        "token_type": "Bearer",
        "expires_in": 31_536_000,
        "scope": "email profile offline_access",
    }
