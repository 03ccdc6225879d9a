"""byok remote: that a search server on another machine is asked after consent only."""

from pathlib import Path

import pytest

from byok.core.platform.paths import find_paths
from byok.search.vectors.consent import Consent
from tests.fakes.commands import Cli

HOST = "code.example:8443"


@pytest.fixture
def consent(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BYOK_SEARCH__REMOTE__URL", f"https://{HOST}")
    return find_paths().search_consent


def is_allowed(host: str = HOST) -> bool:
    consent = Consent(find_paths().search_consent)
    return consent.allows(host, "", is_local=False)


@pytest.mark.case("B129")
def test_a_search_server_is_enabled_by_the_user_only(cli: Cli, consent: Path) -> None:
    refused = cli("remote", "enable", stdin="y\n")
    assert refused.code
    assert HOST in refused.out
    assert not consent.exists()
    enabled = cli("remote", "enable", "--yes")
    assert (enabled.code, enabled.err) == (0, "")
    assert consent.stat().st_mode & 0o777 == 0o600
    assert is_allowed()
    assert not is_allowed("other.example:443")
    assert cli("remote", "disable").code == 0
    assert not is_allowed()


def test_a_server_must_be_named_first(cli: Cli) -> None:
    done = cli("remote", "enable", "--yes")
    assert done.code
    assert "[search.remote]" in done.err
    assert not find_paths().search_consent.exists()
