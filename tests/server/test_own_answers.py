"""What a command answers where no daemon runs: about code, and about vectors."""

from pathlib import Path

import pytest

from byok.core.errors import ConfigError
from byok.core.platform.paths import find_paths
from byok.core.routing import Service
from byok.server.code_endpoints import open_answers
from byok.settings import Settings
from tests.fakes.embedding_server import EmbeddingServer
from tests.fakes.project import make_project


async def test_own_answers_make_no_vectors_and_send_nothing(tmp_path: Path) -> None:
    root = make_project(tmp_path / "bakery")
    async with EmbeddingServer() as server:
        settings = Settings.model_validate(
            {
                "upstreams": {"box": {"base_url": server.url}},
                "embeddings": {"upstream": "box", "model": "tiny-embed"},
            }
        )
        async with open_answers(settings, find_paths(), [root]) as answer:
            added = await answer(Service.INDEX_ADD, {"root": str(root)})
            assert added["workspace"]["root"] == str(root)
            cost = await answer(Service.EMBED_ESTIMATE, {})
            assert (cost["model"], cost["is_local"]) == ("tiny-embed", True)
            body = {"host": cost["host"], "model": cost["model"]}
            for service in (Service.EMBED_ENABLE, Service.EMBED_STATUS):
                told = await answer(service, body)
                assert (told["state"], told["error"]) == ("standby", "")
            await answer(Service.SEARCH, {"query": "oven heat"})
    assert server.asked == 0


async def test_own_answers_without_a_model_say_so() -> None:
    async with open_answers(Settings(), find_paths(), []) as answer:
        assert (await answer(Service.EMBED_STATUS, {}))["state"] == "off"
        with pytest.raises(ConfigError, match="no model for embeddings"):
            await answer(Service.EMBED_ESTIMATE, {})
    assert not find_paths().database.exists()
