"""Filling a gap: the request of each way."""

from typing import Any

import pytest

from byok.chat import ChatRequest, FimRequest, Sampling
from byok.dialects.base import Target, UpstreamRequest
from byok.dialects.fim.dialects import FIM_DIALECTS, modes_for
from byok.dialects.fim_mode import FimMode
from byok.dialects.quirks import DEFAULT, QUIRKS, Quirks
from byok.errors import UpstreamError
from byok.events import Finish, FinishReason, TextDelta
from byok.stage import drain
from byok.wire.sse import ServerSentEvent

FILL = FimRequest("def f(", ")\n")
CHAT = ChatRequest((), fim=FILL, sampling=Sampling(0.2, 0.9, 64))
COMMON = {"stream": True, "max_tokens": 64, "temperature": 0.2, "top_p": 0.9}
CODER = "qwen2.5-coder"


def written(way: FimMode, quirks: Quirks = DEFAULT, **extra: Any) -> UpstreamRequest:
    return FIM_DIALECTS[way].encode(CHAT, Target(CODER, quirks, extra))


def test_llama_cpp_is_asked_beside_its_v1() -> None:
    request = written(FimMode.INFILL)
    assert request.path == "/infill"
    assert request.body == {
        "model": CODER,
        "input_prefix": "def f(",
        "input_suffix": ")\n",
        "input_extra": [],
        "cache_prompt": True,
        "stream": True,
        "n_predict": 64,
        "temperature": 0.2,
        "top_p": 0.9,
    }


def test_a_suffix_stands_beside_the_prompt() -> None:
    body = {"model": CODER, "prompt": "def f(", "suffix": ")\n", **COMMON}
    assert written(FimMode.SUFFIX) == UpstreamRequest("completions", body)
    assert written(FimMode.FIM) == UpstreamRequest("fim/completions", body)
    beta = written(FimMode.SUFFIX, QUIRKS["deepseek"])
    assert beta == UpstreamRequest("/beta/completions", body)


def test_a_raw_prompt_holds_both() -> None:
    request = written(FimMode.TEMPLATE)
    assert request.path == "completions"
    prompt = "<|fim_prefix|>def f(<|fim_suffix|>)\n<|fim_middle|>"
    assert request.body.pop("stop")[0] == "<|endoftext|>"
    assert request.body == {"model": CODER, "prompt": prompt, **COMMON}


@pytest.mark.parametrize("way", FIM_DIALECTS)
def test_what_is_not_set_is_not_sent_and_the_users_fields_are(way: FimMode) -> None:
    chat = ChatRequest((), fim=FILL)
    target = Target(CODER, DEFAULT, {"seed": 7, "stream": False})
    body = FIM_DIALECTS[way].encode(chat, target).body
    assert not {"max_tokens", "n_predict", "temperature", "top_p"} & set(body)
    assert (body["seed"], body["stream"]) == (7, False)


@pytest.mark.parametrize("way", FIM_DIALECTS)
def test_where_one_line_is_wanted_a_line_break_ends_it(way: FimMode) -> None:
    chat = ChatRequest((), fim=FimRequest("f(", ")", one_line=True))
    body = FIM_DIALECTS[way].encode(chat, Target(CODER, DEFAULT)).body
    assert body["stop"][-1] == "\n"
    assert len(body["stop"]) <= 4
    assert ("stop" in written(way).body) is (way is FimMode.TEMPLATE)


def test_mistral_answers_as_in_a_chat() -> None:
    said = b'{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}'
    decoder = FIM_DIALECTS[FimMode.FIM].decoder({})
    events = list(drain(decoder, [ServerSentEvent(said)]))
    assert events == [TextDelta("x"), Finish(FinishReason.STOP)]


def test_a_template_counts_only_where_the_model_has_one() -> None:
    ways = (FimMode.TEMPLATE, FimMode.CHAT)
    assert modes_for(ways, CODER) == [FimMode.TEMPLATE, FimMode.CHAT]
    assert modes_for(ways, "gpt-4.1") == [FimMode.CHAT]
    with pytest.raises(UpstreamError, match=r"no template is known for gpt-4\.1"):
        modes_for([FimMode.TEMPLATE], "gpt-4.1")
