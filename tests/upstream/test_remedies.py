"""What a model refused is changed once, told, and remembered for that model."""

import pytest

from byok.chat import ChatRequest, ImagePart, Message, Role, TextPart, ToolDefinition
from byok.dialects.error_bodies import refusal_of
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.dialects.quirks import QUIRKS
from byok.errors import UpstreamRefused
from byok.events import Notice
from byok.upstream.http_sender import UpstreamSpec
from byok.upstream.remedies import Remedies
from byok.upstream.transport import Transports
from byok.wire.json_body import write_json
from tests.fakes.asker import HI, OK, Asker
from tests.fakes.bodies import PNG
from tests.fakes.upstream import FakeUpstream, refusal

SCHEMA = {"type": "object", "properties": {}}
USER = Message(Role.USER, (TextPart("Hi?"),))


def agent(*tools: str, messages: tuple[Message, ...] = (USER,)) -> ChatRequest:
    offered = tuple(ToolDefinition(name, "", SCHEMA) for name in tools)
    return ChatRequest(messages, offered, agent=True)


def offered(fake: FakeUpstream) -> list[list[str]]:
    return [
        [tool["function"]["name"] for tool in body.get("tools", ())]
        for body in fake.requests
    ]


@pytest.fixture
def asker(fake: FakeUpstream, transports: Transports) -> Asker:
    return Asker(transports, fake.url)


NO_TOOLS = refusal(400, "gemma does not support tools")


async def test_remedy_for_a_refused_tool_is_reported_once_and_remembered(
    fake: FakeUpstream, asker: Asker
) -> None:
    fake.play(refusal(400, "Invalid schema for function 'b'"), OK)
    notice, *rest = await asker.ask(agent("a", "b"))
    assert isinstance(notice, Notice) and "left out: b." in notice.text
    assert rest == HI
    await asker.ask(agent("a", "b"))
    assert offered(fake) == [["a", "b"], ["a"], ["a"]]
    assert asker.slept == []


async def test_remedy_that_did_not_help_is_undone(
    fake: FakeUpstream, asker: Asker
) -> None:
    refused = refusal(400, "Invalid schema: 'a' is no type")
    fake.play(refused, refused, OK)
    with pytest.raises(UpstreamRefused):
        await asker.ask(agent("a", "b"))
    await asker.ask(agent("a", "b"))
    assert offered(fake) == [["a", "b"], ["b"], ["a", "b"]]


async def test_remedy_for_a_model_without_tools(
    fake: FakeUpstream, asker: Asker
) -> None:
    fake.play(NO_TOOLS, OK)
    notice, *rest = await asker.ask(agent("a"))
    assert isinstance(notice, Notice) and "without tools" in notice.text
    assert not notice.code
    assert rest == HI
    assert offered(fake) == [["a"], []]


async def test_remedy_for_llama_cpp_without_jinja(
    fake: FakeUpstream, asker: Asker
) -> None:
    fake.play(refusal(500, "tools param requires --jinja flag"), OK)
    notice, *_ = await asker.ask(agent("a"))
    assert isinstance(notice, Notice) and "Start llama-server" in notice.text


async def test_remedy_for_a_text_model_that_gets_an_image(
    fake: FakeUpstream, asker: Asker
) -> None:
    fake.play(refusal(400, "image input is not supported"), OK)
    seen = Message(Role.USER, (TextPart("Look."), ImagePart("image/png", PNG)))
    notice, *rest = await asker.ask(agent(messages=(seen,)))
    assert isinstance(notice, Notice) and "pictures" in notice.text
    assert rest == HI
    assert "image_url" not in str(fake.requests[1])


async def test_remedy_for_too_many_tools_is_applied_before_the_first_request(
    fake: FakeUpstream, transports: Transports
) -> None:
    asker = Asker(transports, fake.url, quirks=QUIRKS["openai"])
    notice, *_ = await asker.ask(agent(*(f"t{n}" for n in range(150))))
    assert isinstance(notice, Notice) and "128 tools" in notice.text
    assert [len(names) for names in offered(fake)] == [128]


def test_remedy_found_by_another_request_still_changes_this_one() -> None:
    spec = UpstreamSpec("fake", "http://127.0.0.1:1", OpenAIChat())
    remedies = Remedies(spec)
    one, other = (remedies.of(spec.dialect, "m", agent=False) for _ in range(2))
    body = {"messages": [], "temperature": 0.5}
    refused = refusal_of({"error": {"message": "temperature is not supported"}}, 400)
    for request in (one, other):
        assert request.apply_known(body) == body
        assert request.next_body(refused, write_json(body)) == {"messages": []}
        request.remember()
    assert remedies.of(spec.dialect, "m", agent=False).apply_known(body) == {
        "messages": []
    }


async def test_remedies_end_at_a_model_that_refuses_every_tool(
    fake: FakeUpstream, asker: Asker
) -> None:
    names = [f"t{n}" for n in range(30)]
    fake.play(*(refusal(400, f"Invalid schema for function '{n}'") for n in names))
    with pytest.raises(UpstreamRefused) as caught:
        await asker.ask(agent(*names))
    assert caught.value.code == "upstream_bad_schema"
    assert len(fake.requests) == 13
    with pytest.raises(UpstreamRefused):  # the next request goes on from there
        await asker.ask(agent(*names))
    assert offered(fake)[13] == names[12:]
