"""The enhanced prompt is all of the text, and never less than the user's own."""

from typing import Any

from byok.core.chat import Role
from byok.core.events import FinishReason
from byok.protocols.augment.prompts.chat_texts import decode_enhancer
from tests.fakes.bodies import exchange, text_node
from tests.fakes.jobs import PLAIN, STATE, events, streamed, texts

BODY: dict[str, Any] = {
    "message": "make fares faster",
    "nodes": [text_node("make fares faster")],
    "chat_history": [exchange("what is slow?", "The loop.")],
    "user_guidelines": "Write British English.",
    "mode": "AGENT",
}


def test_the_prompt_is_shown_once_behind_what_was_said() -> None:
    chat = decode_enhancer(BODY, PLAIN, STATE).chat
    shown = texts(chat)
    assert shown.count("make fares faster") == 1
    assert shown.index("what is slow?") < shown.index("The loop.")
    assert shown.endswith("make fares faster")
    assert "British" in texts(chat, Role.SYSTEM)
    assert "tools you are given" not in texts(chat, Role.SYSTEM)


def test_the_text_is_the_new_prompt_and_nothing_else() -> None:
    ran = streamed(decode_enhancer, BODY, events("\n", "Make `fare()`", " faster. \n"))
    assert ran.text == "Make `fare()` faster."
    assert ran.lines[-1]["stop_reason"] == 1


def test_code_in_the_new_prompt_keeps_its_fence() -> None:
    said = "```py\nx\n```\nis slow"
    assert streamed(decode_enhancer, BODY, events(said)).text == said
    assert (
        streamed(decode_enhancer, BODY, events("```md\nfaster\n```")).text == "faster"
    )


def test_an_answer_that_fails_leaves_the_users_prompt() -> None:
    for finish in (FinishReason.CONTENT_FILTER, FinishReason.LENGTH):
        ran = streamed(decode_enhancer, BODY, events("Make", finish=finish))
        assert ran.text == "make fares faster"
        assert ran.lines[-1]["error"]["code"] == "upstream_cut"
        assert ran.lines[-1]["error"]["request_id"] == "r-1"


def test_prompt_enhancer_with_nothing_to_rewrite_is_empty() -> None:
    assert decode_enhancer({"message": "..."}, PLAIN, STATE).chat.messages != ()
    assert decode_enhancer({}, PLAIN, STATE).chat.messages == ()
    ran = streamed(decode_enhancer, {}, [])
    assert (ran.text, ran.error) == ("", None)
