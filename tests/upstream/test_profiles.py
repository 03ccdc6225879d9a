"""Profiles of models: written by the probe, read by the daemon."""

import json
from pathlib import Path

import pytest

from byok.dialects.model_facts import ModelFacts
from byok.dialects.remedies import Remedy
from byok.upstream.model_facts import Profile, Profiles

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


SYSTEM, IDS = Remedy("system"), Remedy("ids", "9", "exact")


def test_remedies_of_a_model_outlast_the_daemon(file: Path) -> None:
    first = Profiles(file, clock=lambda: 1000.0)
    first.write("box", "m", Profile(FACTS))
    first.add_remedies("box", "m", "openai_chat", [SYSTEM])
    first.add_remedies("box", "m", "openai_chat", [IDS, SYSTEM])
    first.add_remedies("box", "n", "ollama", [SYSTEM])
    first.close()
    later = Profiles(file, clock=lambda: 1060.0)
    found = later.remedies("box", "m", "openai_chat")
    assert found == [(IDS, 60.0), (SYSTEM, 60.0)]
    assert later.remedies("box", "n", "ollama") == [(SYSTEM, 60.0)]
    assert later.remedies("box", "m", "ollama") == []
    assert later.facts("box", "m") == FACTS
    assert file.stat().st_mode & 0o077 == 0


def test_a_new_probe_of_a_model_forgets_its_remedies(file: Path) -> None:
    profiles = Profiles(file)
    profiles.add_remedies("box", "m", "ollama", [SYSTEM])
    profiles.close()
    Profiles(file).write("box", "m", Profile(FACTS))
    assert profiles.remedies("box", "m", "ollama") == []


def test_remedies_for_single_conversations_do_not_displace_others(file: Path) -> None:
    profiles = Profiles(file)
    profiles.add_remedies("box", "m", "anthropic", [SYSTEM])
    for number in range(70):
        one = Remedy("signature", "", str(number))
        profiles.add_remedies("box", "m", "anthropic", [one])
    profiles.close()
    found = [remedy for remedy, _ in Profiles(file).remedies("box", "m", "anthropic")]
    assert SYSTEM in found
    assert found[-1].version == "69"
    assert len(found) == 51


def test_remedies_are_not_written_over_a_damaged_file(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"{")
    profiles = Profiles(file)
    profiles.add_remedies("box", "m", "ollama", [SYSTEM])
    profiles.close()
    assert file.read_bytes() == b"{"
    assert [remedy for remedy, _ in profiles.remedies("box", "m", "ollama")] == [SYSTEM]


def test_remedies_that_cannot_be_written_are_known_all_the_same(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.parent.write_text("no folder")
    profiles = Profiles(file)
    profiles.add_remedies("box", "m", "ollama", [SYSTEM])
    profiles.close()
    assert [remedy for remedy, _ in profiles.remedies("box", "m", "ollama")] == [SYSTEM]
    assert "cannot be kept" in caplog.text
