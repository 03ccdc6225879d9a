"""The official service and vectors, as the daemon tells of them."""

from typing import Any

import pytest

from byok.daemon.token import read_token
from byok.doctor.results import CannotCheck, CheckState
from byok.doctor.services import (
    check_official,
    check_vectors,
    official_service,
    vectors,
)
from byok.platform.paths import find_paths
from tests.fakes.doctors import surroundings, write_settings
from tests.fakes.rows import daemon_rows

SETTINGS = (
    *("[routing.official]", 'base_url = "https://t.example"'),
    *("[embeddings]", 'upstream = "ollama"', 'model = "m"'),
)


async def test_what_is_not_set_is_not_checked() -> None:
    async with surroundings() as around:
        assert (*await official_service(around), *await vectors(around)) == ()
    write_settings(*SETTINGS)
    async with surroundings() as around:
        assert (*await official_service(around), *await vectors(around)) == ("", "")
        for check in (check_official, check_vectors):
            with pytest.raises(CannotCheck, match="no daemon"):
                await check(around, "")


@pytest.mark.parametrize(
    ("answer", "state", "said"),
    [
        (
            {"groups": {"chat": "official", "edit": "off"}},
            CheckState.OK,
            "used for chat",
        ),
        ({"groups": {}}, CheckState.OK, "not used"),
        ({"troubles": {"token": "refused"}}, CheckState.WARNING, "token: refused"),
    ],
    ids=str,
)
async def test_the_official_service(
    answer: dict[str, Any], state: CheckState, said: str
) -> None:
    async with daemon_rows({"/byok/official": answer}):
        read_token(find_paths().owner_secret)
        async with surroundings() as around:
            result = await check_official(around, "")
    assert (result.state, result.found) == (state, said)


@pytest.mark.parametrize(
    ("answer", "state", "said"),
    [
        ({"state": "filling", "chunks": 9, "embedded": 3}, CheckState.OK, "3 of 9"),
        ({"state": "no_consent"}, CheckState.WARNING, "not enabled"),
        ({"state": "waiting", "error": "down"}, CheckState.WARNING, "down"),
        ({"state": "failed", "error": "no such model"}, CheckState.FAILURE, "no such"),
    ],
    ids=str,
)
async def test_vectors(answer: dict[str, Any], state: CheckState, said: str) -> None:
    async with daemon_rows({"/byok/embed/status": answer}):
        read_token(find_paths().owner_secret)
        async with surroundings() as around:
            result = await check_vectors(around, "")
    assert result.state is state
    assert said in result.found
    assert bool(result.cure) is (state is not CheckState.OK)
