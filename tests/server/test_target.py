"""Which model answers: the user's choice for its purpose, or the client's."""

from typing import Any

import pytest

from byok.core.errors import ConfigError
from byok.core.purposes import Purpose
from byok.server.generate import ModelChooser
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.upstream import FakeUpstream

MODELS = {
    "edit": "byok:fake:editor",
    "small": "byok:fake:tiny",
    "title": "listed",
    "enhance": "byok:fake:enhancer",
}
TO_ENHANCE = "Reply with <augment-enhanced-prompt> only."
ASKED = {"model": "byok:fake:asked"}


def chooser(editor: Editor) -> ModelChooser:
    services = editor.services
    return ModelChooser(
        services.settings.routing.models, services.router, services.fallbacks
    )


@pytest.mark.parametrize(
    ("purpose", "body", "model"),
    [
        (Purpose.EDIT, ASKED, "editor"),
        (Purpose.COMMIT, ASKED, "tiny"),
        (Purpose.ENHANCE, {}, "enhancer"),
        (Purpose.TITLE, {}, "listed"),
        (Purpose.COMPLETION, ASKED, "asked"),
        (Purpose.CHAT, ASKED, "asked"),
        (Purpose.CHAT, {}, "usual"),
        (Purpose.CHAT, {**ASKED, "silent": True}, "tiny"),
        (Purpose.CHAT, {"silent": True, "message": TO_ENHANCE}, "enhancer"),
    ],
)
async def test_a_purpose_has_its_model(
    fake: FakeUpstream, purpose: Purpose, body: dict[str, Any], model: str
) -> None:
    fake.models = []
    upstreams = settings_for(fake.url, models=["usual", "listed"])
    async with running({**upstreams, "routing": {"models": MODELS}}) as editor:
        found = await chooser(editor).choose(purpose, body)
    assert found.model == model


async def test_a_chat_that_names_no_model_has_one_too(fake: FakeUpstream) -> None:
    routing = {"models": {"chat": "byok:fake:talker"}}
    async with running({**settings_for(fake.url), "routing": routing}) as editor:
        found = await chooser(editor).choose(Purpose.CHAT, {})
        silent = await chooser(editor).choose(Purpose.CHAT, {"silent": True})
    assert found.model == "talker"
    assert silent.model == "fake-model"


GPTS = ["gpt-3.5-turbo", "gpt-5.5", "gpt-5.4-mini", "gpt-4"]


@pytest.mark.parametrize(
    ("purpose", "body", "model"),
    [
        (Purpose.CHAT, {}, "gpt-5.5"),
        (Purpose.EDIT, {}, "gpt-5.5"),
        (Purpose.COMMIT, {}, "gpt-5.4-mini"),
        (Purpose.TITLE, {"model": "byok:fake:gpt-5.5"}, "gpt-5.4-mini"),
        (Purpose.COMPLETION, {}, "gpt-5.4-mini"),
        (Purpose.ENHANCE, {}, "gpt-5.5"),
        (Purpose.CHAT, {"silent": True}, "gpt-5.5"),
        (Purpose.COMMIT, {"model": "byok:fake:gpt-4"}, "gpt-4"),
    ],
)
async def test_where_nobody_chose_a_model_small_jobs_get_a_small_one(
    fake: FakeUpstream, purpose: Purpose, body: dict[str, Any], model: str
) -> None:
    fake.models = GPTS
    upstreams = {"fake": {"type": "openai", "base_url": fake.url}}
    async with running({"upstreams": upstreams}) as editor:
        editor.services.catalog.refresh()
        await editor.services.catalog.settle(5)
        found = await chooser(editor).choose(purpose, body)
    assert found.model == model


async def test_a_default_of_the_settings_does_the_small_jobs_too(
    fake: FakeUpstream,
) -> None:
    fake.models = GPTS
    given = {
        "upstreams": {"fake": {"type": "openai", "base_url": fake.url}},
        "routing": {"default": "gpt-5.5"},
    }
    async with running(given) as editor:
        editor.services.catalog.refresh()
        await editor.services.catalog.settle(5)
        found = await chooser(editor).choose(Purpose.COMMIT, {})
        other = await chooser(editor).choose(Purpose.COMMIT, {"model": "byok:none:m"})
    assert (found.model, other.model) == ("gpt-5.5", "m")


async def test_a_model_of_no_upstream_is_told_at_the_start(fake: FakeUpstream) -> None:
    routing = {"models": {"edit": "byok:none:x"}}
    with pytest.raises(ConfigError, match="edit model 'byok:none:x'"):
        async with running({**settings_for(fake.url), "routing": routing}):
            pass
