"""JSON Schemas of tools, and arguments that fit them more or less, for hypothesis."""

import json
from typing import Any

from hypothesis import strategies as st

from tests.fakes.values import SCALARS, Objects

KINDS = ["string", "integer", "number", "boolean", "array", "object", "null"]
NAMES = st.sampled_from(["a", "b", "c", "path", "content"])
# Strings that hold the JSON of something, which models write where it was wanted.
NEARLY = st.sampled_from(
    [
        *("5", " 5", "-0", "5.0", "1e3", "007", "5 apples", "0x1F", ""),
        *("true", "False", "null", "None", "12345678901234567890123"),
        *("[1]", "[", '["5", true]', '{"a": "5"}', "{'a': 5}", '"5"'),
    ]
)

ARGUMENTS: st.SearchStrategy[Any] = st.recursive(
    NEARLY | SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES, inner, max_size=3)
        | inner.map(json.dumps)
    ),
    max_leaves=6,
)
OBJECTS: Objects = st.dictionaries(NAMES, ARGUMENTS, max_size=4)

_LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(KINDS)
        | st.lists(st.sampled_from(KINDS), max_size=3)
        | st.sampled_from(["any", 5, None]),
        "default": ARGUMENTS,
        "enum": st.lists(NEARLY | st.integers(0, 9), max_size=3),
    },
)


def _grown(inner: Objects) -> Objects:
    lists = st.fixed_dictionaries({"type": st.just("array"), "items": inner})
    return lists | _objects(inner)


def _objects(inner: Objects) -> Objects:
    return st.fixed_dictionaries(
        {
            "type": st.just("object"),
            "properties": st.dictionaries(NAMES, inner, max_size=4),
            "required": st.lists(NAMES, max_size=4),
        }
    )


SCHEMAS: Objects = _objects(st.recursive(_LEAVES, _grown, max_leaves=4))
