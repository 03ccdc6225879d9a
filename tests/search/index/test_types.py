"""The nouns of the context engine."""

from byok.search.index.types import SkipReason


def test_skip_reasons_are_all_explained_to_users() -> None:
    for reason in SkipReason:
        assert reason.explanation.startswith(("its ", "it ", "a ")), reason
