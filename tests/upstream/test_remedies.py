"""What a model refused is changed once, told, and remembered for that model."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from byok.core.chat import (
    ChatRequest,
    Message,
    Role,
    Sampling,
    TextPart,
    ToolDefinition,
)
from byok.core.errors import UpstreamRefused
from byok.core.events import Notice
from byok.dialects.error_bodies import refusal_of
from byok.dialects.model_facts import ModelFacts
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.dialects.presets import quirks_of
from byok.upstream.model_facts import Profiles
from byok.upstream.remedies import ContextSizes, Remedies
from byok.upstream.spec import Api, UpstreamSpec
from byok.upstream.transport import Transports
from tests.fakes.asker import HI, OK, Asker
from tests.fakes.histories import user
from tests.fakes.trial_dialect.dialect import TrialDialect
from tests.fakes.trial_server import TrialServer
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


async def test_remedy_for_too_many_tools_is_applied_before_the_first_request(
    fake: FakeUpstream, transports: Transports
) -> None:
    asker = Asker(transports, fake.url, quirks=quirks_of("openai"))
    notice, *_ = await asker.ask(agent(*(f"t{n}" for n in range(150))))
    assert isinstance(notice, Notice) and "128 tools" in notice.text
    assert [len(names) for names in offered(fake)] == [128]


def test_remedy_found_by_another_request_still_changes_this_one() -> None:
    spec = UpstreamSpec("fake", (Api(OpenAIChat(), "http://127.0.0.1:1"),))
    remedies = Remedies(spec)
    chat = ChatRequest((USER,), sampling=Sampling(temperature=0.5))
    refused = refusal_of({"error": {"message": "temperature is not supported"}}, 400)
    for request in [remedies.begin(ModelFacts("m")) for _ in range(2)]:
        written = request.write(chat)
        assert b"temperature" in written.content
        changed = request.add_remedy(refused, chat, written.head)
        assert changed
        assert b"temperature" not in changed.write(chat).content
        assert b"temperature" in request.write(chat).content
        changed.remember()
    later = remedies.begin(ModelFacts("m"))
    assert b"temperature" not in later.write(chat).content


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


# Another dialect
RESPONSES = "This model is only supported in v1/responses and not in v1/chat."


class Other(TrialDialect):
    """The trial dialect by the name that Chat Completions knows for another API."""

    name: ClassVar[str] = "openai_responses"


@pytest.fixture
async def other() -> AsyncIterator[TrialServer]:
    async with TrialServer() as server:
        server.play([{"text": "Hi."}, {"over": "end", "read": 7, "written": 3}])
        yield server


@pytest.fixture
def two(fake: FakeUpstream, other: TrialServer, transports: Transports) -> Asker:
    apis = (Api(Other(), f"{other.url}/trial"),)
    return Asker(transports, fake.url, others=apis, extra_body={"seed": 7})


async def test_a_model_that_needs_another_dialect_gets_it_from_then_on(
    fake: FakeUpstream, other: TrialServer, two: Asker
) -> None:
    fake.play(refusal(404, RESPONSES))
    for _ in range(2):
        assert HI[0] in await two.ask(agent("a"))
    assert len(fake.requests) == 1
    assert len(other.requests) == 2
    assert two.upstream.known.facts("m").dialect == Other.name
    assert "seed" not in other.requests[0]  # it was meant for the first dialect
    assert other.requests[0]["tools"][0]["name"] == "a"


async def test_remedies_learned_since_a_moment_can_be_forgotten(
    fake: FakeUpstream, asker: Asker
) -> None:
    remedies = asker.upstream.remedies
    saved = remedies.save()
    fake.play(refusal(400, "Unsupported parameter: 'temperature'"), OK)
    assert await asker.ask() == HI
    fake.play(OK)
    await asker.ask()
    assert "temperature" not in fake.requests[-1]
    remedies.restore(saved)
    await asker.ask()
    assert "temperature" in fake.requests[-1]


# After a restart
def profiled(file: Path, days: float = 0.0) -> tuple[Remedies, Profiles]:
    """Return the remedies of a daemon that starts some days later."""
    profiles = Profiles(file, clock=lambda: 1e9 + days * 86_400)
    spec = UpstreamSpec("box", (Api(OpenAIChat(), "http://127.0.0.1:1"),))
    return Remedies(spec, profiles), profiles


def learn(remedies: Remedies, asked: ChatRequest, message: str) -> None:
    request = remedies.begin(ModelFacts("m"))
    refused = refusal_of({"error": {"message": message}}, 500)
    changed = request.add_remedy(refused, asked, request.write(asked).head)
    assert changed
    changed.remember()


@pytest.mark.parametrize(
    ("message", "days", "known"),
    [
        ("Jinja Exception: System role not supported", 20, True),
        ("Jinja Exception: System role not supported", 40, False),
        ("gemma does not support tools", 0.5, True),
        ("gemma does not support tools", 2, False),  # it may be set up now
    ],
)
def test_a_restart_does_not_repeat_a_refused_request(
    tmp_path: Path, message: str, days: float, known: bool
) -> None:
    file = tmp_path / "profiles.json"
    system = Message(Role.SYSTEM, (TextPart("Be exact."),))
    asked = agent("a", messages=(system, USER))
    remedies, profiles = profiled(file)
    before = remedies.begin(ModelFacts("m")).write(asked).content
    learn(remedies, asked, message)
    profiles.close()
    later, _ = profiled(file, days)
    request = later.begin(ModelFacts("m"))
    assert (request.write(asked).content != before) is known
    taught = request.learned_facts().tools is False
    assert taught == (known and "tools" in message)
    assert later.begin(ModelFacts("other")).write(asked).content != b""


def test_what_did_not_help_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "profiles.json"
    remedies, profiles = profiled(file)
    request = remedies.begin(ModelFacts("m"))
    refused = refusal_of({"error": {"message": "gemma does not support tools"}}, 400)
    assert request.add_remedy(refused, agent("a"), request.write(agent("a")).head)
    profiles.close()
    assert not file.exists()


K = 1024

TOOLS = (ToolDefinition("view", "", {"type": "object"}),)

PER_TOKEN = 131_072  # bytes; a model of 8 billion parameters


def facts(window: int = 128 * K, memory: int = PER_TOKEN, **more: Any) -> ModelFacts:
    return ModelFacts("m", window=window, token_memory=memory, **more)


def chat(size: int = 0, *, tools: bool = False, **fields: Any) -> ChatRequest:
    return ChatRequest((user("x" * size),), TOOLS if tools else (), **fields)


def too_long(text: str = "the input length exceeds the context length") -> Any:
    return refusal_of({"error": text}, 400)


NO_MEMORY = refusal_of({"error": "model requires more system memory (9 GiB)"}, 500)


@pytest.mark.parametrize(
    ("known", "limit"),
    [
        (facts(), 64 * K),  # 8 GiB
        (facts(window=40_960), 40_960),
        (facts(memory=PER_TOKEN // 8), 128 * K),
        (facts(memory=8 * PER_TOKEN), 16 * K),  # more than 8 GiB, but usable
        (facts(memory=0), 128 * K),
        (facts(loaded_window=96 * K), 96 * K),  # it fits already
        (facts(window=0), 0),
    ],
)
def test_the_limit_is_the_models_length_within_a_memory_budget(
    known: ModelFacts, limit: int
) -> None:
    assert ContextSizes().limit(known) == limit


def test_the_users_size_is_used_for_everything() -> None:
    sizes = ContextSizes(12_000)
    assert sizes.limit(facts()) == 12_000
    assert sizes.limit(facts(window=0)) == 12_000
    assert (
        sizes.choose(chat(500_000, tools=True), facts(loaded_window=64 * K)) == 12_000
    )
    assert sizes.choose(chat(), facts(window=8 * K)) == 8 * K
    error = too_long()
    assert not sizes.adapt(facts(), 12_000, error)
    assert error.window == 12_000
    assert not sizes.adapt(facts(), 12_000, NO_MEMORY)


def test_a_size_grows_in_large_steps_and_never_shrinks() -> None:
    sizes = ContextSizes()
    grown = [
        sizes.choose(chat(weight, tools=True), facts())
        for weight in (0, 60_000, 100_000, 0, 900_000, 5)
    ]
    assert grown == [32 * K, 32 * K, 64 * K, 64 * K, 64 * K, 64 * K]
    assert sizes.choose(chat(), facts()) == 64 * K


def test_a_loaded_window_is_kept_where_it_is_large_enough() -> None:
    loaded = facts(loaded_window=40_000)
    assert ContextSizes().choose(chat(tools=True), loaded) == 40_000
    small = facts(loaded_window=5 * K)
    assert ContextSizes().choose(chat(), small) == 5 * K
    assert ContextSizes().choose(chat(tools=True), small) == 32 * K
    assert ContextSizes().choose(chat(30_000), small) == 16 * K


def test_a_model_that_runs_elsewhere_keeps_its_own_window() -> None:
    sizes, cloud = ContextSizes(), facts(memory=0)
    assert sizes.choose(chat(tools=True), cloud) == 0
    assert sizes.adapt(cloud, 0, too_long()), "unless that was too small"
    assert sizes.choose(chat(tools=True), cloud) == 32 * K


def test_a_model_of_which_nothing_is_known_gets_64k_at_most() -> None:
    sizes = ContextSizes()
    assert sizes.choose(chat(900_000, tools=True), ModelFacts("m")) == 64 * K
    error = too_long()
    assert not sizes.adapt(ModelFacts("m"), 64 * K, error)
    assert error.window is None, "the server may have lowered it"
