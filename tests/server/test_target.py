"""Who answers, and which model: the user's choice first, then the client's."""

from typing import Any

import pytest

from byok.config import Settings
from byok.errors import ConfigError
from byok.purposes import Purpose
from byok.routing import EndpointGroup, ServedBy
from byok.server.routes import find_row
from byok.server.target import choose_model, choose_where
from tests.fakes.daemon import running, settings_for
from tests.fakes.upstream import FakeUpstream

MODELS = {
    "edit": "byok:fake:editor",
    "small": "byok:fake:tiny",
    "title": "listed",
    "enhance": "byok:fake:enhancer",
}
TO_ENHANCE = "Reply with <augment-enhanced-prompt> only."
ASKED = {"model": "byok:fake:asked"}


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
        found = await choose_model(editor.services, purpose, body)
    assert found.model == model


async def test_a_chat_that_names_no_model_has_one_too(fake: FakeUpstream) -> None:
    routing = {"models": {"chat": "byok:fake:talker"}}
    async with running({**settings_for(fake.url), "routing": routing}) as editor:
        found = await choose_model(editor.services, Purpose.CHAT, {})
        silent = await choose_model(editor.services, Purpose.CHAT, {"silent": True})
    assert found.model == "talker"
    assert silent.model == "fake-model"


async def test_without_a_choice_the_clients_counts(fake: FakeUpstream) -> None:
    async with running(settings_for(fake.url)) as editor:
        found = await choose_model(editor.services, Purpose.EDIT, ASKED)
    assert found.model == "asked"


async def test_a_model_of_no_upstream_is_told_at_the_start(fake: FakeUpstream) -> None:
    routing = {"models": {"edit": "byok:none:x"}}
    with pytest.raises(ConfigError, match="edit model 'byok:none:x'"):
        async with running({**settings_for(fake.url), "routing": routing}):
            pass


@pytest.mark.parametrize("purpose", Purpose)
def test_every_purpose_has_a_setting(purpose: Purpose) -> None:
    routing: Any = {"models": {"small": "s", purpose.value: "own"}}
    assert Settings(routing=routing).routing.models.for_purpose(purpose) == "own"
    small: Any = {"models": {"small": "s"}}
    wanted = Settings(routing=small).routing.models.for_purpose(purpose)
    assert wanted == ("s" if purpose.is_small else "")


OFFICIAL = {"base_url": "https://h.example", "chat": "official", "context": "official"}


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("/chat", {}, ServedBy.OFFICIAL),
        ("/chat", {"model": "claude"}, ServedBy.OFFICIAL),
        ("/chat", {"model": "byok:gone:m"}, None),
        ("/chat", {"model": "byok:no-id"}, ServedBy.OFFICIAL),
        ("/chat", ASKED, None),
        ("/chat", {"modelId": "byok:fake:x"}, None),
        ("/save-chat", ASKED, ServedBy.OFFICIAL),
        ("/find-missing", ASKED, ServedBy.OFFICIAL),
        ("/edit", {}, None),
        ("/client-metrics", {}, ServedBy.OFF),
        ("/token", {}, None),
        ("/no/such", {}, None),
        ("/byok/retrieval", {}, None),
        ("/v1/chat/completions", {}, None),
        ("/v1/models", {}, None),
    ],
)
async def test_a_request_has_its_place(
    fake: FakeUpstream, path: str, body: dict[str, Any], where: ServedBy | None
) -> None:
    settings = {**settings_for(fake.url), "routing": {"official": OFFICIAL}}
    async with running(settings) as editor:
        found = choose_where(editor.services, find_row(path)[0], body)
    assert (found.where if found else None) is where
    assert found is None or found.row.path == path


async def test_what_is_off_is_off_for_every_model(fake: FakeUpstream) -> None:
    settings = {**settings_for(fake.url), "routing": {"official": {"chat": "off"}}}
    async with running(settings) as editor:
        found = choose_where(editor.services, find_row("/chat")[0], ASKED)
    assert found is not None
    assert (found.group, found.where) == (EndpointGroup.CHAT, ServedBy.OFF)
