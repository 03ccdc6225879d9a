"""Headers with and without a key."""

from byok.dialects.safe_names import openai_headers


def test_the_key_is_a_bearer_token_or_in_a_header_of_the_vendor() -> None:
    assert openai_headers("k", "Authorization")["Authorization"] == "Bearer k"
    assert openai_headers("k", "api-key")["api-key"] == "k"
    assert "Authorization" not in openai_headers("", "Authorization")
