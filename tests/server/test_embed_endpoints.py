"""What `byok embed` asks, and what the service is told."""

from typing import Any

import orjson
import pytest

from byok.core.errors import ConfigError
from byok.core.routing import Service
from byok.protocols.augment.endpoints import ENDPOINTS, Local
from byok.search.vectors.types import EmbeddingEstimate, EmbeddingState, EmbeddingStatus
from byok.server.daemon_endpoints import EmbedEndpoints

SERVICES = [service for service in Service if service.name.startswith("EMBED_")]


class Control:
    """Notes what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    async def status(self) -> EmbeddingStatus:
        state = EmbeddingState.FILLING
        return EmbeddingStatus(state, "vendor", "vendor.example:443", "embed-1")

    async def estimate(self) -> EmbeddingEstimate:
        return EmbeddingEstimate("v", "h:1", "m", False, 10, 1500, None, False)

    async def enable(self, host: str, model: str) -> None:
        if host != "vendor.example:443":
            raise ConfigError("The settings name another host by now.")
        self.told.append(("enable", host, model))

    async def disable(self) -> None:
        self.told.append(("disable",))

    async def pause(self) -> None:
        self.told.append(("pause",))

    async def resume(self) -> None:
        self.told.append(("resume",))

    async def clear(self) -> int:
        self.told.append(("clear",))
        return 7

    async def push(self) -> int:
        return 8

    async def pull(self) -> int:
        return 9


async def ask(control: Control, service: Service, body: dict[str, Any]) -> Any:
    answer = await EmbedEndpoints(control).handlers[service](body)
    return orjson.loads(orjson.dumps(answer))  # as it is sent


async def test_estimate_is_told_as_it_is() -> None:
    answer = await ask(Control(), Service.EMBED_ESTIMATE, {})
    assert answer == {
        "upstream": "v", "host": "h:1", "model": "m", "is_local": False,
        "chunks": 10, "tokens": 1500, "dollars": None, "confirmed": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("service", "told"),
    [
        (Service.EMBED_STATUS, []),
        (Service.EMBED_DISABLE, [("disable",)]),
        (Service.EMBED_PAUSE, [("pause",)]),
        (Service.EMBED_RESUME, [("resume",)]),
        (Service.EMBED_CLEAR, [("clear",)]),
    ],
)
async def test_every_command_answers_with_the_status(
    service: Service, told: list[tuple[str, ...]]
) -> None:
    control = Control()
    answer = await ask(control, service, {})
    assert control.told == told
    assert (answer["state"], answer["model"]) == ("filling", "embed-1")
    assert answer.get("removed") == (7 if service is Service.EMBED_CLEAR else None)


async def test_team_commands_tell_how_many_vectors_went() -> None:
    pushed = await ask(Control(), Service.EMBED_PUSH, {})
    pulled = await ask(Control(), Service.EMBED_PULL, {})
    assert (pushed["pushed"], pulled["pulled"]) == (8, 9)
    assert pushed["state"] == pulled["state"] == "filling"


async def test_consent_is_to_what_the_user_was_shown() -> None:
    control = Control()
    body = {"host": "vendor.example:443", "model": "embed-1"}
    await ask(control, Service.EMBED_ENABLE, body)
    assert control.told == [("enable", "vendor.example:443", "embed-1")]
    for other in ({}, {"host": "other:1", "model": "embed-1"}, {"host": 1}):
        with pytest.raises(ConfigError):
            await ask(control, Service.EMBED_ENABLE, other)
    assert len(control.told) == 1


def test_every_service_has_a_path_of_byok_s_own() -> None:
    rows = {row.answer: row for row in ENDPOINTS if isinstance(row, Local)}
    assert set(SERVICES) == set(EmbedEndpoints(Control()).handlers)
    assert all(rows[service].own for service in SERVICES)
    assert all(rows[service].path.startswith("/byok/embed/") for service in SERVICES)
