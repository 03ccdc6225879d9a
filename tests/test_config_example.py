"""The printed example describes every setting, and nothing but settings."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from byok.protocols.augment.endpoints import ENDPOINTS, Generate
from byok.settings import Settings, UpstreamSettings, example, load_settings
from byok.settings.sections import (
    FactSettings,
    FallbackSettings,
    ModelSettings,
    OfficialSettings,
    RemoteSettings,
    TeamSettings,
)

TEXT = example()
HEADER = re.compile(r"^#(\[.+\])$", re.MULTILINE)
SETTING = re.compile(r"^#(\"?[a-z][\w/-]*\"?) = (.+)$", re.MULTILINE)
UPSTREAM, FACTS = "upstreams.name", 'upstreams.name.facts."model"'
MODELS, FALLBACK = "routing.models", "routing.fallback"
OFFICIAL = "routing.official"
TEAM, REMOTE = "embeddings.team", "search.remote"
NO_DEFAULT = "base_url"  # an upstream without a preset must name one


def described() -> dict[str, list[str]]:
    """Return the keys of each section of the file, as often as they appear."""
    parts = HEADER.split(TEXT)
    names = [name.strip("[]") for name in parts[1::2]]
    assert len(names) == len(set(names)), "a section stands there twice"
    keys = [[m[1].strip('"') for m in SETTING.finditer(part)] for part in parts[2::2]]
    assert not SETTING.search(parts[0]), "a setting stands above all sections"
    return dict(zip(names, keys, strict=True))


def existing() -> dict[str, list[str]]:
    """Return the keys of each section of the settings class."""
    sections: dict[str, list[str]] = {}
    for name, field in Settings.model_fields.items():
        kind: Any = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            sections[name] = list(kind.model_fields)
    sections["routing"] = ["default", "aliases"]
    sections[MODELS] = list(ModelSettings.model_fields)
    sections[FALLBACK] = list(FallbackSettings.model_fields)
    sections[OFFICIAL] = list(OfficialSettings.model_fields)
    sections[UPSTREAM] = [n for n in UpstreamSettings.model_fields if n != "facts"]
    sections[FACTS] = list(FactSettings.model_fields)
    rows = (row for row in ENDPOINTS if isinstance(row, Generate))
    sections["embeddings"].remove("team")
    sections[TEAM] = list(TeamSettings.model_fields)
    del sections["search"]
    sections[REMOTE] = list(RemoteSettings.model_fields)
    sections["prompts"] = [row.path.lstrip("/") for row in rows]
    return sections


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return path


def test_config_example_test_knows_every_section() -> None:
    names = {name.partition(".")[0] for name in existing()}
    assert names == set(Settings.model_fields)


@pytest.mark.parametrize("section", existing())
def test_config_example_describes_every_key_exactly_once(section: str) -> None:
    assert sorted(described()[section]) == sorted(existing()[section])


def test_config_example_has_no_unknown_section() -> None:
    assert set(described()) == set(existing())


def test_config_example_explains_every_setting_in_the_line_above() -> None:
    lines = TEXT.splitlines()
    for number, line in enumerate(lines):
        if SETTING.match(line) or HEADER.match(line):
            assert lines[number - 1].startswith("# "), line


def test_config_example_unchanged_gives_the_defaults(tmp_path: Path) -> None:
    path = written(tmp_path / "config.toml", TEXT)
    assert load_settings(path) == Settings()


def test_config_example_with_its_settings_switched_on_gives_the_defaults(
    tmp_path: Path,
) -> None:
    text = SETTING.sub(r"\1 = \2", HEADER.sub(r"\1", TEXT))
    given = load_settings(written(tmp_path / "config.toml", text))
    pairs: list[tuple[BaseModel, BaseModel]] = [
        (getattr(given, name), getattr(Settings(), name))
        for name in existing()
        if "." not in name and name != "prompts"
    ]
    pairs.append((given.search.remote, RemoteSettings()))
    pairs.append((given.routing.models, ModelSettings()))
    pairs.append((given.routing.fallback, FallbackSettings()))
    pairs.append((given.routing.official, OfficialSettings()))
    usual = UpstreamSettings(base_url="https://usual.example")
    pairs.append((given.upstreams["name"], usual))
    for section, default in pairs:
        for key, value in default:
            if value is not None and key not in (NO_DEFAULT, "facts"):
                assert getattr(section, key) == value, key
    assert set(given.prompts.values()) == {""}
    facts = given.upstreams["name"].facts["model"].model_dump()
    usual_facts = FactSettings().model_dump().items()
    assert {n: facts[n] for n, v in usual_facts if v is not None} == {
        n: v for n, v in usual_facts if v is not None
    }


def examples() -> list[str]:
    """Return the worked examples without their marks."""
    return [
        "\n".join(re.findall(r"^##(?: (.*))?$", part, re.MULTILINE))
        for part in re.split(r"^# Example \d: ", TEXT, flags=re.MULTILINE)[1:]
    ]


def test_every_worked_example_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    loaded = [load_settings(written(path, text)).upstreams for text in examples()]
    assert [list(u) for u in loaded] == [
        ["ollama"],
        ["openai", "openrouter"],
        ["gateway"],
    ]
    assert loaded[0]["ollama"].model
    assert loaded[2]["gateway"].ca_file
    assert loaded[2]["gateway"].headers
