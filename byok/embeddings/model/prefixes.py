"""What embedding models expect before a piece of code and before a question.

Many models were trained with such words and rank worse without them. The rows come from
the model cards of their makers. Models that are not here take texts as they are, such
as those of OpenAI, Mistral and Voyage; their APIs may know further fields, which are
not sent.
"""

import re
from typing import NamedTuple


class Prefixes(NamedTuple):
    """The text before each piece of code, and before each question."""

    document: str = ""
    query: str = ""


_NONE = Prefixes()
# Of models that are told their task; the sentence is up to whoever asks.
_TASK = "Given a question about a program, retrieve the source code that answers it"
_INSTRUCT = Prefixes("", f"Instruct: {_TASK}\nQuery: ")
_PASSAGES = Prefixes("", "Represent this sentence for searching relevant passages: ")
_CODE = Prefixes("", "Represent this query for searching relevant code: ")

# A pattern of a model's name, in small letters; the first row that matches counts.
_ROWS: tuple[tuple[str, Prefixes], ...] = (
    (r"nomic-embed-code|coderankembed", _CODE),
    (r"nomic-embed", Prefixes("search_document: ", "search_query: ")),
    (r"\be5-.*instruct|e5-mistral|gte-qwen2", _INSTRUCT),
    (r"\be5-", Prefixes("passage: ", "query: ")),
    (r"bge-m3|bge-multilingual|bge-code|bge-.*icl", _NONE),
    (r"bge-.*-zh", Prefixes("", "为这个句子生成表示以用于检索相关文章：")),
    (r"\bbge-", _PASSAGES),
    (r"mxbai-embed", _PASSAGES),
    (r"arctic-embed2|arctic-embed-.*v2", Prefixes("", "query: ")),
    (r"arctic-embed", _PASSAGES),
    (r"qwen3-embedding", Prefixes("", f"Instruct: {_TASK}\nQuery:")),
    (
        r"embedding-?gemma",
        Prefixes("title: none | text: ", "task: code retrieval | query: "),
    ),
    (
        r"jina-code-embeddings",
        Prefixes(
            "Candidate code snippet:\n",
            "Find the most relevant code snippet given the following query:\n",
        ),
    ),
)
_COMPILED = tuple((re.compile(pattern), row) for pattern, row in _ROWS)


def prefixes_of(
    model: str, document: str | None = None, query: str | None = None
) -> Prefixes:
    """Return the prefixes of a model; those that the user gives replace them."""
    name = model.lower().replace("_", "-")
    known = next((row for pattern, row in _COMPILED if pattern.search(name)), _NONE)
    return Prefixes(
        known.document if document is None else document,
        known.query if query is None else query,
    )
