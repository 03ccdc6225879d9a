"""What the errors of the lexical index say."""

import pytest

from byok.context.index_errors import IndexFailed, IndexInUse, translated


def test_a_failure_is_short_and_says_what_to_do() -> None:
    with pytest.raises(IndexFailed, match="no room") as caught, translated():
        raise ValueError("no room" + "x" * 1000)
    assert len(str(caught.value)) < 250
    assert "index rebuild" in caught.value.hint


def test_an_index_in_use_names_the_daemon_as_the_way_out() -> None:
    with pytest.raises(IndexInUse) as caught, translated():
        raise ValueError("LockBusy")
    assert "byok serve" in caught.value.hint


def test_what_is_no_error_of_the_index_passes() -> None:
    with pytest.raises(KeyError), translated():
        raise KeyError("x")
