"""What the page may change: a list that is complete, explicit and safe."""

import re

import pytest

from byok.core.routing import ServedBy
from byok.server.dashboard.editable import (
    FieldKind,
    editable_settings,
    find_editable,
    plain_value,
    upstream_settings,
)
from byok.server.dashboard.settings_page import FOR_THE_FILE
from byok.settings import Settings, UpstreamSettings
from tests.fakes.pages import STATIC


def test_every_setting_on_the_page_is_explained() -> None:
    rows = [row for group in editable_settings().values() for row in group]
    for row in (*rows, *upstream_settings()):
        assert row.field.description, row.path
        assert (row.kind is FieldKind.CHOICE) is bool(row.choices), row.path
    assert len({row.path for row in rows}) == len(rows)


def test_nothing_that_is_for_the_file_is_on_the_page() -> None:
    for row in (*(r for g in editable_settings().values() for r in g),
                *upstream_settings()):  # fmt: skip
        assert not set(row.path) & set(FOR_THE_FILE)


@pytest.mark.parametrize("name", FOR_THE_FILE)
def test_what_is_for_the_file_exists(name: str) -> None:
    sections = [field.annotation for field in Settings.model_fields.values()]
    names = {
        key
        for section in (*sections, UpstreamSettings)
        for key in getattr(section, "model_fields", ())
    }
    assert name in names
    assert find_editable(("upstreams", "x", name)) is None


@pytest.mark.parametrize(
    ("path", "kind", "limits"),
    [
        (("chat", "temperature"), "number", {"least": 0, "most": 2}),
        (("chat", "max_tokens"), "integer", {"above": 0}),
        (("chat", "system_prompt"), "long", {}),
        (("chat", "retrieval"), "switch", {}),
        (("caps", "usd_per_day"), "number", {"least": 0, "most": 10**9}),
        (("routing", "default"), "model", {}),
        (("routing", "models", "small"), "model", {}),
        (("routing", "fallback", "chat"), "models", {}),
        (("routing", "official", "base_url"), "text", {}),
        (("routing", "official", "chat"), "choice", {}),
        (("loops", "polling"), "list", {}),
        (("server", "port"), "integer", {"least": 0, "most": 65535}),
        (("upstreams", "x", "model"), "model", {}),
        (("upstreams", "x", "timeout"), "number", {"least": 0}),
    ],
)
def test_a_setting_is_entered_by_its_kind(
    path: tuple[str, ...], kind: str, limits: dict[str, int]
) -> None:
    found = find_editable(path)
    assert found is not None
    assert (found.kind.value, found.limits) == (kind, limits)


def test_values_of_the_settings_are_plain() -> None:
    assert plain_value(ServedBy.OFF) == "off"
    assert plain_value(("a",)) == ["a"]
    assert plain_value(None) is None


def test_the_page_has_no_chinese_text_of_a_setting_that_is_not_shown() -> None:
    """In English, and where there is none, it shows the setting's own text."""
    texts = (STATIC / "texts.js").read_text("utf-8")
    table = texts.partition("const SETTINGS = {")[2].partition("};")[0]
    shown = re.findall(r'^  "([\w.]+)":\s+".*[一-鿿]', table, re.MULTILINE)
    rows = [row for group in editable_settings().values() for row in group]
    paths = [".".join(row.path) for row in (*rows, *upstream_settings())]
    assert len(shown) > 70
    assert sorted(set(shown) - set(paths)) == []
