"""scripts/compare without recordings, and the settings that it runs byok with."""

from pathlib import Path

import pytest

from tools.compare import main, settings_for


def test_without_recordings_it_says_where_they_belong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--kind", "chat_stream", "--shared", str(tmp_path)]) == 2
    assert "BYOK_SHARED" in capsys.readouterr().err


def test_each_kind_has_its_dialect_and_base_url() -> None:
    upstream = settings_for("gemini_stream", "http://127.0.0.1:1")["upstreams"]
    assert upstream["replay"]["dialect"] == "gemini"
    assert upstream["replay"]["base_url"] == "http://127.0.0.1:1/v1beta"


# Of the recordings of Responses two hold several answers in a row, and one has fewer
# deltas than text.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options"),
    [("anthropic_stream", ()), ("responses_stream", ("--at-least", "0.986"))],
)
def test_recorded_answers_of_native_apis_are_exact(
    kind: str,
    options: tuple[str, ...],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("BYOK_HOME", str(tmp_path))  # main sets both; put back after it
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    if (code := main(["--kind", kind, *options])) == 2:
        pytest.skip("no recorded streams: set BYOK_SHARED")
    assert code == 0, capfd.readouterr().out[-2000:]
