"""The dialect as the upstream sees it."""

from byok.core.chat import ChatRequest, Origin
from byok.core.events import Finish, FinishReason, TextDelta
from byok.core.stage import drain
from byok.dialects.base import ErrorResponse, Target, UpstreamRequest
from byok.dialects.model_facts import ModelFacts
from byok.dialects.openai_responses.dialect import OpenAIResponses
from byok.dialects.remedies import Remedy
from tests.fakes.histories import user
from tests.fakes.responses_server import streamed, text_item


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


def test_a_request_and_its_answer() -> None:
    dialect = OpenAIResponses()
    request = dialect.encode(ChatRequest((user("Hi?"),)), Target("m"))
    assert request.path == "responses"
    sent = UpstreamRequest(request.path, {}, origin=Origin("d", "u", "m"))
    events = [*drain(dialect.reader(sent), streamed(text_item("Hi.")))]
    assert events[-1] == Finish(FinishReason.STOP)
    assert TextDelta("H") in events


def test_refusals_and_models_are_those_of_openai() -> None:
    dialect = OpenAIResponses()
    limit = ErrorResponse(
        429, {"error": {"message": "Slow down"}}, {"retry-after": "3"}
    )
    assert dialect.refusal(limit).retry_after == 3
    assert dialect.models_path() == "models"
    page = dialect.read_models({"data": [{"id": "gpt-x"}]})
    assert page.models == (ModelFacts("gpt-x"),)


def test_responses_are_forwarded_only_where_they_are_the_first_api() -> None:
    dialect = OpenAIResponses.of("openai")
    assert dialect.serves == dialect.second_best == {"responses"}
