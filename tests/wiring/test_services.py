"""Settings become what runs, and become it anew where they change."""

from pathlib import Path
from typing import Any

import pytest

from byok.core.errors import ConfigError
from byok.core.platform.paths import find_paths
from byok.protocols.augment.reply_job import Defaults
from byok.settings import Settings, load_settings
from byok.settings.keys import KeyLadder
from byok.upstream.base import Destination
from byok.wiring.services import open_context, open_services
from tests.fakes.ring import FakeRing, store_of


def two_upstreams(**box: str) -> dict[str, Any]:
    return {
        "box": {"base_url": "http://127.0.0.1:9/v1", "model": "m", **box},
        "other": {"base_url": "http://127.0.0.1:10/v1", "model": "o"},
    }


async def test_services_reload_keeps_upstreams_with_the_same_settings() -> None:
    """What an upstream has learned is lost only where its own settings change."""
    async with open_services(
        Settings(upstreams=two_upstreams()), find_paths(), ladder=KeyLadder(environ={})
    ) as old:
        changed = Settings(
            upstreams=two_upstreams(model="n"), routing={"default": "byok:other:x"}
        )
        new = await old.renew(changed)
        assert new.upstreams["box"] is not old.upstreams["box"]
        assert new.upstreams["other"] is old.upstreams["other"]
        assert new.keys["other"] is old.keys["other"]
        assert new.context == old.context
        assert new.provider_data is old.provider_data
        assert new.router.default().id == "byok:other:x"
        assert old.router.default().id == "byok:box:m"
        common = Settings(upstreams=two_upstreams(), chat={"headers": {"X-Team": "7"}})
        anew = await new.renew(common)
        assert anew.upstreams["other"] is not old.upstreams["other"]


async def test_services_reload_with_invalid_settings_changes_nothing() -> None:
    async with open_services(
        Settings(upstreams=two_upstreams()), find_paths(), ladder=KeyLadder(environ={})
    ) as services:
        wrong = Settings(upstreams={"demo": {}}, routing={"default": "byok:box:m"})
        with pytest.raises(ConfigError, match="'byok:box:m'"):
            await services.renew(wrong)
        again = await services.renew(Settings(upstreams=two_upstreams()))
        assert dict(again.upstreams) == dict(services.upstreams)


async def test_services_reload_keeps_a_chosen_upstream() -> None:
    async with open_services(
        Settings(), find_paths(), upstream="demo", ladder=KeyLadder(environ={})
    ) as services:
        new = await services.renew(Settings(upstreams=two_upstreams()))
    assert list(new.upstreams) == ["demo", "box", "other"]
    assert new.router.default().id == "byok:demo:echo"


async def test_services_reload_of_empty_settings_sends_nothing_elsewhere() -> None:
    """A deleted file or one that an editor emptied is no choice of another vendor."""
    ladder = KeyLadder(environ={"BYOK_KEY_GROQ": "sk-x"})
    settings = Settings(upstreams=two_upstreams())
    async with open_services(settings, find_paths(), ladder=ladder) as old:
        new = await old.renew(Settings())
        assert new.upstreams == old.upstreams
        assert new.router.default().id == "byok:box:m"
        assert "the settings name none" in new.selection.reason
        anew = await new.renew(Settings(upstreams={"demo": {}}))
        assert list(anew.upstreams) == ["demo"]


async def test_services_reload_of_keys_opens_no_keyring_for_a_local_server() -> None:
    """It may ask the user to unlock it; the server has not refused anything."""
    ring = FakeRing()
    ladder = KeyLadder(environ={}, keyring=store_of(ring))
    settings = Settings(upstreams=two_upstreams())
    async with open_services(settings, find_paths(), ladder=ladder) as services:
        services.forget_keys()
        assert await services.keys["box"].get() == ""
        assert ring.calls == 0
        services.keys["box"].forget()  # as after a refusal
        assert await services.keys["box"].get() == ""
        assert ring.calls > 0


async def test_services_can_use_prompts_of_another_folder(tmp_path: Path) -> None:
    (tmp_path / "agent.md").write_text("Only this.")
    paths = find_paths()
    paths.prompts = tmp_path
    async with open_services(
        Settings(upstreams=two_upstreams()), paths, ladder=KeyLadder(environ={})
    ) as services:
        renewed = await services.renew(Settings(upstreams=two_upstreams(model="n")))
        for one in (services, renewed):
            assert one.defaults.prompts.render("agent").text == "Only this."


async def test_open_context_follows_workspaces_of_settings_and_command_line(
    tmp_path: Path,
) -> None:
    paths = find_paths()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = str(tmp_path / "one"), tmp_path / "two"
    settings = load_settings(paths.config, {"context": {"workspaces": [one]}})
    async with open_context(settings, paths, [two]) as context:
        status = await context.status()
    assert [space.root for space in status.workspaces] == [one, str(two)]


async def test_open_context_without_workspaces_makes_no_file() -> None:
    paths = find_paths()
    async with open_context(load_settings(paths.config, {}), paths) as context:
        status = await context.status()
    assert status.state == "standby"
    assert not paths.database.exists()


FACTS = {"of-a-small-window": {"window": 4096}, "a-family": {"family": "glm"}}
BOX = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "facts": FACTS}


async def defaults_of(model: str, **chat: Any) -> Defaults:
    settings = Settings.model_validate({"upstreams": {"box": BOX}, "chat": chat})
    ladder = KeyLadder(environ={})
    async with open_services(settings, find_paths(), ladder=ladder) as services:
        asked = Destination(services.upstreams["box"], model)
        return services.defaults("/chat", asked, "c")


@pytest.mark.parametrize(
    ("model", "variants"),
    [
        ("of-a-small-window", ("short",)),
        ("a-family", ("glm",)),
        ("qwen3:8b", ("small", "qwen")),
        ("anything", ()),
    ],
)
async def test_prompts_suit_the_model(model: str, variants: tuple[str, ...]) -> None:
    assert (await defaults_of(model)).fit.variants == variants


@pytest.mark.parametrize(
    ("model", "wanted", "compact"),
    [("qwen3:8b", True, True), ("qwen3:8b", False, False), ("gpt-5", True, False)],
)
async def test_tools_are_described_briefly_to_small_models_on_request(
    model: str, wanted: bool, compact: bool
) -> None:
    found = await defaults_of(model, compact_tools=wanted)
    assert found.compact_tools is compact
