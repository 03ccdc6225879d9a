"""The upstream that nobody configured: it refuses, and says what to do."""

import pytest

from byok.upstream.unconfigured import UnconfiguredUpstream


@pytest.mark.parametrize("name", ["x" * 33, "sk-Secret", "a b", ""])
def test_unconfigured_upstream_hides_an_invalid_name(name: str) -> None:
    assert UnconfiguredUpstream(name).name == "unknown"


async def test_unconfigured_upstream_has_no_models() -> None:
    assert await UnconfiguredUpstream("gone").models() == []


def test_unconfigured_upstream_takes_what_it_refuses() -> None:
    assert UnconfiguredUpstream("gone").serves("messages", "m")
