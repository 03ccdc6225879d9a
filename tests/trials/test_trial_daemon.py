"""A daemon for trials leaves nothing, neither in the user's folders nor elsewhere."""

import tempfile
from pathlib import Path

import pytest

from byok.config import load_settings
from byok.errors import ConfigError
from byok.platform.paths import find_paths
from byok.redact import Redactor
from byok.trials.editor_body import chat_body, first_nodes
from byok.trials.trial_daemon import OVERRIDES, open_trial
from tests.fakes.process import configure
from tests.fakes.upstream import FakeUpstream

BODY = chat_body("byok:fake:m", "c-1", "Why?", first_nodes("Why?"), [])


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }


async def test_a_trial_asks_the_users_upstream_and_leaves_nothing(
    fake: FakeUpstream, clean_environment: Path, temporary: Path
) -> None:
    home = clean_environment
    configure(home, fake.url, '[context]\nworkspaces = ["/usr/share"]\n')
    (home / "prompts").mkdir()
    (home / "prompts" / "agent.md").write_text("My own words.")
    (home / "state").mkdir()
    (home / "state" / "models.json").write_text("{}")
    before, paths = tree(home), find_paths()
    settings = load_settings(paths.config, OVERRIDES)
    async with open_trial(settings, paths, Redactor()) as trial:
        [own] = temporary.iterdir()
        assert own.stat().st_mode & 0o077 == 0
        assert (own / "state" / "models.json").is_file()
        reply = await trial.client.ask(BODY)
        assert settings.context.workspaces == []
    assert (reply.text, reply.failure) == ("Hi.", "")
    assert reply.record.prompt.startswith("own agent@")
    assert fake.requests[0]["messages"][0]["content"] == "My own words."
    assert [*temporary.iterdir()] == []
    assert tree(home) == before


async def test_a_trial_uses_the_prompts_of_another_folder(
    fake: FakeUpstream, clean_environment: Path, tmp_path: Path, temporary: Path
) -> None:
    configure(clean_environment, fake.url)
    (tmp_path / "agent.md").write_text("Other words.")
    paths = find_paths()
    settings = load_settings(paths.config, OVERRIDES)
    others = tmp_path / "others"
    others.mkdir()
    (others / "agent.md").write_text("Other words.")
    async with open_trial(settings, paths, Redactor(), prompts=others) as trial:
        await trial.client.ask(BODY)
    assert fake.requests[0]["messages"][0]["content"] == "Other words."
    (others / "agent.md").write_text("{{#")
    with pytest.raises(ConfigError, match=r"agent\.md"):
        async with open_trial(settings, paths, Redactor(), prompts=others):
            pass
    assert [*temporary.iterdir()] == []


async def test_a_trial_that_breaks_removes_its_folder(
    fake: FakeUpstream, clean_environment: Path, temporary: Path
) -> None:
    configure(clean_environment, fake.url)
    paths = find_paths()
    settings = load_settings(paths.config, OVERRIDES)
    with pytest.raises(ZeroDivisionError):
        async with open_trial(settings, paths, Redactor()):
            raise ZeroDivisionError
    assert [*temporary.iterdir()] == []
