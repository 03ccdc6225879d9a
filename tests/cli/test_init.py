"""byok init as a person runs it, and as a script does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.core.daemon.instance import is_held
from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon import write_settings
from tests.fakes.program import needs_terminal, run_byok

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
    if is_held(find_paths()):
        run_byok("stop", env={"HOME": str(tmp_path)})


@pytest.mark.filterwarnings("ignore:subprocess:ResourceWarning")  # it outlives byok
def test_a_script_sets_up_and_starts_byok_with_one_command(
    cli: Cli, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    done = cli("init", "--yes", "--upstream", "demo")
    assert (done.code, "byok is listening on" in done.out) == (0, True)
    assert "byok dashboard\n" in done.err
    assert 'default = "byok:demo:echo"' in find_paths().config.read_text()
    assert "byok:demo:echo" in cli("status").out
    again = cli("init", "--yes", "--upstream", "demo")
    assert again.code == 0
    assert "needs no change" in again.out
    assert "byok runs, and uses byok:demo:echo." in again.out


def test_settings_that_are_wrong_are_corrected_first(cli: Cli) -> None:
    path = write_settings(b"[nonsense]\n")
    done = cli("init", "--upstream", "demo")
    assert (done.code, path.read_bytes()) == (78, b"[nonsense]\n")


@needs_terminal
def test_ctrl_c_at_a_question_leaves_nothing_half_done(environ: dict[str, str]) -> None:
    from tests.fakes.terminal import typing_to

    path = write_settings(OLD)
    with typing_to("init", env=environ) as typist:
        for question, answer in (("Which one?", "demo"), ("Write", "y")):
            typist.wait_for(question)
            typist.type(answer)
        typist.wait_for("Start byok now")
        typist.interrupt()
        typist.wait_for("byok init\n")
        assert typist.wait_for_end() == 1
    assert "Traceback" not in typist.shown
    assert path.read_bytes().startswith(OLD)
    assert path.read_bytes() != OLD
    assert not find_paths().daemon.exists()


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
