"""What --upstream may name."""

import pytest

from byok.config import Settings, UpstreamSettings, upstream_named
from byok.errors import ConfigError

BOX = {"base_url": "https://box.example/v1"}


def test_upstream_section_wins_over_the_preset_of_its_name() -> None:
    settings = Settings(upstreams={"openai": {"model": "own"}})
    assert upstream_named("openai", settings) == (
        "openai",
        settings.upstreams["openai"],
    )


@pytest.mark.parametrize("wanted", ["groq", "ollama", "demo"])
def test_upstream_preset_needs_no_section(wanted: str) -> None:
    assert upstream_named(wanted, Settings()) == (wanted, UpstreamSettings(type=wanted))


def test_a_url_is_an_upstream_called_custom() -> None:
    name, section = upstream_named("http://127.0.0.1:9", Settings())
    assert (name, section.base_url) == ("custom", "http://127.0.0.1:9")


def test_upstream_azure_needs_a_base_url() -> None:
    with pytest.raises(ConfigError, match="address of your resource"):
        upstream_named("azure", Settings())


@pytest.mark.parametrize("wanted", ["olama", "azur", "", "OLLAMA", "custom"])
def test_an_unknown_upstream_is_told_with_those_that_are_known(wanted: str) -> None:
    settings = Settings(upstreams={"box": BOX, "ollama": {}})
    with pytest.raises(ConfigError, match="Unknown upstream") as caught:
        upstream_named(wanted, settings)
    names = caught.value.hint.removeprefix("Use one of ").partition(", or")[0]
    known = names.split(", ")
    assert known[:2] == ["box", "ollama"]
    assert {"demo", "openai", "azure"} < set(known)
    assert len(known) == len(set(known))


@pytest.mark.parametrize(
    "url",
    [
        "http://canary.example/v1",
        "https://me:canary@host/v1",
        "https://host/v1?key=canary",
        "file:///canary",
        "https://169.254.169.254/canary",
    ],
)
def test_upstream_url_of_the_command_line_is_checked_too(
    url: str,
) -> None:
    with pytest.raises(ConfigError, match="must look like https") as caught:
        upstream_named(url, Settings())
    assert "canary" not in f"{caught.value.sentence} {caught.value.__cause__}"
