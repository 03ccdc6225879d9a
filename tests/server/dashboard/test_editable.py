"""What the page may change, and changes that it asks for."""

import re
from pathlib import Path
from typing import Any

import pytest

from byok.clients.settings_text import MISSING
from byok.core.error_table import error_rows
from byok.core.errors import BadRequest
from byok.core.language import known_languages
from byok.features.settings import CapSettings
from byok.server.dashboard.editable import (
    Change,
    FieldKind,
    Tables,
    apply_changes,
    editable_settings,
    file_settings,
    find_editable,
    read_changes,
    upstream_settings,
)
from byok.settings import Settings, check_settings, make_settings
from byok.settings.section import SettingFault
from tests.fakes.pages import STATIC
from tests.fakes.settings_files import TEXTS


def test_every_setting_on_the_page_is_explained() -> None:
    rows = [row for group in editable_settings().values() for row in group]
    for row in (*rows, *upstream_settings()):
        assert row.field.description, row.path
        assert (row.kind is FieldKind.CHOICE) is bool(row.choices), row.path
    assert len({row.path for row in rows}) == len(rows)


def test_every_setting_that_a_cure_names_is_found_on_the_page() -> None:
    rows = [row for group in editable_settings().values() for row in group]
    rows += upstream_settings()
    words = [".".join(row.path) for row in rows]
    words += [row.name for row in file_settings()]
    words += [choice for row in rows for choice in row.choices]
    cures = [
        cure
        for language in known_languages()
        for row in error_rows(language).values()
        for cure in row.cures
    ]
    named = re.findall(r"`\[?([a-z][a-z_.]+)\]?`", " ".join(cures))
    assert {"base_url", "network", "routing.fallback"} <= set(named)
    for name in named:
        assert re.search(rf"(?<![a-z]){re.escape(name)}", " ".join(words)), name


@pytest.mark.parametrize(
    ("path", "kind", "limits"),
    [
        (("chat", "temperature"), "number", {"least": 0, "most": 2}),
        (("chat", "max_tokens"), "integer", {"above": 0}),
        (("chat", "system_prompt"), "long", {}),
        (("chat", "retrieval"), "switch", {}),
        (("routing", "default"), "model", {}),
        (("routing", "fallback", "chat"), "models", {}),
        (("routing", "official", "base_url"), "text", {}),
        (("routing", "official", "chat"), "choice", {}),
        (("loops", "polling"), "list", {}),
        (("server", "port"), "integer", {"least": 0, "most": 65535}),
        (("upstreams", "x", "timeout"), "number", {"least": 0}),
    ],
)
def test_a_setting_is_entered_by_its_kind(
    path: tuple[str, ...], kind: str, limits: dict[str, int]
) -> None:
    found = find_editable(path)
    assert found is not None
    assert (found.kind.value, found.limits) == (kind, limits)


def test_the_page_has_no_chinese_text_of_a_setting_that_is_not_shown() -> None:
    """In English, and where there is none, it shows the setting's own text."""
    table = (STATIC / "texts" / "zh.js").read_text("utf-8")
    texts = set(re.findall(r'^  "about\.([\w.]+)":', table, re.MULTILINE))
    rows = [row for group in editable_settings().values() for row in group]
    shown = {".".join(row.path) for row in (*rows, *upstream_settings())}
    file_only = {row.name: row.path[-1] for row in file_settings()}
    assert texts <= shown | {*file_only} | {*file_only.values()}
    assert not {name for name, end in file_only.items() if not {name, end} & texts}


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
    change = Change(("chat", "max_tokens"), 9)
    after = apply_changes(before, [change], FILE, judge).after
    assert after is not None
    rest = iter(after.splitlines(keepends=True))
    assert all(line in rest for line in before.splitlines(keepends=True))
    assert (b"\r\n" in after) is (b"\r\n" in before)


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


def test_an_upstream_that_is_there_is_not_added_again() -> None:
    """Its settings would be gone, also those that the page does not show."""
    before = b'[upstreams]\na = {type = "openai", api_key_env = "KEY"}\n'
    new = [Change(("upstreams", "a"), {}), Change(("upstreams", "a", "type"), "openai")]
    outcome = apply_changes(before, new, FILE, judge)
    assert [fault.path for fault in outcome.faults] == [("upstreams", "a")]


def test_who_is_to_blame_is_found_among_many_changes() -> None:
    changes = [
        *(Change(("caps", name), 7) for name in CapSettings.model_fields),
        Change(("loops", "failing_end"), 2),
    ]
    outcome = apply_changes(b"", changes, FILE, judge)
    assert [fault.path for fault in outcome.faults] == [("loops", "failing_end")]
