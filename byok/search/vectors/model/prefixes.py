"""What embedding models expect before a text, and what vendors ask for them.

Many models were trained with such words and rank worse without them. The rows come from
the model cards of their makers. Models that are not here take texts as they are, such
as those of OpenAI, Mistral and Voyage; their APIs may know further fields, which are
not sent.
"""

import re
from collections.abc import Mapping
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


# What vendors ask for embeddings, in dollars per million tokens, as of November 2026.
#
# For estimates only, so few rows will do; the setting `embeddings.price` outranks them.
# A price belongs to a vendor's own address: another host may ask for another one.


# By the vendor's host, then by model.
_PRICES: Mapping[str, Mapping[str, float]] = {
    "api.openai.com": {
        "text-embedding-3-small": 0.02,
        "text-embedding-3-large": 0.13,
        "text-embedding-ada-002": 0.10,
    },
    "api.mistral.ai": {"mistral-embed": 0.10, "codestral-embed": 0.15},
    "api.voyageai.com": {"voyage-code-3": 0.18},
    "generativelanguage.googleapis.com": {"gemini-embedding-001": 0.15},
}


def dollars_per_million(host: str, model: str) -> float | None:
    """Return the price of a model at a host (with or without a port), if known."""
    rows = _PRICES.get(host.partition(":")[0], {})
    return rows.get(model.lower().removeprefix("models/"))
