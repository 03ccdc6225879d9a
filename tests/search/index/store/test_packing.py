"""What is stored as bytes comes back as it was."""

from hypothesis import given
from hypothesis import strategies as st

from byok.search.index.store.schema import (
    pack_history,
    pack_ids,
    pack_spans,
    unpack_history,
    unpack_ids,
    unpack_spans,
)
from byok.search.index.types import Commit, CommitHistory, Span

U32 = st.integers(0, 2**32 - 1)


@given(st.lists(st.builds(Span, U32, U32, U32)))
def test_packing_of_spans(spans: list[Span]) -> None:
    packed = pack_spans(spans)
    assert unpack_spans(packed) == spans
    assert len(packed) == 12 * len(spans)  # recovery counts chunks by it


@given(st.lists(st.integers(1, 2**62)))
def test_packing_of_ids_sorts_them_and_drops_duplicates(ids: list[int]) -> None:
    assert unpack_ids(pack_ids(ids)) == sorted(set(ids))
    assert pack_ids(reversed(ids)) == pack_ids({*ids})


def test_packing_of_neighbouring_ids_takes_no_room() -> None:
    assert len(pack_ids(range(1, 50_000))) < 5_000


def test_packing_of_a_history() -> None:
    first = Commit("ab12", 1_700_000_000, "Say: héllo\n\nbody", ("a.py", "b c.py"), 2)
    for history in (CommitHistory("ab12", (first,)), CommitHistory("", ())):
        assert unpack_history(pack_history(history)) == history
