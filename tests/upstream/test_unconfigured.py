"""The upstream that nobody configured: it refuses, and says what to do."""

from byok.upstream.unconfigured import UnconfiguredUpstream


def test_a_name_from_outside_is_shown_in_part() -> None:
    assert UnconfiguredUpstream("x" * 500).name == "x" * 40


async def test_it_has_no_models() -> None:
    assert await UnconfiguredUpstream("gone").models() == []
