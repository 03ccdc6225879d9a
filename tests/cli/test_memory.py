"""byok memory, with the daemon and without one."""

import json
from typing import NoReturn

import pytest

from byok.cli.code_client import Agent
from byok.cli.daemon_client import LocalClient
from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon import ask_chat, daemon_thread, write_settings

ON = "[memory]\non = true\n"


@pytest.fixture
def remembered() -> None:
    """Let a daemon remember two conversations, and end."""
    write_settings(ON)
    with daemon_thread() as daemon:
        ask_chat(daemon, "Where is the oven?")
        ask_chat(daemon, "Where is the lion?")


def ids(cli: Cli) -> list[str]:
    return [row["name"] for row in json.loads(cli("memory", "list", "--json").out)]


def test_conversations_are_shown_listed_and_forgotten(cli: Cli) -> None:
    write_settings(ON)
    with daemon_thread() as daemon:
        assert "Nothing is kept." in cli("memory", "status").out
        ask_chat(daemon, "Where is the oven?")
        newest = ask_chat(daemon, "Where is the lion?\nAnd the bear?")
        shown = cli("memory", "status").out
        assert shown.startswith("Conversations are remembered.\n2 conversations with 2")
        assert "Where is the lion? And the bear?" in cli("memory", "list").out
        assert ids(cli)[0] == newest
        done = cli("memory", "forget", "--conversation", newest, "--yes")
        assert done.out.startswith("Forgot 1 turn.\n1 conversation with 1 turn")
        assert newest not in ids(cli)
        assert cli("memory", "forget", "--all", "--yes").code == 0
    assert not find_paths().memory.exists()


@pytest.mark.usefixtures("remembered")
def test_without_a_daemon_the_file_itself_is_read_and_forgotten(cli: Cli) -> None:
    write_settings("")
    shown = cli("memory", "status").out
    assert shown.startswith("Conversations are not remembered.\n2 conversations")
    assert len(ids(cli)) == 2
    assert cli("memory", "forget", "--days", "1", "--yes").out.startswith("Forgot 0")
    assert cli("memory", "forget", "--days", "0", "--yes").out.startswith("Forgot 2")
    assert cli("memory", "forget", "--all", "--yes").out.endswith("Nothing is kept.\n")
    assert not find_paths().memory.exists()
    assert "no conversations" in cli("memory", "list").err


@pytest.mark.usefixtures("remembered")
@pytest.mark.parametrize(
    "options", [(), ("--yes",), ("--all",), ("--all", "--days", "1", "--yes")]
)
def test_nothing_is_forgotten_unless_that_is_clear(
    cli: Cli, options: tuple[str, ...]
) -> None:
    assert cli("memory", "forget", *options).code == 78
    assert len(ids(cli)) == 2


@pytest.mark.parametrize(("settings", "remembers"), [(ON, True), ("", False)])
async def test_an_agent_over_stdio_has_the_memory_of_the_daemon(
    settings: str, *, remembers: bool
) -> None:
    write_settings(settings)
    paths = find_paths()
    with daemon_thread():
        async with LocalClient(paths, _refuse_to_open) as client:
            agent = Agent(client, [], paths.config.parent, read_text=_refuse_to_open)
            assert await agent.remembers() is remembers


def _refuse_to_open(*_: object) -> NoReturn:
    raise AssertionError("the daemon answers")
