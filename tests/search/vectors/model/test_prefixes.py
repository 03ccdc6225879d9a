"""What is put before texts, by the model's name."""

import pytest

from byok.search.vectors.model.prefixes import Prefixes, prefixes_of

NONE = Prefixes()


@pytest.mark.parametrize(
    ("model", "document", "query"),
    [
        ("nomic-embed-text", "search_document: ", "search_query: "),
        ("nomic-embed-text:v1.5", "search_document: ", "search_query: "),
        ("nomic-ai/nomic-embed-text-v2-moe", "search_document: ", "search_query: "),
        ("text-embedding-nomic-embed-text-v1.5", "search_document: ", "search_query: "),
        ("intfloat/multilingual-e5-large", "passage: ", "query: "),
        ("e5-small-v2", "passage: ", "query: "),
        (
            "embeddinggemma:300m",
            "title: none | text: ",
            "task: code retrieval | query: ",
        ),
        ("snowflake-arctic-embed2", "", "query: "),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "", "query: "),
    ],
)
def test_models_get_what_their_makers_say(
    model: str, document: str, query: str
) -> None:
    assert prefixes_of(model) == (document, query)


@pytest.mark.parametrize(
    ("model", "begin"),
    [
        ("BAAI/bge-small-en-v1.5", "Represent this sentence"),
        ("bge-large", "Represent this sentence"),
        ("BAAI/bge-large-zh-v1.5", "为这个句子"),
        ("mxbai-embed-large", "Represent this sentence"),
        ("snowflake-arctic-embed:110m", "Represent this sentence"),
        ("nomic-embed-code", "Represent this query"),
        ("Qwen/Qwen3-Embedding-0.6B", "Instruct: "),
        ("qwen3-embedding:8b", "Instruct: "),
        ("intfloat/multilingual-e5-large-instruct", "Instruct: "),
        ("intfloat/e5-mistral-7b-instruct", "Instruct: "),
    ],
)
def test_some_models_want_words_before_questions_only(model: str, begin: str) -> None:
    document, query = prefixes_of(model)
    assert document == ""
    assert query.startswith(begin)


@pytest.mark.parametrize(
    "model",
    [
        *("text-embedding-3-small", "mistral-embed", "codestral-embed", "bge-m3"),
        *(
            "all-minilm:l6-v2",
            "voyage-code-3",
            "gte-large",
            "jina-embeddings-v2-base-code",
        ),
        *("granite-embedding:278m", "", "the5-star"),
    ],
)
def test_other_models_take_texts_as_they_are(model: str) -> None:
    assert prefixes_of(model) == NONE


def test_the_user_s_own_words_replace_those_that_are_known() -> None:
    assert prefixes_of("nomic-embed-text", "", "q ") == ("", "q ")
    assert prefixes_of("nomic-embed-text", None, "") == ("search_document: ", "")
    assert prefixes_of("mine", "d ") == ("d ", "")
