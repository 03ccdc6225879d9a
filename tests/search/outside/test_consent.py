"""The file that says which host and model may get code."""

import errno
import stat
from pathlib import Path

import pytest

from byok.core.errors import NotAllowed
from byok.search.outside.consent import Consent

HOST, MODEL = "api.vendor.example:443", "embed-1"

KEPT = (
    b'{"host": "api.vendor.example:443", "model": "embed-1", '
    b'"paused": false, "off": false}'
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "embeddings.json"


def allows(consent: Consent, host: str = HOST, model: str = MODEL) -> bool:
    try:
        consent.check(host, model, is_local=False)
    except NotAllowed as error:
        assert host in error.message
        assert "byok embed enable" in error.hint
        return False
    return True


def test_without_a_file_only_this_machine_may_be_asked(path: Path) -> None:
    consent = Consent(path)
    assert not allows(consent)
    assert not consent.paused
    consent.check("127.0.0.1:11434", MODEL, is_local=True)
    assert not path.exists()


def test_consent_is_for_one_host_and_one_model(path: Path) -> None:
    Consent(path).give(HOST, MODEL)
    consent = Consent(path)
    assert allows(consent)
    assert not allows(consent, "api.vendor.example:8443")
    assert not allows(consent, model="embed-2")
    consent.give(HOST, "embed-2")
    assert not allows(consent)


def test_this_machine_s_models_can_be_switched_off(path: Path) -> None:
    Consent(path).withdraw()
    consent = Consent(path)
    assert not consent.allows("127.0.0.1:11434", MODEL, is_local=True)
    consent.give("127.0.0.1:11434", MODEL)
    assert consent.allows("127.0.0.1:11434", MODEL, is_local=True)
    assert not allows(consent)


def test_a_pause_outlives_a_restart_and_the_consent(path: Path) -> None:
    consent = Consent(path)
    consent.give(HOST, MODEL)
    consent.pause()
    assert Consent(path).paused
    assert allows(Consent(path))
    consent.withdraw()
    assert Consent(path).paused
    consent.resume()
    assert not Consent(path).paused


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        KEPT.replace(b', "off": false', b""),
        KEPT.replace(b'"embed-1"', b'["embed-1"]'),
        KEPT.replace(b'"paused": false', b'"paused": 0'),
        KEPT + b"x",
        KEPT.replace(b"vendor", b"\xff"),
        b" " * 5000 + KEPT,
        b"\0" * 64,
    ],
    ids=ascii,
)
def test_a_damaged_file_is_no_consent(path: Path, content: bytes) -> None:
    Consent(path).give(HOST, MODEL)
    path.write_bytes(content)
    consent = Consent(path)
    assert not allows(consent)
    assert not consent.allows("127.0.0.1:11434", MODEL, is_local=True)
    consent.give(HOST, MODEL)
    assert allows(Consent(path))


def test_a_link_or_a_file_that_others_can_write_is_no_consent(
    path: Path, tmp_path: Path
) -> None:
    Consent(path).give(HOST, MODEL)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o666)
    assert not allows(Consent(path))
    path.chmod(0o600)
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert not allows(Consent(path))


def test_a_withdrawal_counts_although_it_cannot_be_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    consent = Consent(path)
    consent.give(HOST, MODEL)

    def fail(_path: Path, _content: str) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr("byok.search.outside.consent.write_private", fail)
    with pytest.raises(OSError, match="no room"):
        consent.withdraw()
    assert not allows(consent)
