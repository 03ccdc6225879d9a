"""The dialect as the upstream sees it."""

from byok.dialects.model_facts import ModelFacts
from byok.dialects.openai_responses.dialect import OpenAIResponses
from byok.dialects.remedies import Remedy


def test_vendors_differ_in_the_header_and_the_number_of_tools() -> None:
    openai, azure = OpenAIResponses.of("openai"), OpenAIResponses.of("azure")
    assert openai == OpenAIResponses.of("openai")
    assert openai.headers("k")["Authorization"] == "Bearer k"
    assert azure.headers("k")["api-key"] == "k"
    unknown = ModelFacts("m")
    assert azure.presumed_remedies(unknown) == (Remedy("most tools", "128"),)
    assert OpenAIResponses.of("other").presumed_remedies(unknown) == ()
    assert openai.url("https://h/v1", "responses") == "https://h/v1/responses"
    assert openai.sends_thoughts


def test_responses_are_forwarded_only_where_they_are_the_first_api() -> None:
    dialect = OpenAIResponses.of("openai")
    assert dialect.serves == dialect.second_best == {"responses"}
