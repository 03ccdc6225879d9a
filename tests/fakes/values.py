"""Values for tests: JSON, cuts of an input, and the ways a secret may be written."""

import base64
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

from hypothesis import strategies as st

Objects: TypeAlias = st.SearchStrategy[dict[str, Any]]

TEXT = st.text(st.characters(codec="utf-8"), max_size=12) | st.text(
    "ab \"'\\{}[],:\n\t\u2028😀", max_size=12
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS: Objects = st.dictionaries(TEXT, VALUES, max_size=4)

Whole = TypeVar("Whole", bytes, str)

CUTS = st.lists(st.integers(0, 10_000), max_size=12)


def cut(whole: Whole, places: Iterable[int]) -> list[Whole]:
    """Cut at the given places, wrapped to the length; empty pieces may occur."""
    inner: list[int] = sorted(place % (len(whole) + 1) for place in places)
    return [whole[a:b] for a, b in pairwise([0, *inner, len(whole)])]


def singles(whole: Whole) -> list[Whole]:
    """Cut into pieces of one."""
    return [whole[i : i + 1] for i in range(len(whole))]


def forms(secret: str) -> set[bytes]:
    """List how a secret may be written."""
    encoded = base64.b64encode(secret.encode()).rstrip(b"=")
    return {secret.encode(), quote(secret, safe="").encode(), encoded}
