"""Words of requests that users write in config.toml."""

from byok.core.chat import RepairMode


def test_the_modes_have_the_names_that_users_write() -> None:
    assert set(RepairMode) == {"off", "lossless", "fill"}
