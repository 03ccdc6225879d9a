"""Parse a question into weighted search terms, as the index stores them."""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from byok.search.index.parse.tokens import COMPOUND, IDEOGRAPHS, expand, stem, words
from byok.search.index.types import Kind
from byok.search.retrieval.concepts import read_concepts
from byok.search.retrieval.foreign.words import normalize, read_foreign
from byok.search.retrieval.formats import (
    named_formats,
    named_languages,
    wants_docs,
    wants_tests,
)
from byok.search.retrieval.names import NameQuestion, find_names, identifier_of

_MAX_QUESTION_CHARS = 10_000
_MAX_TERMS = 64
_MAX_TERM_CHARS = 64
_TASK_WEIGHT = 0.5
_EXPLAINED_WEIGHT = 0.5  # of words whose concept has other words in code
# `GitHub` and `xAI` are indexed by their parts, but `github.go` and `XAI_KEY` have them
# as one word.
_PRODUCT_NAME = re.compile(
    r"(?=.{3,40}\Z)(?=.*[a-z])(?:[A-Z]|[a-z](?=[A-Z]))[A-Za-z0-9]*[A-Z][A-Za-z0-9]*"
)
_PRODUCT_WEIGHT = 0.5
# A question with a name or a piece of code means exactly these words.
_CODE = re.compile(r"[`_{};=]|::|\w(?:\(|(?<!\d)\.|\.(?!\d))\w|[a-z][A-Z]")
# Everyday names that look like code.
_COMMON_NAMES = re.compile(
    r"\b(?:e\.g\.|i\.e\.|(?:Git(?:Hub|Lab)|(?:Java|Type)Script|i(?:Phone|Pad|OS|Cloud|Tunes)"
    r"|macOS|YouTube|WhatsApp|LinkedIn|PayPal|WordPress|NextCloud|OneDrive|DropBox"
    r"|(?:Postgre|My|No)SQL|(?:Maria|Mongo|Dynamo)DB|GraphQL|OpenAI|ChatGPT|DeepSeek"
    r"|PowerShell|OAuth|LaTeX|AirPlay|JetBrains|WebSockets?|WiFi|Wi-Fi)\b)"
)
_KIND_WORDS = (
    (
        Kind.TEST,
        re.compile(
            r"(?:[Tt]est|[Ss]pec|[Ff]ixture|[Mm]ock)s?|testing|unittests?"
            r"|tests?_\w+|\w+_tests?|Test[A-Z]\w*|\w*[a-z]Tests?"
        ),
    ),
    (
        Kind.DOC,
        re.compile(
            r"docs?|documentation|documented|readme|changelog|release_?notes",
            re.IGNORECASE,
        ),
    ),
    (Kind.EXAMPLE, re.compile(r"examples?|demos?|tutorials?", re.IGNORECASE)),
)
_MENTIONED_KIND_FACTOR, _REQUESTED_KIND_FACTOR = 0.6, 1.2
# Text of pull request and issue templates: check lists, HTML comments, headings. With
# it, a search would find the templates.
_TEMPLATE = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|^[ \t]*[-*+][ \t]+\[[ xX]\][^\n]*$"
    r"|^[ \t]*#{1,6}[ \t]*(?:pull request|pr\b|checklist|types? of changes?|description"
    r"|motivation|context|screenshots?|how (?:has|was|to|do|did|can)\b[^\n]{0,40}test"
    r"|test plan|testing|related issues?|breaking changes?"
    r"|additional (?:context|notes?)"
    r"|steps to reproduce|expected behaviou?r|actual behaviou?r|environment|summary"
    r"|what (?:does|is|do|kind|changed)\b[^\n]{0,40}(?:pr|pull request|change))[^\n]*$"
    r"|^[ \t]*(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?[ \t]+"
    r"#(?:\d+|\(issue\))[ \t]*$",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in text.split())


# Words without a meaning for code; single letters are not indexed anyway.
STOP_WORDS = _stems(
    "an and are as at be been being but by can could did do does doing done for from "
    "had has have having how if in into is it its me my of on onto or our shall should "
    "so such than that the their them then there these they this those to us was we "
    "were what when where whether which while who whom whose why will with would you "
    "your please"
)
# Words about the task rather than the code; they count half.
TASK_WORDS = _stems(
    "about add added adding adds after all allow also another any because before "
    "between change changed changes class code codebase correctly current currently "
    "define defined different during each ensure every example explain file files "
    "find fix fixed fixes function functions get give handle handled handles handling "
    "help here implement implementation implemented implements instead just like "
    "locate logic look made make makes making may method methods more most must need "
    "needed needs new no not now off old one only other out over prevent "
    "previously related relevant same see show some still support supported supports "
    "sure task tell thing two under until up update updated updates use used uses "
    "using via want wants way well within without work working works wrong"
)


class Query(Struct, frozen=True):
    """A parsed question.

    Attributes:
        terms: weight by term, in the order of the question; at most 64.
        parts: the terms that are words, not whole identifiers.
        words: the words of the question, and words of code that were added to them.
        kinds: the least factor of each kind of files that the question mentions.
        formats: matches the paths of the file formats that it names.
        identifier: the name of which the question consists, "" if it has more words.
        names: the names of code in it, and what it asks about them.
        only_stop_words: whether all its words are stop words.
        only_task_words: whether all its other words are task words.
    """

    terms: Mapping[str, float]
    parts: frozenset[str]
    words: tuple[str, ...]
    kinds: Mapping[Kind, float]
    formats: re.Pattern[str] | None = None
    identifier: str = ""
    names: tuple[NameQuestion, ...] = ()
    only_stop_words: bool = False
    only_task_words: bool = False


def parse_query(text: str) -> Query:
    """Parse a question of any length; only its first 10,000 characters are read."""
    text = without_template(normalize(text, _MAX_QUESTION_CHARS))
    question_words = words(text)
    foreign = read_foreign(question_words)
    tasks = TASK_WORDS | {
        term
        for term, english in foreign.meanings.items()
        if stem(english.split()[0]) in TASK_WORDS
    }
    weights: dict[str, float] = {}
    stop_word_weights: dict[str, float] = {}
    for word in question_words:
        for term in _terms_of(word):
            if term in STOP_WORDS or term in foreign.stop_terms:
                stop_word_weights[term] = 1.0
            else:
                weights[term] = _TASK_WEIGHT if term in tasks else 1.0
    for word in question_words:
        if _PRODUCT_NAME.fullmatch(word):
            weights.setdefault(stem(word.lower()), _PRODUCT_WEIGHT)
    for code in named_languages(text):
        weights.setdefault(code, 2.0)
    all_words = [*question_words, *foreign.english]
    _add_english(weights, foreign.english)
    only_task_words = weights.keys() <= tasks
    if weights and not foreign.english and not names_code(text):
        concepts = read_concepts(question_words)
        for term in concepts.explained & weights.keys():
            weights[term] *= _EXPLAINED_WEIGHT
        _add_english(weights, concepts.code)
        all_words += concepts.code
    terms = _best_terms(weights or stop_word_weights)
    return Query(
        terms,
        frozenset(term for term in terms if not term.startswith(COMPOUND)),
        tuple(all_words),
        {
            kind: _MENTIONED_KIND_FACTOR
            for kind, name in _KIND_WORDS
            if any(name.fullmatch(w) for w in (*question_words, *foreign.likely))
        }
        | ({Kind.TEST: _REQUESTED_KIND_FACTOR} if wants_tests(text) else {})
        | ({Kind.DOC: _REQUESTED_KIND_FACTOR} if wants_docs(text) else {}),
        named_formats(text),
        identifier_of(text),
        find_names(text),
        only_stop_words=not weights,
        only_task_words=only_task_words,
    )


def names_code(text: str) -> bool:
    """Tell whether a question has a name or a piece of code in it."""
    return _CODE.search(_COMMON_NAMES.sub(" ", text)) is not None


def without_template(text: str) -> str:
    """Return a question without the text of a template, unless it has nothing else."""
    if "#" not in text and "<!--" not in text and "[" not in text:
        return text
    without = _TEMPLATE.sub(" ", text)
    return without if without.strip() else text


def with_english(query: Query, english: Mapping[str, float]) -> Query:
    """Return a query with more English words, given with a weight for each."""
    weights = {} if query.only_stop_words else dict(query.terms)
    _add_english(weights, english)
    if not weights:
        return query
    terms = _best_terms(weights)
    return replace(
        query,
        terms=terms,
        parts=frozenset(term for term in terms if not term.startswith(COMPOUND)),
        words=(*query.words, *english),
        only_stop_words=False,
        only_task_words=query.only_task_words and weights.keys() <= TASK_WORDS,
    )


def _add_english(weights: dict[str, float], english: Mapping[str, float]) -> None:
    for word, weight in english.items():
        for term in _terms_of(word):
            if term not in STOP_WORDS:
                term_weight = weight * (_TASK_WEIGHT if term in TASK_WORDS else 1.0)
                weights[term] = max(weights.get(term, 0.0), term_weight)


def _terms_of(word: str) -> Iterator[str]:
    if word[0] >= IDEOGRAPHS:
        # A long run has very many terms; only as many as the limit are built.
        word = word[: _MAX_TERMS + 1]
    for term in expand(word):
        if len(term.removeprefix(COMPOUND)) <= _MAX_TERM_CHARS:
            yield term


def _best_terms(weights: dict[str, float]) -> dict[str, float]:
    """Return the best 64 terms: whole identifiers first, then words, then task words.

    Pairs of ideographs come last: most of them have English words in the query.
    """
    if len(weights) <= _MAX_TERMS:
        return weights
    ordered = sorted(
        weights,
        key=lambda term: (
            term[0] >= IDEOGRAPHS,
            -weights[term],
            not term.startswith(COMPOUND),
        ),
    )
    best = set(ordered[:_MAX_TERMS])
    return {term: weight for term, weight in weights.items() if term in best}
