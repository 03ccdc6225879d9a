"""Token counts: who counts the cached part where."""

from typing import Any

import pytest

from byok.core.events import Usage
from byok.dialects.openai_chat.chunks import read_usage, usage_near_end


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            Usage(10, 5),
            id="plain",
        ),
        pytest.param(
            {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 8}},
            Usage(10, 0, 8),
            id="the cached part is inside",
        ),
        pytest.param(
            {"prompt_tokens": 10, "cached_tokens": 8}, Usage(10, 0, 8), id="at the top"
        ),
        pytest.param(
            {"prompt_tokens": 10, "num_cached_tokens": 8}, Usage(10, 0, 8), id="Mistral"
        ),
        pytest.param(
            {"prompt_tokens": 10, "prompt_cache_hit_tokens": 8},
            Usage(10, 0, 8),
            id="DeepSeek",
        ),
        pytest.param(
            {
                "prompt_tokens": 10,
                "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 6},
            },
            Usage(10, 0, 3, 6),
            id="OpenAI tells what it wrote to its cache",
        ),
        pytest.param(
            {
                "prompt_tokens": 10,
                "cache_creation_input_tokens": 6,
                "cache_read_input_tokens": 3,
                "prompt_tokens_details": {"cached_tokens": 3},
            },
            Usage(10, 0, 3, 6),
            id="Claude behind a gateway",
        ),
        pytest.param(
            {"prompt_tokens": 10, "prompt_tokens_details": None, "cached_tokens": None},
            Usage(10, 0, 0),
            id="null details",
        ),
        pytest.param({"completion_tokens": 5}, Usage(0, 5), id="only completion"),
        pytest.param(
            {"prompt_tokens": "10", "completion_tokens": 5}, Usage(0, 5), id="a string"
        ),
        pytest.param(
            {"prompt_tokens": -1, "completion_tokens": 5}, Usage(0, 5), id="negative"
        ),
        pytest.param({"prompt_tokens": 0, "completion_tokens": 0}, None, id="zeros"),
        pytest.param({"total_tokens": 15}, None, id="only the total"),
        pytest.param({}, None, id="empty"),
        pytest.param(None, None, id="null"),
        pytest.param([], None, id="a list"),
        pytest.param(7, None, id="a number"),
    ],
)
def test_usage_is_read(usage: Any, expected: Usage | None) -> None:
    assert read_usage(usage) == expected


@pytest.mark.parametrize(
    ("told", "details"),
    [
        (False, {}),
        (False, {"prompt_tokens_details": None}),
        (False, {"prompt_tokens_details": {"audio_tokens": 0}}),
        (True, {"prompt_tokens_details": {"cached_tokens": 0}}),
        (True, {"prompt_cache_hit_tokens": 0}),
    ],
)
def test_a_cache_that_is_not_told_of_is_not_an_empty_one(
    told: bool, details: dict[str, Any]
) -> None:
    usage = read_usage({"prompt_tokens": 10, "completion_tokens": 5, **details})
    assert usage is not None
    assert (usage.cache_read_tokens, usage.cache_told) == (0, told)
    assert usage.plus(Usage(1, 1)).cache_told is told


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            b'{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}',
            Usage(3, 1),
            id="a whole answer",
        ),
        pytest.param(
            b'data: {"usage":null}\n\ndata: {"usage":{"prompt_tokens":3}}\n\n'
            b"data: [DONE]\n\n",
            Usage(3),
            id="the last event of a stream",
        ),
        pytest.param(
            b'{"usage":{"input_tokens":3,"output_tokens":2,'
            b'"input_tokens_details":{"cached_tokens":1}}}}',
            Usage(3, 2, 1),
            id="a response",
        ),
        pytest.param(b'{"choices": []}', None, id="none"),
        pytest.param(b'{"usage": null}', None, id="null"),
        pytest.param(b'ge": 1} "usage": {"prompt_tok', None, id="cut"),
        pytest.param(b'"usage"' + b"{" * 3000, None, id="not JSON"),
        pytest.param(b'"usage":{"a":"\xff"}', None, id="not UTF-8"),
    ],
)
def test_usage_of_an_answer_that_is_passed_on(
    answer: bytes, expected: Usage | None
) -> None:
    assert usage_near_end(answer) == expected
