"""A decoded body: what it asks, and that its reply can be made."""

from byok.protocols.v1.block_reply import ReplyHead
from byok.protocols.v1.chat_completions import decode_completion


def test_question_makes_the_reply_with_its_head() -> None:
    question = decode_completion({"messages": [{"role": "user", "content": "Hi."}]})
    assert not question.stream
    assert question.left_out == ()
    assert question.reply(ReplyHead("1", "m")).head == ReplyHead("1", "m", 0)
