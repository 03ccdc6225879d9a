"""The key of a conversation for prompt caches."""

from byok.core.chat import ChatRequest
from byok.dialects.safe_names import prompt_cache_key


def test_the_key_is_the_same_in_a_conversation_and_hides_its_id() -> None:
    chat = ChatRequest((), conversation="c-1")
    key = prompt_cache_key(chat)
    assert key == prompt_cache_key(ChatRequest((), conversation="c-1", agent=True))
    assert key != prompt_cache_key(ChatRequest((), conversation="c-2"))
    assert len(key) <= 64
    assert "c-1" not in key
    assert prompt_cache_key(ChatRequest((), conversation="\ud800"))


def test_a_key_of_the_client_wins() -> None:
    keys = {
        prompt_cache_key(ChatRequest((), conversation=name, cache_key="app"))
        for name in ("c-1", "c-2", "")
    }
    assert len(keys) == 1


def test_without_a_conversation_there_is_no_key() -> None:
    assert prompt_cache_key(ChatRequest(())) == ""
