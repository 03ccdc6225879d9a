"""Profiles of models: written by the probe, read by the daemon."""

import json
from pathlib import Path

import pytest

from byok.dialects.model_facts import ModelFacts
from byok.upstream.profiles import Profile, Profiles

FACTS = ModelFacts("m", window=8000, images=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "profiles.json"


def test_a_profile_that_was_written_is_found_by_upstream_and_model(file: Path) -> None:
    Profiles(file).write("box@http://a", "m", Profile(FACTS, {"stream": "ok"}))
    found = Profiles(file)
    assert found.find("box@http://a", "m") == Profile(FACTS, {"stream": "ok"})
    assert found.models_of("box@http://a") == ["m"]
    assert found.facts("box@http://a", "n") == ModelFacts("n")
    assert found.facts("box@http://b", "m") == ModelFacts("m")
    assert file.stat().st_mode & 0o077 == 0


def test_without_a_file_there_are_no_profiles(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert Profiles(file).facts("box", "m") == ModelFacts("m")
    assert caplog.text == ""


def test_profiles_that_another_process_wrote_are_read(file: Path) -> None:
    daemon, probe = Profiles(file), Profiles(file)
    assert daemon.models_of("box") == []
    probe.write("box", "m", Profile(FACTS))
    probe.write("box", "n", Profile(ModelFacts("n", tools=True)))
    assert daemon.facts("box", "m") == FACTS
    probe.write("box", "m", Profile(ModelFacts("m", window=9000)))
    assert daemon.facts("box", "m").window == 9000
    assert sorted(daemon.models_of("box")) == ["m", "n"]


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"\xff",
        b"[]",
        b'{"version": 2, "profiles": {}}',
        b'{"version": 1}',
        b" " * (4 * 2**20 + 1),
    ],
    ids=["cut", "garbage", "array", "version", "none", "large"],
)
def test_damaged_profiles_are_reported_once_and_left_alone(
    file: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    found = Profiles(file)
    assert found.facts("box", "m") == ModelFacts("m")
    assert found.facts("box", "n") == ModelFacts("n")
    assert caplog.text.count("ignoring the profiles") == 1
    assert found.damage.startswith("ignoring the profiles in ")
    assert file.read_bytes() == content
    found.write("box", "m", Profile(FACTS))
    assert found.facts("box", "m") == FACTS
    assert Profiles(file).facts("box", "m") == FACTS


@pytest.mark.parametrize(
    "rows", [{"box": 1}, {"box": {"m": []}}, {"box": {"m": {"facts": 3}}}], ids=str
)
def test_a_damaged_profile_counts_as_none(file: Path, rows: object) -> None:
    file.parent.mkdir()
    file.write_text(json.dumps({"version": 1, "profiles": rows}))
    found = Profiles(file)
    assert found.find("box", "m") == Profile(ModelFacts("m"))
    found.write("box", "n", Profile(FACTS))
    assert found.facts("box", "n").window == 8000


def test_profiles_do_not_grow_for_ever(file: Path) -> None:
    found = Profiles(file, most=3)
    for name in "abcde":
        found.write("box", name, Profile(FACTS))
    assert found.models_of("box") == ["c", "d", "e"]
