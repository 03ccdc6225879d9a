"""Profiles on the terminal: whose they are, and what is said of damaged ones."""

import pytest

from byok.cli.probe_profiles import ProbeTarget
from byok.config import Settings
from byok.errors import ConfigError
from byok.platform.paths import find_paths
from tests.fakes.commands import Cli

SETTINGS = Settings.model_validate(
    {
        "upstreams": {"box": {"base_url": "https://box.example/v1"}},
        "routing": {"aliases": {"fast": "byok:box:a/b"}},
    }
)


@pytest.mark.parametrize(
    ("what", "name", "model"),
    [
        ("box", "box", ""),
        ("box/m", "box", "m"),
        ("box/vendor/m:free", "box", "vendor/m:free"),
        ("byok:box:m", "box", "m"),
        ("fast", "box", "a/b"),
        ("byok:fast", "box", "a/b"),
        ("", "box", ""),
        ("openai/gpt-5.1", "openai", "gpt-5.1"),
        ("https://other.example/v1", "custom", ""),
    ],
)
def test_the_target_of_a_probe(what: str, name: str, model: str) -> None:
    target = ProbeTarget(what, SETTINGS)
    assert (target.name, target.model) == (name, model)


def test_the_target_of_a_probe_must_exist() -> None:
    with pytest.raises(ConfigError, match="Unknown upstream"):
        ProbeTarget("nobody/m", SETTINGS)
    with pytest.raises(ConfigError, match="no upstream"):
        ProbeTarget("", Settings())


def test_profiles_are_named_by_upstream_and_address() -> None:
    target = ProbeTarget("box", SETTINGS)
    assert target.key(SETTINGS) == "box@https://box.example/v1"


def test_a_missing_profile_says_how_to_make_one(cli: Cli) -> None:
    done = cli("probe", "openai/m", "--show")
    assert done.code == 78
    assert "openai has no profile of this model" in done.err
    assert "byok probe openai/MODEL" in done.err


def test_a_damaged_profile_is_said_and_ignored(cli: Cli) -> None:
    file = find_paths().profiles
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{damaged")
    done = cli("probe", "openai", "--show")
    assert "ignoring the profiles in" in done.err
    assert "openai has no profile" in done.err
    assert file.read_text() == "{damaged"
