"""What --upstream may name."""

import pytest

from byok.core.errors import ConfigError
from byok.settings import Settings, UpstreamSettings, upstream_named

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
    ("url", "why"),
    [
        ("http://canary.example/v1", "is plain http to another machine"),
        ("https://me:canary@host/v1", "must not contain a user"),
        ("https://host/v1?key=canary", "must not contain a query: use query = "),
        ("https://host:canary/v1", "must contain a valid host and port"),
        ("file:///canary", "must look like https://host/v1"),
        ("https://169.254.169.254/canary", "must not be a link-local address"),
    ],
)
def test_what_is_wrong_with_a_url_of_the_command_line_is_told(
    url: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=f"The upstream's URL {why}") as caught:
        upstream_named(url, Settings())
    assert "canary" not in f"{caught.value.sentence} {caught.value.__cause__}"


@pytest.mark.parametrize("wanted", ["localhost:11434", "127.0.0.1:9000/v1"])
def test_an_address_without_http_is_shown_as_a_url(wanted: str) -> None:
    with pytest.raises(ConfigError, match="Unknown upstream") as caught:
        upstream_named(wanted, Settings())
    assert caught.value.hint.endswith(f"such as http://{wanted}")
