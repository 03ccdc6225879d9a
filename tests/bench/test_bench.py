"""scripts/bench, the whole of it, in its quickest mode."""

import pytest

from tests.bench.__main__ import main, peer
from tests.bench.scenarios import scenarios


@pytest.mark.slow
def test_every_scenario_is_measured_and_no_stream_is_damaged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--seconds", "0.2"]) == 0
    rows = capsys.readouterr().out.splitlines()
    for scenario in scenarios(1):
        names = [
            row.split(" | ")[1] for row in rows if row.startswith(f"| {scenario.name} ")
        ]
        wanted = ["direct"] * scenario.direct + ["pass-through", "byok"]
        assert names == wanted


def test_a_peer_is_a_name_and_an_address_with_or_without_more() -> None:
    bare = peer("other=http://127.0.0.1:4000/v1/")
    assert (bare.name, bare.url, bare.pid) == ("other", "http://127.0.0.1:4000/v1", 0)
    full = peer("other=http://127.0.0.1:4000/v1,secret,17")
    assert (full.token, full.pid) == ("secret", 17)
