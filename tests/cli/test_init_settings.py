"""byok init: the change of the settings is shown, asked for, and made."""

import click
import pytest
import typer

from byok.cli.asker import NobodyAsker, YesAsker
from byok.cli.init_steps import choose_and_show, write_settings
from byok.cli.init_survey import Candidate, ChosenModel, FoundBy
from byok.core.errors import ConfigError
from byok.core.platform.paths import find_paths
from byok.dialects.model_facts import ModelFacts
from byok.settings import UpstreamSettings, load_settings
from tests.fakes.answers import ScriptedPerson

OLLAMA = Candidate(
    "ollama",
    UpstreamSettings(type="ollama"),
    "http://127.0.0.1:11434",
    FoundBy.SERVER,
)
CHOSEN = [ChosenModel("default", "coder:30b", "the only one listed")]
NOBODY = NobodyAsker("byok init --yes")
OLD = b"# mine\n[server]\nport = 9000 # here\n"


def put(content: bytes) -> None:
    path = find_paths().config
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o600)


def test_models_are_shown_with_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    models = [ModelFacts("qwen3-coder:30b"), ModelFacts("\x1b[31mred")]
    chosen = choose_and_show(OLLAMA, models)
    assert [one.model for one in chosen] == ["qwen3-coder:30b", ""]
    out = capsys.readouterr().out
    assert "the best of 2 for code" in out
    assert choose_and_show(OLLAMA, []) == []
    assert "lists no models" in capsys.readouterr().err


def test_a_new_file_is_shown_and_written(capsys: pytest.CaptureFixture[str]) -> None:
    person = ScriptedPerson(True)
    assert write_settings(OLLAMA, CHOSEN, find_paths(), person)
    assert person.asked == [f"Write {find_paths().config}?"]
    assert '+default = "byok:ollama:coder:30b"' in capsys.readouterr().out
    assert load_settings(find_paths().config).routing.default == "byok:ollama:coder:30b"


def test_an_existing_file_is_extended_and_saved(
    capsys: pytest.CaptureFixture[str],
) -> None:
    put(OLD)
    assert write_settings(OLLAMA, CHOSEN, find_paths(), ScriptedPerson(True))
    assert find_paths().config.read_bytes().startswith(OLD)
    (saved,) = (find_paths().state_dir / "settings_backups").iterdir()
    assert saved.read_bytes() == OLD
    assert str(saved) in capsys.readouterr().out


def test_the_second_time_nothing_is_asked_or_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    put(OLD)
    write_settings(OLLAMA, CHOSEN, find_paths(), YesAsker())
    before = find_paths().config.stat()
    person = ScriptedPerson()
    assert not write_settings(OLLAMA, CHOSEN, find_paths(), person)
    after = find_paths().config.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert "needs no change" in capsys.readouterr().out


@pytest.mark.parametrize("content", [None, OLD])
@pytest.mark.parametrize(
    ("answer", "error"), [(False, typer.Exit), (None, click.Abort)]
)
def test_nothing_is_written_after_a_no_or_ctrl_c(
    content: bytes | None, answer: bool | None, error: type[Exception]
) -> None:
    if content is not None:
        put(content)
    with pytest.raises(error):
        write_settings(OLLAMA, CHOSEN, find_paths(), ScriptedPerson(answer))
    path = find_paths().config
    assert (path.read_bytes() if path.exists() else None) == content
    assert not find_paths().state_dir.exists()


def test_nobody_gets_a_new_file_and_no_change_of_an_old_one() -> None:
    put(OLD)
    with pytest.raises(ConfigError) as caught:
        write_settings(OLLAMA, CHOSEN, find_paths(), NOBODY)
    assert "--yes" in caught.value.hint
    assert find_paths().config.read_bytes() == OLD
    find_paths().config.unlink()
    assert write_settings(OLLAMA, CHOSEN, find_paths(), NOBODY)


def test_what_stays_as_the_user_set_it_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    put(b"[upstreams.ollama]\n[routing]\ndefault = 'byok:ollama:mine'\n")
    assert not write_settings(OLLAMA, CHOSEN, find_paths(), ScriptedPerson())
    assert "stay: routing.default" in capsys.readouterr().err
