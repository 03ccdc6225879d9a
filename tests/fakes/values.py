"""Values as JSON holds them, for hypothesis."""

from typing import Any, TypeAlias

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
