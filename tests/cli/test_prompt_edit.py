"""byok prompts edit: what the editor gets, and what happens with what it saved."""

import os
import stat
import sys
from pathlib import Path

import pytest

from byok.core.platform.paths import find_paths
from byok.core.prompts.prompt_set import shipped_texts
from tests.fakes.commands import Cli
from tests.fakes.daemon_thread import daemon_thread

pytestmark = pytest.mark.skipif(os.name != "posix", reason="scripts for POSIX")


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An editor that adds the text of $ADDS to the file."""
    made = tmp_path / "editor"
    made.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        "open(sys.argv[1], 'a').write(os.environ.get('ADDS', ''))\n"
        "sys.exit(int(os.environ.get('CODE', '0')))\n"
    )
    made.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(made))
    return made


@pytest.fixture
def folder() -> Path:
    return find_paths().prompts


@pytest.mark.usefixtures("editor")
def test_a_new_text_adds_to_the_shipped_one_and_is_private(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADDS", "Mine.\n")
    done = cli("prompts", "edit", "agent")
    assert (done.code, done.out) == (0, "")
    assert (
        done.err
        == "The prompts are valid. byok is not running; it reads them when it starts.\n"
    )
    assert (folder / "agent.md").read_text() == "{{shipped}}\n\nMine.\n"
    for path in (folder, folder / "agent.md"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


@pytest.mark.usefixtures("editor")
@pytest.mark.parametrize(
    ("name", "shipped"), [("title", "title"), ("title.small", "title")]
)
def test_a_new_text_may_begin_with_a_copy(
    cli: Cli, folder: Path, name: str, shipped: str
) -> None:
    done = cli("prompts", "edit", name, "--whole")
    assert done.code == 0
    assert (folder / f"{name}.md").read_text() == shipped_texts()[shipped]
    assert "Nothing was changed." in done.err
    assert "code --wait" in done.err


@pytest.mark.usefixtures("editor")
def test_an_own_text_is_opened_as_it_is(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir(parents=True)
    (folder / "title.md").write_text("Mine.")
    monkeypatch.setenv("ADDS", " More.")
    assert cli("prompts", "edit", "title", "--whole").code == 0
    assert (folder / "title.md").read_text() == "Mine. More."


@pytest.mark.usefixtures("editor")
def test_a_running_daemon_uses_it_and_keeps_the_old_one_if_it_is_broken(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with daemon_thread() as daemon:
        monkeypatch.setenv("ADDS", "Mine.\n")
        done = cli("prompts", "edit", "title")
        assert (done.code, done.out) == (0, "")
        assert "The running daemon uses them from now on." in done.err
        first = daemon.services.defaults.prompts
        assert first.render("title").text.endswith("Mine.")
        monkeypatch.setenv("ADDS", "{{oops}}\n")
        done = cli("prompts", "edit", "title")
        assert done.code == 78
        assert done.out.startswith("title.md:4: {{oops}} is no slot.")
        assert "keeps the prompts that it has" in done.err
        assert daemon.services.defaults.prompts is first


@pytest.mark.usefixtures("editor")
def test_what_the_daemon_refuses_is_told(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADDS", "Mine.\n")
    with daemon_thread():
        find_paths().config.write_text("[server]\nprot = 1\n")
        done = cli("prompts", "edit", "title")
    assert done.code == 78
    assert "keeps those that it has" in done.err
    assert "server.prot" in done.err


@pytest.mark.usefixtures("editor")
def test_an_editor_that_fails_ends_the_command(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODE", "2")
    monkeypatch.setenv("ADDS", "Mine.")
    done = cli("prompts", "edit", "title")
    assert done.code == 1
    assert "failed (exit code 2)" in done.err
    assert "valid" not in done.err
    assert (folder / "title.md").read_text().endswith("Mine.")


@pytest.mark.usefixtures("editor")
@pytest.mark.parametrize("kind", ["folder", "pipe", "outwards", "dangling"])
def test_what_is_no_file_of_the_folder_is_not_opened(
    cli: Cli, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("ADDS", "Mine.")
    folder.mkdir(parents=True)
    file, outside = folder / "title.md", tmp_path / "outside.md"
    outside.write_text("x")
    match kind:
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case "outwards":
            file.symlink_to(outside)
        case _:
            file.symlink_to("nowhere")
    done = cli("prompts", "edit", "title")
    assert (done.code, done.out) == (1, "")
    assert "is no plain file of that folder" in done.err
    assert outside.read_text() == "x"


@pytest.mark.parametrize("name", ["agents", "../agent", "agent.x"])
def test_only_prompts_can_be_edited(cli: Cli, folder: Path, name: str) -> None:
    done = cli("prompts", "edit", name)
    assert (done.code, done.out) == (1, "")
    assert not folder.exists()
