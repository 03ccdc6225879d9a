"""The parts of a question."""

from typing import Any

import pytest

from byok.core.chat import Role, Sampling
from byok.protocols.augment.endpoints import ENDPOINTS, Generate
from byok.protocols.augment.prompts.prompt_parts import conversation, question
from byok.protocols.augment.reply_job import Defaults
from tests.fakes.bodies import TEXT_BODIES, TEXT_FIELDS, exchange
from tests.fakes.jobs import never_fails, texts
from tests.fakes.prompts import prompts


def test_system_prompt_has_the_users_texts_around_the_instructions() -> None:
    own = prompts(task="DO {{what}}{{#more}} MORE{{/}}")
    defaults = Defaults("BASE", "ADDED", Sampling(max_tokens=9), own)
    body = {"userGuidelines": "GUIDE", "rules": ["RULE"], "mode": "AGENT"}
    values = {"what": "IT"}
    chat = question(body, defaults, "task", ["a", " ", "b"], values, ["more"])
    assert texts(chat, Role.SYSTEM).split("\n\n") == [
        "BASE",
        "DO IT MORE",
        "<user_guidelines>\nGUIDE\n</user_guidelines>",
        "<rule>\nRULE\n</rule>",
        "ADDED",
    ]
    assert texts(chat) == "a\n\nb"
    assert (chat.sampling.max_tokens, chat.sampling.temperature) == (9, 0.2)


def test_prompt_temperature_is_only_lowered() -> None:
    cold = Defaults(sampling=Sampling(temperature=0.0))
    warm = Defaults(sampling=Sampling(temperature=1.5))
    assert question({}, cold, "title", []).sampling.temperature == 0.0
    assert question({}, warm, "title", []).sampling.temperature == 0.2


def test_prompt_conversation_is_its_newest_exchanges() -> None:
    body = {"chat_history": [exchange(f"q{n}.", f"a{n}." * 2000) for n in range(30)]}
    shown = conversation(body)
    assert "q29." in shown
    assert "q19." not in shown
    assert len(shown) < 30_000
    assert conversation({}) == ""


# Endpoints that ask for one text take any JSON in any field


DECODERS = {
    row.path: row.reply.decode for row in ENDPOINTS if isinstance(row, Generate)
}
ODD: list[Any] = [
    *(None, "", 2**70, -1.5, {"x": [1]}),
    *(["x", None, {"x": 1}], "\ud800'; DROP TABLE x;--\x00"),
]


@pytest.mark.parametrize("path", TEXT_BODIES)
@pytest.mark.parametrize("field", TEXT_FIELDS.split())
def test_any_json_in_a_field_is_read_or_refused(path: str, field: str) -> None:
    for odd in ODD:
        never_fails(DECODERS[path], {**TEXT_BODIES[path], field: odd})
