"""What `byok embed` asks, and what the service is told."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest

from byok.core.routing import Service
from byok.search.vectors.types import EmbeddingEstimate, EmbeddingState, EmbeddingStatus
from byok.server.daemon_endpoints import embed_handlers


class Control:
    """Notes what it was told, and counts seven of whatever it does."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    async def status(self) -> EmbeddingStatus:
        state = EmbeddingState.FILLING
        return EmbeddingStatus(state, "vendor", "vendor.example:443", "embed-1")

    async def estimate(self) -> EmbeddingEstimate:
        return EmbeddingEstimate("v", "h:1", "m", False, 10, 1500, None, False)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[int]]:
        async def act(*words: str) -> int:
            self.told.append((name, *words))
            return 7

        return act


@pytest.mark.parametrize(
    ("service", "body", "told", "counted"),
    [
        (Service.EMBED_STATUS, {}, [], {}),
        (
            Service.EMBED_ENABLE,
            {"host": "vendor.example:443", "model": "embed-1"},
            [("enable", "vendor.example:443", "embed-1")],
            {},
        ),
        (Service.EMBED_ENABLE, {}, [("enable", "", "")], {}),
        (Service.EMBED_DISABLE, {}, [("disable",)], {}),
        (Service.EMBED_PAUSE, {}, [("pause",)], {}),
        (Service.EMBED_RESUME, {}, [("resume",)], {}),
        (Service.EMBED_CLEAR, {}, [("clear",)], {"removed": 7}),
        (Service.EMBED_PUSH, {}, [("push",)], {"pushed": 7}),
        (Service.EMBED_PULL, {}, [("pull",)], {"pulled": 7}),
    ],
)
async def test_every_command_answers_with_the_status(
    service: Service,
    body: dict[str, Any],
    told: list[tuple[str, ...]],
    counted: dict[str, int],
) -> None:
    control: Any = Control()
    answer = await embed_handlers(control)[service](body)
    sent = orjson.loads(orjson.dumps(answer))
    assert control.told == told
    assert (sent["state"], sent["model"]) == ("filling", "embed-1")
    names = ("removed", "pushed", "pulled")
    assert {name: sent[name] for name in names if name in sent} == counted
