"""The windows of models: told by a list, or asked for where a server loads models."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from byok.core.errors import ContextLengthExceeded
from byok.dialects.model_facts import FREE, FactSource, ModelFacts, Price, combine_facts
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.dialects.presets import quirks_of
from byok.dialects.remedies import Remedy
from byok.upstream.http_sender import Sender
from byok.upstream.model_facts import (
    KnownModels,
    Lookup,
    Profile,
    Profiles,
    fact_sources,
)
from byok.upstream.spec import Api, UpstreamSpec
from tests.fakes.asker import Asker, Key
from tests.fakes.clock import Clock
from tests.fakes.scripted import Canned


class Loaded:
    """A local server that tells its loaded models, and how often it was asked."""

    def __init__(self, *answers: tuple[int, str], **fields: Any) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.upstream = Asker(
            Canned(self._answered),
            "http://fake.test/v1",
            quirks=quirks_of("ollama"),
            **fields,
        ).upstream

    def _answered(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(str(request.url))
        status, text = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return httpx.Response(status, stream=httpx.ByteStream(text.encode()))


PS = '{"models": [{"model": "a:latest", "context_length": 4096}]}'


async def test_a_local_server_is_asked_for_the_window_of_a_loaded_model_once() -> None:
    server = Loaded((200, PS))
    assert [await server.upstream.known.window("a") for _ in range(3)] == [4096] * 3
    assert server.asked == ["http://fake.test/api/ps"]


async def test_nobody_is_asked_for_a_window_that_the_user_told() -> None:
    server = Loaded((200, PS), facts={"a": ModelFacts("a", window=8192)})
    assert await server.upstream.window("a") == 8192
    assert server.asked == []


async def test_a_list_is_read_once_where_nothing_else_knows_a_window() -> None:
    listed = '{"data": [{"id": "a", "max_model_len": 32768}]}'
    server = Loaded((200, '{"models": []}'), (200, listed), (200, '{"models": []}'))
    assert [await server.upstream.window("a") for _ in range(2)] == [32_768] * 2
    assert sum(url.endswith("/v1/models") for url in server.asked) == 1
    broken = Loaded((500, "no"))
    assert [await broken.upstream.window("a") for _ in range(2)] == [0, 0]
    assert sum(url.endswith("/v1/models") for url in broken.asked) == 1


@pytest.mark.parametrize("answer", [(404, "no"), (200, "<p>"), (200, "[" * 9999)])
async def test_a_server_without_model_windows_is_not_asked_each_time(
    answer: tuple[int, str],
) -> None:
    server = Loaded(answer)
    assert [await server.upstream.known.window("a") for _ in range(3)] == [0] * 3
    assert len(server.asked) == 1


async def test_facts_are_those_of_the_list_with_the_window_of_the_loaded_model() -> (
    None
):
    rows = '{"data": [{"id": "a", "context_length": 32768}, {"id": "b"}]}'
    server = Loaded((200, rows), (200, PS))
    assert server.upstream.known.facts("a") == ModelFacts("a")
    await server.upstream.models()
    assert server.upstream.known.facts("a") == ModelFacts("a", 32_768)
    await server.upstream.known.window("a")
    assert server.upstream.known.facts("a") == ModelFacts("a", 4096)
    assert server.upstream.known.facts("b") == ModelFacts("b")


OVERFLOW = ContextLengthExceeded("too long", window=8000)


def known_models(
    *sources: Lookup, clock: Clock | None = None, quirks: str = "openai"
) -> KnownModels:
    api = Api(OpenAIChat(quirks_of(quirks)), "http://fake.test/v1")
    transports = Canned(lambda request: httpx.Response(404))
    sender = Sender(UpstreamSpec("fake", (api,)), transports, Key())
    return KnownModels(sender, api, sources, clock=clock or Clock(0.0))


def test_what_a_refusal_teaches_counts_more_than_the_list() -> None:
    models = known_models((FactSource.FAMILY, lambda m: ModelFacts(m, tools=True)))
    models.set_listed([ModelFacts("m", window=9000, images=True)])
    models.learn(ModelFacts("m", images=False))
    models.learn_from(OVERFLOW, "m")
    known = models.sourced_facts("m")
    assert known.facts == ModelFacts("m", window=8000, images=False, tools=True)
    assert known.sources == {
        "window": FactSource.REFUSAL,
        "images": FactSource.REFUSAL,
        "tools": FactSource.FAMILY,
    }


def test_a_refusal_of_a_local_server_is_one_of_the_window_it_has_now() -> None:
    models = known_models(quirks="llamacpp")
    models.learn_from(OVERFLOW, "m")
    assert models.facts("m") == ModelFacts("m")


def test_facts_are_kept_for_a_minute_so_that_each_request_has_them_at_once() -> None:
    asked: list[str] = []

    def find(model: str) -> ModelFacts:
        asked.append(model)
        return ModelFacts(model, window=1000 * len(asked))

    clock = Clock(0.0)
    models = known_models((FactSource.PROBE, find), clock=clock)
    assert [models.facts("m").window for _ in range(3)] == [1000] * 3
    clock.now = 60.0
    assert models.facts("m").window == 2000
    models.set_listed([])
    assert models.facts("m").window == 3000


def test_a_name_does_not_prove_what_a_model_cannot_do() -> None:
    guess = ModelFacts("", tools=False, images=False, thinking=False)
    models = known_models((FactSource.FAMILY, lambda model: guess))
    assert models.facts("m") == ModelFacts("m", thinking=False)
    assert models.sourced_facts("m").facts.images is False
    models.set_listed([ModelFacts("m", images=False)])
    assert models.facts("m") == ModelFacts("m", images=False, thinking=False)


# Sources of facts that need no request: which there are, and who counts
SPEC = UpstreamSpec(
    "box",
    (Api(OpenAIChat(), "https://h/v1"),),
    facts={"kimi-k3": ModelFacts("", images=False), "": ModelFacts("", window=9000)},
)


def test_the_user_counts_more_than_a_probe_and_a_probe_more_than_a_name(
    tmp_path: Path,
) -> None:
    profiles = Profiles(tmp_path / "profiles.json")
    probed = ModelFacts("kimi-k3", window=7000, images=True, sampling=True)
    profiles.write("box@https://h/v1", "kimi-k3", Profile(probed))
    lookups = fact_sources(SPEC, profiles)
    layers = [(source, find("kimi-k3")) for source, find in lookups]
    known = combine_facts("kimi-k3", layers)
    assert (known.facts.window, known.facts.images) == (9000, False)
    assert (known.facts.sampling, known.facts.empty_reasoning) == (True, True)
    assert known.sources["window"] is FactSource.USER
    assert known.sources["sampling"] is FactSource.PROBE
    assert known.sources["replay"] is FactSource.FAMILY


def test_a_model_on_this_machine_is_free_unless_somebody_names_a_price() -> None:
    named = ModelFacts("paid", price=Price(1.0, 2.0))
    listed = (FactSource.SERVER, named)
    here, sold = "http://127.0.0.1:1/v1", "anthropic/claude-sonnet-4.5"
    for url, model, more, vendor, free in (
        (here, "m", (), "", True),
        ("http://localhost:1/v1", "m", (), "", True),
        (here, "paid", (), "", False),
        (here, "m", (listed,), "", False),
        ("https://h/v1", "m", (), "", False),
        (here, sold, (), "ollama", True),
        (here, sold, (), "", False),  # a gateway
        (here, "m", (), "openrouter", False),
    ):
        api = Api(OpenAIChat(), url)
        spec = UpstreamSpec("box", (api,), facts={"paid": named}, vendor=vendor)
        layers = [(source, find(model)) for source, find in fact_sources(spec, None)]
        known = combine_facts(model, [*layers, *more]).facts
        assert (known.price == FREE) is free, (url, model)


FACTS = ModelFacts("m", window=8000, images=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "profiles.json"


def test_a_profile_that_was_written_is_found_by_upstream_and_model(file: Path) -> None:
    Profiles(file).write("box@http://a", "m", Profile(FACTS, {"stream": "ok"}))
    found = Profiles(file)
    assert found.find("box@http://a", "m") == Profile(FACTS, {"stream": "ok"})
    assert found.models_of("box@http://a") == ["m"]
    assert found.facts("box@http://a", "n") == ModelFacts("n")
    assert found.facts("box@http://b", "m") == ModelFacts("m")
    assert file.stat().st_mode & 0o077 == 0


def test_profiles_that_another_process_wrote_are_read(file: Path) -> None:
    daemon, probe = Profiles(file), Profiles(file)
    assert daemon.models_of("box") == []
    probe.write("box", "m", Profile(FACTS))
    probe.write("box", "n", Profile(ModelFacts("n", tools=True)))
    assert daemon.facts("box", "m") == FACTS
    probe.write("box", "m", Profile(ModelFacts("m", window=9000)))
    assert daemon.facts("box", "m").window == 9000
    assert sorted(daemon.models_of("box")) == ["m", "n"]


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b'{"version": 2, "profiles": {}}',
        b" " * (4 * 2**20 + 1),
    ],
    ids=["cut", "version", "large"],
)
def test_damaged_profiles_are_reported_once_and_left_alone(
    file: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    found = Profiles(file)
    assert found.facts("box", "m") == ModelFacts("m")
    assert found.facts("box", "n") == ModelFacts("n")
    assert caplog.text.count("ignoring the profiles") == 1
    assert found.damage.startswith("ignoring the profiles in ")
    assert file.read_bytes() == content
    found.write("box", "m", Profile(FACTS))
    assert found.facts("box", "m") == FACTS
    assert Profiles(file).facts("box", "m") == FACTS


@pytest.mark.parametrize(
    "rows", [{"box": 1}, {"box": {"m": []}}, {"box": {"m": {"facts": 3}}}], ids=str
)
def test_a_damaged_profile_counts_as_none(file: Path, rows: object) -> None:
    file.parent.mkdir()
    file.write_text(json.dumps({"version": 1, "profiles": rows}))
    found = Profiles(file)
    assert found.find("box", "m") == Profile(ModelFacts("m"))
    found.write("box", "n", Profile(FACTS))
    assert found.facts("box", "n").window == 8000


SYSTEM, IDS = Remedy("system"), Remedy("ids", "9", "exact")


def test_remedies_of_a_model_outlast_the_daemon(file: Path) -> None:
    first = Profiles(file, clock=lambda: 1000.0)
    first.write("box", "m", Profile(FACTS))
    first.add_remedies("box", "m", "openai_chat", [SYSTEM])
    first.add_remedies("box", "m", "openai_chat", [IDS, SYSTEM])
    first.add_remedies("box", "n", "ollama", [SYSTEM])
    first.close()
    later = Profiles(file, clock=lambda: 1060.0)
    found = later.remedies("box", "m", "openai_chat")
    assert found == [(IDS, 60.0), (SYSTEM, 60.0)]
    assert later.remedies("box", "n", "ollama") == [(SYSTEM, 60.0)]
    assert later.remedies("box", "m", "ollama") == []
    assert later.facts("box", "m") == FACTS
    assert file.stat().st_mode & 0o077 == 0


def test_a_new_probe_of_a_model_forgets_its_remedies(file: Path) -> None:
    profiles = Profiles(file)
    profiles.add_remedies("box", "m", "ollama", [SYSTEM])
    profiles.close()
    Profiles(file).write("box", "m", Profile(FACTS))
    assert profiles.remedies("box", "m", "ollama") == []


def test_remedies_for_single_conversations_do_not_displace_others(file: Path) -> None:
    profiles = Profiles(file)
    profiles.add_remedies("box", "m", "anthropic", [SYSTEM])
    for number in range(70):
        one = Remedy("signature", "", str(number))
        profiles.add_remedies("box", "m", "anthropic", [one])
    profiles.close()
    found = [remedy for remedy, _ in Profiles(file).remedies("box", "m", "anthropic")]
    assert SYSTEM in found
    assert found[-1].version == "69"
    assert len(found) == 51


def test_remedies_are_not_written_over_a_damaged_file(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"{")
    profiles = Profiles(file)
    profiles.add_remedies("box", "m", "ollama", [SYSTEM])
    profiles.close()
    assert file.read_bytes() == b"{"
    assert [remedy for remedy, _ in profiles.remedies("box", "m", "ollama")] == [SYSTEM]


def test_remedies_that_cannot_be_written_are_known_all_the_same(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.parent.write_text("no folder")
    profiles = Profiles(file)
    profiles.add_remedies("box", "m", "ollama", [SYSTEM])
    profiles.close()
    assert [remedy for remedy, _ in profiles.remedies("box", "m", "ollama")] == [SYSTEM]
    assert "cannot be kept" in caplog.text
