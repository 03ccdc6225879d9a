"""Ids of models: what is one, and how it is split."""

import pytest

from byok.core.routing import ListedModel, split_id


@pytest.mark.parametrize(
    ("model_id", "parts"),
    [
        ("byok:home:qwen", ("home", "qwen")),
        ("byok:home:qwen2.5-coder:14b", ("home", "qwen2.5-coder:14b")),
        ("byok:or:meta/llama:free", ("or", "meta/llama:free")),
        ("byok:home::x", ("home", ":x")),
        ("byok:home:", None),
        ("byok::x", None),
        ("byok:home", None),
        ("byok", None),
        ("BYOK:home:x", None),
        ("qwen", None),
        ("", None),
        ("byok:home:a\nb", None),
        ("byok:home:" + "x" * 502, ("home", "x" * 502)),
        ("byok:home:" + "x" * 503, None),
    ],
)
def test_an_id_is_split_at_its_first_two_colons(
    model_id: str, parts: tuple[str, str] | None
) -> None:
    assert split_id(model_id) == parts


def test_an_alias_has_an_id_of_its_own() -> None:
    listed = ListedModel("local", "qwen3:8b", "fast")
    assert (listed.id, listed.label) == ("byok:fast", "fast")
    assert split_id(listed.id) is None
