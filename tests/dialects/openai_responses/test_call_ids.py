"""Ids of calls that repeat, or are too long."""

from byok.dialects.openai_responses.request import CallIds


def test_an_id_that_repeats_pairs_each_call_with_its_result() -> None:
    ids = CallIds()
    sent = [ids.call("a"), ids.result("a"), ids.call("a"), ids.result("a")]
    other = sent[2]
    assert sent == ["a", "a", other, other]
    assert ids.originals == {"a": "a", other: "a"}
