"""The dialect of Ollama's own API: addresses, key, refusals, probes."""

import pytest

from byok.core.errors import ContextLengthExceeded, RefusalKind
from byok.dialects.base import ErrorResponse, ModelPage, Probe
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


REFUSALS = [
    (404, RefusalKind.NOT_FOUND, "model 'x' not found"),
    (400, RefusalKind.NO_TOOLS, "registry.ollama.ai/library/x does not support tools"),
    (400, RefusalKind.CONTEXT_LENGTH, "the input length exceeds the context length"),
    (400, RefusalKind.CONTEXT_LENGTH, "prompt too long; exceeded max context length"),
    (
        400,
        RefusalKind.CONTEXT_LENGTH,
        "the prompt is longer than the context length currently available to the model",
    ),
    (
        500,
        RefusalKind.NO_MEMORY,
        "model requires more system memory (9.1 GiB) than is available (5.2 GiB)",
    ),
    (
        503,
        RefusalKind.OVERLOADED,
        "server busy, please try again.  maximum pending requests exceeded",
    ),
    (401, RefusalKind.AUTH, "unauthorized"),
]


@pytest.mark.parametrize(("status", "kind", "text"), REFUSALS)
def test_refusals_are_known_by_their_words(
    status: int, kind: RefusalKind, text: str
) -> None:
    assert Ollama().refusal(ErrorResponse(status, {"error": text})).kind is kind


def test_an_overflow_names_window_and_count() -> None:
    text = (
        "request (18142 tokens) exceeds the available context size (4096 tokens), try "
        "increasing it"
    )
    error = Ollama().refusal(ErrorResponse(400, {"error": text}))
    assert isinstance(error, ContextLengthExceeded)
    assert (error.window, error.counted) == (4096, 18_142)


def test_the_list_has_one_page_and_a_model_is_asked_for_twice() -> None:
    dialect = Ollama.of("ollama")
    assert dialect.read_models({"models": [{"name": "a"}]}) == ModelPage(
        (ModelFacts("a"),)
    )
    assert dialect.models_path() == "/api/tags"
    show = Probe("/api/show", {"model": "a"})
    assert dialect.probes("a") == (Probe("/api/ps"), show)
    assert dialect.sends_thoughts
