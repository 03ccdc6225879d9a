"""byok init as a person runs it, and as a script does."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon import running
from tests.fakes.program import run_byok

needs_terminal = pytest.mark.skipif(os.name != "posix", reason="no pseudo-terminal")
OLD = b"# mine, with care\n\n[upstreams.demo] # no model\n"


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A home without editors, a machine without a service manager, and a free port."""
    (tmp_path / "bin").mkdir()
    yield {
        "HOME": str(tmp_path),
        "PATH": str(tmp_path / "bin"),
        "BYOK_SERVER__PORT": "0",
    }
    run_byok("stop", env={"HOME": str(tmp_path)})


def put(content: bytes = OLD) -> Path:
    path = find_paths().config
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def test_a_script_sets_up_and_starts_byok_with_one_command(
    environ: dict[str, str],
) -> None:
    done = run_byok("init", "--yes", "--upstream", "demo", env=environ)
    assert (done.returncode, "byok is listening on" in done.stdout) == (0, True)
    assert "byok dashboard\n" in done.stderr
    assert 'default = "byok:demo:echo"' in find_paths().config.read_text()
    assert "byok:demo:echo" in run_byok("status", env=environ).stdout
    again = run_byok("init", "--yes", "--upstream", "demo", env=environ)
    assert again.returncode == 0
    assert "needs no change" in again.stdout
    assert "byok runs, and uses byok:demo:echo." in again.stdout


def test_without_yes_a_script_writes_a_new_file_and_starts_nothing(cli: Cli) -> None:
    done = cli("init", "--upstream", "demo")
    assert (done.code, find_paths().daemon.exists()) == (0, False)
    assert "byok serve" in done.out
    assert 'default = "byok:demo:echo"' in find_paths().config.read_text()


def test_a_script_without_a_choice_changes_nothing(cli: Cli) -> None:
    done = cli("init", "--upstream", "nonsense")
    assert (done.code, find_paths().config.exists()) == (78, False)
    assert "Unknown upstream" in done.err


def test_settings_that_are_wrong_are_corrected_first(cli: Cli) -> None:
    path = put(b"[nonsense]\n")
    done = cli("init", "--upstream", "demo")
    assert (done.code, path.read_bytes()) == (78, b"[nonsense]\n")


def test_a_vendor_without_a_key_changes_nothing(cli: Cli) -> None:
    done = cli("init", "--yes", "--upstream", "openrouter")
    assert (done.code, find_paths().config.exists()) == (78, False)
    assert "byok keys set openrouter" in done.err


@needs_terminal
def test_a_person_goes_from_nothing_to_a_connected_client(
    environ: dict[str, str],
) -> None:
    from tests.fakes.terminal import typing_to

    path = put()
    with typing_to("init", env=environ) as typist:
        typist.wait_for("Which one?")
        typist.type("demo")
        typist.wait_for("Write")
        typist.type("y")
        typist.wait_for("Start byok now")
        typist.type("")
        assert typist.wait_for_end() == 0
    assert "No editor is connected" in typist.shown  # so nobody is waited for
    assert path.read_bytes().startswith(OLD)
    assert run_byok("status", env=environ).returncode == 0


@needs_terminal
@pytest.mark.parametrize(
    "answers",
    [(), ("demo",), ("demo", "y")],
    ids=["which one", "write", "start"],
)
def test_ctrl_c_at_a_question_leaves_nothing_half_done(
    environ: dict[str, str], answers: tuple[str, ...]
) -> None:
    from tests.fakes.terminal import typing_to

    path = put()
    questions = ("Which one?", "Write", "Start byok now")
    with typing_to("init", env=environ) as typist:
        for question, answer in zip(questions, answers, strict=False):
            typist.wait_for(question)
            typist.type(answer)
        typist.wait_for(questions[len(answers)])
        typist.interrupt()
        assert typist.wait_for_end() == 1
    assert "Traceback" not in typist.shown
    was_written = len(answers) == 2
    assert (path.read_bytes() != OLD) is was_written
    assert path.read_bytes().startswith(OLD)
    assert not find_paths().daemon.exists()


@needs_terminal
def test_a_key_is_not_shown_and_not_asked_for_without_a_keyring(
    environ: dict[str, str],
) -> None:
    from tests.fakes.terminal import typing_to

    with typing_to("init", "--upstream", "openrouter", env=environ) as typist:
        typist.wait_for("Which one?")
        typist.type("3")  # no store at all
        assert typist.wait_for_end() == 78
    assert "BYOK_KEY_OPENROUTER" in typist.shown
    assert not find_paths().config.exists()


@needs_terminal
def test_enter_at_each_question_leads_to_a_connected_editor(
    environ: dict[str, str], tmp_path: Path
) -> None:
    from tests.fakes.terminal import typing_to

    editor = tmp_path / ".config" / "Code" / "User" / "settings.json"
    editor.parent.mkdir(parents=True)
    environ["XDG_CONFIG_HOME"] = str(tmp_path / ".config")
    with typing_to("init", "--upstream", "demo", env=environ) as typist:
        for question in ("Write", "Start byok now", str(editor)):
            typist.wait_for(question)
            typist.wait_for("?")
            typist.type("")
        typist.wait_for("Waiting for its first request")
        typist.interrupt()
        assert typist.wait_for_end() == 0
    assert "127.0.0.1" in editor.read_text()


async def test_what_init_wrote_answers(cli: Cli) -> None:
    import asyncio

    done = await asyncio.to_thread(cli, "init", "--upstream", "demo")
    assert done.code == 0
    async with running() as editor:
        reply = await editor.chat("Hello!")
    assert reply.last["stop_reason"] == 1
