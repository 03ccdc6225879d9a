"""Changes that the page asks for."""

from pathlib import Path
from typing import Any

import pytest

from byok.clients.editor import MISSING
from byok.core.errors import BadRequest
from byok.features.caps.settings import CapSettings
from byok.server.dashboard.editable import Change, Tables, apply_changes, read_changes
from byok.settings import Settings, check_settings, make_settings
from byok.settings.section import SettingFault
from tests.fakes.own_settings import TEXTS

FILE = Path("f")
TEMPERATURE = ("chat", "temperature")


def judge(given: Tables) -> Settings:
    settings = make_settings(given, FILE, environ={})
    check_settings(settings)
    return settings


@pytest.mark.parametrize(
    ("path", "value", "due"),
    [
        (TEMPERATURE, 1.0, 1),
        (TEMPERATURE, 0.5, 0.5),
        (("chat", "max_tokens"), 2.0, 2),
        (("chat", "retrieval"), False, False),
        (("chat", "system_prompt"), "a\r\nb", "a\nb"),
        (("loops", "polling"), ["x"], ["x"]),
        (("upstreams", "a"), {}, {}),
    ],
)
def test_a_value_is_read_as_its_setting_has_it(
    path: tuple[str, ...], value: Any, due: Any
) -> None:
    body = {"changes": [{"path": list(path), "value": value}]}
    assert read_changes(body) == ([Change(path, due)], [])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (TEMPERATURE, True),
        (TEMPERATURE, "1"),
        (TEMPERATURE, None),
        (TEMPERATURE, 1e300),
        (("chat", "max_tokens"), 1.5),
        (("chat", "retrieval"), 1),
        (("chat", "system_prompt"), "x" * 20_001),
        (("routing", "default"), "a\nb"),
        (("routing", "default"), "x" * 2001),
        (("loops", "polling"), "x"),
        (("loops", "polling"), [1]),
        (("loops", "polling"), ["x"] * 201),
        (("upstreams", "../x"), {}),
        (("upstreams", "official", "model"), "x"),
    ],
)
def test_a_value_that_its_setting_cannot_have_is_a_fault(
    path: tuple[str, ...], value: Any
) -> None:
    changes, faults = read_changes({"changes": [{"path": list(path), "value": value}]})
    assert (changes, [fault.path for fault in faults]) == ([], [path])


def test_removing_needs_no_value() -> None:
    body = {"changes": [{"path": list(TEMPERATURE), "remove": True}]}
    assert read_changes(body) == ([Change(TEMPERATURE, MISSING)], [])


def test_an_upstream_is_no_value() -> None:
    with pytest.raises(BadRequest, match="empty table"):
        read_changes({"changes": [{"path": ["upstreams", "a"], "value": {"model": 1}}]})


@pytest.mark.parametrize("name", ["CRLF", "the example", "comments everywhere"])
def test_bytes_of_the_file_stay(name: str) -> None:
    before = TEXTS[name].encode()
    after = apply_changes(
        before, [Change(("chat", "max_tokens"), 9)], FILE, judge
    ).after
    assert after is not None
    rest = iter(after.splitlines(keepends=True))
    assert all(line in rest for line in before.splitlines(keepends=True))
    assert (b"\r\n" in after) is (b"\r\n" in before)
    back = apply_changes(
        after, [Change(("chat", "max_tokens"), MISSING)], FILE, judge
    ).after
    assert back is not None
    if b"\n[chat]" in b"\n" + before:
        assert back == before


def test_a_fault_between_settings_is_told_at_the_change_to_blame() -> None:
    changes = [
        Change(("loops", "failing_warn"), 9),
        Change(TEMPERATURE, 1),
        Change(("loops", "failing_end"), 8),
    ]
    told = "failing_end must be more than failing_warn, or 0"
    assert apply_changes(b"", changes, FILE, judge) == (
        None,
        (SettingFault(("loops", "failing_end"), told),),
    )


def test_a_fault_that_was_there_is_told_where_it_is() -> None:
    before = b"[chat]\ntop_p = 5\nnot_known = 1\n"
    outcome = apply_changes(before, [Change(TEMPERATURE, 1)], FILE, judge)
    assert [fault.path for fault in outcome.faults] == [("chat", "top_p"), ()]


def test_the_text_becomes_too_long() -> None:
    before = b"#" * (2**16 - 10) + b"\n"
    outcome = apply_changes(before, [Change(TEMPERATURE, 1)], FILE, judge)
    assert outcome.after is None
    assert "too large" in outcome.faults[0].message


def test_what_cannot_be_written_is_told_at_its_setting() -> None:
    before = b"server = 1\n"
    outcome = apply_changes(
        before, [Change(TEMPERATURE, 1), Change(("server", "port"), 9000)], FILE, judge
    )
    assert [fault.path for fault in outcome.faults] == [("server", "port")]


def test_who_is_to_blame_is_found_among_many_changes() -> None:
    changes = [
        *(Change(("caps", name), 7) for name in CapSettings.model_fields),
        Change(("loops", "failing_end"), 2),
    ]
    outcome = apply_changes(b"", changes, FILE, judge)
    assert [fault.path for fault in outcome.faults] == [("loops", "failing_end")]
