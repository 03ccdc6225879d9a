"""byok models."""

import asyncio
import json

import pytest

from tests.fakes.commands import Cli
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.upstream import FakeUpstream

NOT_RUNNING = "byok is not running; this comes from the settings file.\n"


async def test_models_are_those_of_the_running_daemon_and_not_of_the_settings(
    cli: Cli, fake: FakeUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that was started with --upstream answers by that one."""
    fake.models = ["first"]

    def listed() -> tuple[str, str]:
        monkeypatch.setenv("BYOK_UPSTREAMS__DEMO__TYPE", "demo")
        done = cli("models")
        return done.out, done.err

    def both() -> tuple[str, str]:
        with daemon_thread(upstream=fake.url):
            before, err = listed()
            assert (before.split()[2:], err) == (["custom", "first", "default"], "")
            fake.models = ["another"]  # what it offers now is told
            return listed()

    after, err = await asyncio.to_thread(both)
    assert (after.split()[2:], err) == (["custom", "another", "default"], "")


def test_the_demo_offers_its_one_model(cli: Cli) -> None:
    done = cli("models", "--upstream", "demo", "--json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == {
        "default": "byok:demo:echo",
        "models": ["byok:demo:echo"],
        "failures": {},
    }


async def test_the_models_of_an_upstream_are_listed(
    cli: Cli, fake: FakeUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.models = ["one", "two/three:free", "x[/y]"]
    monkeypatch.setenv("BYOK_UPSTREAMS__FAKE__BASE_URL", fake.url)
    monkeypatch.setenv("BYOK_UPSTREAMS__FAKE__MODEL", "two/three:free")
    done = await asyncio.to_thread(cli, "models")
    assert (done.code, done.err) == (0, NOT_RUNNING)
    rows = [line.split() for line in done.out.splitlines()[1:]]
    assert sorted(rows) == [
        ["fake", "one"],
        ["fake", "two/three:free", "default"],
        ["fake", "x[/y]"],
    ]


def test_models_of_an_upstream_that_does_not_answer_are_reported_once(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOK_UPSTREAMS__BOX__BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("BYOK_UPSTREAMS__BOX__MODELS", '["listed"]')
    monkeypatch.setenv("BYOK_UPSTREAMS__DEMO__TYPE", "demo")
    done = cli("models")
    assert done.code == 0
    assert [line.split()[:2] for line in done.out.splitlines()[1:]] == [
        ["box", "listed"],
        ["demo", "echo"],
    ]
    assert done.err.count("nothing answers") == 1
    report = json.loads(cli("models", "--json").out)
    assert list(report["failures"]) == ["box"]
    assert "byok:demo:echo" in report["models"]


def test_models_without_a_key_report_it_with_a_hint(cli: Cli) -> None:
    done = cli("models", "--upstream", "openai", "--json")
    report = json.loads(done.out)
    assert "byok keys set openai" in report["failures"]["openai"]
