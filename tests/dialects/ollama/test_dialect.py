"""The dialect of Ollama's own API: addresses, key, refusals, probes."""

import pytest

from byok.dialects.base import ModelPage, Probe
from byok.dialects.model_facts import ModelFacts
from byok.dialects.ollama.dialect import Ollama


@pytest.mark.parametrize("base", ["http://h:1", "http://h:1/v1", "http://h:1/api"])
def test_a_base_url_may_be_that_of_other_clients(base: str) -> None:
    assert Ollama().url(base, "/api/chat") == "http://h:1/api/chat"
    assert Ollama().url("https://h/x/v1", "/api/ps") == "https://h/x/api/ps"
    for host in ("https://v1", "https://api"):
        assert Ollama().url(host, "/api/ps") == f"{host}/api/ps"


def test_only_the_cloud_needs_a_key() -> None:
    assert Ollama().headers("k")["Authorization"] == "Bearer k"
    assert "Authorization" not in Ollama().headers("")


def test_the_list_has_one_page_and_a_model_is_asked_for_twice() -> None:
    dialect = Ollama.of("ollama")
    assert dialect.read_models({"models": [{"name": "a"}]}) == ModelPage(
        (ModelFacts("a"),)
    )
    assert dialect.models_path() == "/api/tags"
    show = Probe("/api/show", {"model": "a"})
    assert dialect.probes("a") == (Probe("/api/ps"), show)
    assert dialect.sends_thoughts
