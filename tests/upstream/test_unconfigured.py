"""The upstream that nobody configured: it refuses, and says what to do."""

import pytest

from byok.upstream.unconfigured import UnconfiguredUpstream


@pytest.mark.parametrize("name", ["x" * 33, "sk-Secret", "a b", ""])
def test_what_no_upstream_can_be_called_is_not_repeated(name: str) -> None:
    assert UnconfiguredUpstream(name).name == "unknown"


async def test_it_has_no_models() -> None:
    assert await UnconfiguredUpstream("gone").models() == []
