"""Ignore files and the paths they are tried on, for hypothesis."""

from hypothesis import strategies as st

PATHS = [
    *("a/", "b/", "a/b/", "a/b/a/", "ab/", "ab/b/", "b/a/", "b/c d/", "b/a/b/"),
    *("c", "a/c", "a/b/c", "a/b/a/c", "ab/a", "ab/b/ab.c", "b/a/b/c", "b/c d/a b"),
    *("ab.c", "a/ab.c", "a/b/.a", "b/a/a-b", "b/a/b/[a]", "b/#a", "!b", "a/b/a/b.c "),
    *("ab/A", "ab/b/B.c", "b/c d/ü.c", "b/aab", "a/b/abab"),
]


# Ordinary patterns: pathspec reads odd character classes in its own way, and what
# lifts a folder also lifts what lies in it.
PIECES = st.sampled_from(["a", "b", "c", "ab", "*", ".", "-", "A", "?", "[ab]"])

SEGMENTS = st.lists(PIECES, min_size=1, max_size=4).map("".join)

LINES = st.tuples(
    st.sampled_from(["", "", "/"]),
    st.lists(SEGMENTS, max_size=4),
    st.sampled_from(["", "", "/", " "]),
).map(lambda parts: f"{parts[0]}{'/'.join(parts[1])}{parts[2]}")

FILES = st.lists(LINES, max_size=5).map("\n".join)
