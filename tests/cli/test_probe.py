"""byok probe, and the profiles that it wrote."""

import asyncio
import json
from pathlib import Path

import pytest

from byok.cli.probe import find_target
from byok.core.platform.paths import find_paths
from byok.settings import Settings
from byok.upstream.model_facts import Profiles
from tests.fakes.commands import Cli
from tests.fakes.daemon import write_settings
from tests.fakes.probed import ProbedModel
from tests.fakes.upstream import FakeUpstream, refusal

pytestmark = pytest.mark.slow


@pytest.fixture
def config(fake: FakeUpstream) -> Path:
    """Settings with one upstream, and a model that knows nothing of its own."""
    lines = [
        "[routing]",
        'default = "byok:box:m"',
        'aliases = { fast = "byok:box:m" }',
        "[upstreams.box]",
        f'base_url = "{fake.url}"',
    ]
    return write_settings("\n".join(lines))


@pytest.mark.usefixtures("config")
@pytest.mark.parametrize("what", [["box/m"], []], ids=str)
async def test_a_probe_writes_a_table_and_a_profile(
    cli: Cli, fake: FakeUpstream, what: list[str]
) -> None:
    ProbedModel().serve(fake)
    done = await asyncio.to_thread(cli, "probe", *what, "--yes")
    assert done.code == 0, done.err
    assert "box/m in openai_chat: at most" in done.err
    assert "they are free" in done.err
    assert "without reasoning  refused" in done.out
    assert "replay = tool_turns" in done.out
    profiles = Profiles(find_paths().profiles)
    facts = profiles.facts(f"box@{fake.url}", "m")
    assert facts.efforts == ("low", "medium", "high")
    shown = await asyncio.to_thread(cli, "probe", "box", "--show")
    assert shown.out.splitlines()[0].startswith("box/m, dialect openai_chat, 20")
    assert done.out.splitlines()[-1] in shown.out


@pytest.mark.usefixtures("config")
async def test_a_probe_asks_before_it_costs_anything(
    cli: Cli, fake: FakeUpstream
) -> None:
    done = await asyncio.to_thread(cli, "probe", "box/m", stdin="y\n")
    assert done.code == 78
    assert "at most" in done.err
    assert "byok probe box/m --yes" in done.err
    assert fake.requests == []


@pytest.mark.usefixtures("config")
async def test_a_probe_prints_json_and_exports_no_secrets(
    cli: Cli, fake: FakeUpstream, tmp_path: Path
) -> None:
    ProbedModel(window=9000, images="refused").serve(fake)
    args = ("probe", "box/m", "--yes", "--json", "--overflow")
    done = await asyncio.to_thread(cli, *args)
    report = json.loads(done.out)
    assert report["dialect"] == "openai_chat"
    assert report["cases"][0]["case"] == "answer"
    file = tmp_path / "profile.json"
    await asyncio.to_thread(cli, "probe", "box/m", "--export", str(file))
    [exported] = json.loads(file.read_text())
    assert (exported["vendor"], exported["model"]) == ("openai_compatible", "m")
    assert exported["facts"]["images"] is False
    assert "127.0.0.1" not in file.read_text()
    listed = await asyncio.to_thread(cli, "probe", "box/m", "--show", "--json")
    assert json.loads(listed.out) == [exported]


@pytest.mark.usefixtures("config")
async def test_a_probe_of_an_upstream_that_refuses_writes_nothing(
    cli: Cli, fake: FakeUpstream
) -> None:
    fake.play(refusal(401, "Bad key."))
    done = await asyncio.to_thread(cli, "probe", "box/m", "--yes")
    assert (done.code, "Bad key" in done.err) == (1, True)
    assert not find_paths().profiles.exists()


SETTINGS = Settings.model_validate(
    {
        "upstreams": {"box": {"base_url": "https://box.example/v1"}},
        "routing": {"aliases": {"fast": "byok:box:a/b"}},
    }
)


@pytest.mark.parametrize(
    ("what", "name", "model"),
    [
        ("box", "box", ""),
        ("box/vendor/m:free", "box", "vendor/m:free"),
        ("fast", "box", "a/b"),
        ("byok:fast", "box", "a/b"),
        ("", "box", ""),
        ("openai/gpt-5.1", "openai", "gpt-5.1"),
        ("https://other.example/v1", "custom", ""),
    ],
)
def test_the_target_of_a_probe(what: str, name: str, model: str) -> None:
    target = find_target(what, SETTINGS)
    assert (target.name, target.model) == (name, model)


def test_a_missing_profile_says_how_to_make_one(cli: Cli) -> None:
    done = cli("probe", "openai/m", "--show")
    assert done.code == 78
    assert "openai has no profile of this model" in done.err
    assert "byok probe openai/MODEL" in done.err
