"""The words that config.toml may hold for the repair of tool calls."""

from byok.toolcalls.repair import RepairMode


def test_the_modes_have_the_names_that_users_write() -> None:
    assert set(RepairMode) == {"off", "lossless", "fill"}
