from byok.core.events import Usage
from byok.dialects.anthropic.answer import UsageCounter


def test_the_newest_count_of_each_kind_that_is_one_counts() -> None:
    counter = UsageCounter()
    assert counter.usage() is None
    counter.note({"input_tokens": 5, "cache_creation_input_tokens": 20})
    counter.note({"input_tokens": 0, "output_tokens": True, "x": 3})
    counter.note({"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 2}})
    counter.note(None)
    counter.note({"output_tokens_details": "odd"})
    assert counter.usage() == Usage(25, 7, 0, 20, 2)
