"""One string of an object changes, and no other byte."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.wire.json_body import parse_body, with_string


def spliced(raw: bytes, value: str = "new") -> bytes:
    return with_string(raw, parse_body(raw), "model", value)


@pytest.mark.parametrize(
    ("raw", "changed"),
    [
        (b'{"model":"a","x":1.0}', b'{"model":"new","x":1.0}'),
        (b' { "x" : 1e5 , "model" :\n "a" } ', b' { "x" : 1e5 , "model" :\n "new" } '),
        (b'{"m\\u006fdel":"a"}', b'{"m\\u006fdel":"new"}'),
        (b'{"model":"a","model":"b"}', b'{"model":"a","model":"new"}'),
        (
            b'{"a":{"model":"x"},"b":["model","y"],"model":"a"}',
            b'{"a":{"model":"x"},"b":["model","y"],"model":"new"}',
        ),
        (b'{"x":"model","model":"a"}', b'{"x":"model","model":"new"}'),
        (b'{"model\\"":"x","model":""}', b'{"model\\"":"x","model":"new"}'),
        (
            b'{"n":1180591620717411303424,"s":"\\ud83d","model":"a"}',
            b'{"n":1180591620717411303424,"s":"\\ud83d","model":"new"}',
        ),
    ],
)
def test_json_splice_changes_only_the_string(raw: bytes, changed: bytes) -> None:
    assert spliced(raw) == changed


@pytest.mark.parametrize(
    ("raw", "changed"),
    [
        (b"", b'{"model":"new"}'),
        (b"{}", b'{"model":"new"}'),
        (b" { } ", b' {"model":"new" } '),
        (b'{"x":[{}]}', b'{"model":"new","x":[{}]}'),
    ],
)
def test_json_splice_puts_a_missing_member_first(raw: bytes, changed: bytes) -> None:
    assert spliced(raw) == changed


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["model", "a", '"']), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(
    st.dictionaries(st.sampled_from(["model", "a", "b"]), JSON, max_size=3),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_json_splice_reads_as_the_object_with_the_new_string(
    body: dict[str, Any], value: str, indent: int | None, ascii_only: bool
) -> None:
    raw = json.dumps(body, indent=indent, ensure_ascii=ascii_only)
    changed = spliced(raw.encode("utf-8", "replace"), value)
    expected = json.loads(raw.encode("utf-8", "replace"))
    assert json.loads(changed) == {**expected, "model": value}


@pytest.mark.parametrize("other", [b"null", b"1", b"[]", b'{"model":"x"}'])
def test_json_splice_replaces_a_value_that_is_no_string(other: bytes) -> None:
    assert json.loads(spliced(b'{"a":1,"model":%b}' % other)) == {
        "a": 1,
        "model": "new",
    }
