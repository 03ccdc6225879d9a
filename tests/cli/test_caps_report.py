"""What `byok status` says of caps."""

from typing import Any

import pytest

from byok.cli.caps_report import show_caps


def told(capsys: pytest.CaptureFixture[str], **answer: Any) -> list[str]:
    show_caps({"unpriced": 0, "journal": True, **answer})
    return capsys.readouterr().out.splitlines()


def test_without_caps_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, caps=[], unpriced=3, journal=False) == []
    show_caps({})  # of an older daemon
    assert capsys.readouterr().out == ""


def test_caps_and_what_does_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"name": "requests_per_day", "most": 1000, "used": 12},
        {"name": "usd_per_day", "most": 5.0, "used": 1.5},
        {"name": "tokens_per_conversation", "most": 10_000, "used": None},
    ]
    lines = told(capsys, caps=rows, unpriced=3, journal=False)
    assert lines[:3] == [
        "cap: requests_per_day: 12 of 1,000 used",
        "cap: usd_per_day: $1.50 + 3 requests of unknown price, of $5.00 used",
        "cap: tokens_per_conversation: 10,000 at most",
    ]
    assert "journal is off" in lines[3]
    [line] = told(capsys, caps=[{**rows[1], "used": 0.0}], unpriced=1)
    assert line == "cap: usd_per_day: 1 request of unknown price, of $5.00 used"
