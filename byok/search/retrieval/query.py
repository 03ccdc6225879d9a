"""Parse a question into weighted search terms, in the form that the index uses."""

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

_LONGEST = 10_000
_MOST_TERMS = 64
_LONGEST_TERM = 64


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in text.split())


# Words that say nothing about code; single letters are not indexed anyway.
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
_TASK_WEIGHT = 0.5
_EXPLAINED_WEIGHT = 0.5  # of words whose concept has other words in code
# Code that says `GitHub` or `xAI` has their parts in the index, but in `github.go` and
# `XAI_KEY` they are one word.
_PRODUCT = re.compile(
    r"(?=.{3,40}\Z)(?=.*[a-z])(?:[A-Z]|[a-z](?=[A-Z]))[A-Za-z0-9]*[A-Z][A-Za-z0-9]*"
)
_PRODUCT_WEIGHT = 0.5
# A question with a name or a piece of code means these words and no others.
_NAMES_CODE = re.compile(r"[`_{};=]|::|\w(?:\(|(?<!\d)\.|\.(?!\d))\w|[a-z][A-Z]")
# These look like code too, and everybody says them.
_COMMON_NAMES = re.compile(
    r"\b(?:e\.g\.|i\.e\.|(?:Git(?:Hub|Lab)|(?:Java|Type)Script|i(?:Phone|Pad|OS|Cloud|Tunes)"
    r"|macOS|YouTube|WhatsApp|LinkedIn|PayPal|WordPress|NextCloud|OneDrive|DropBox"
    r"|(?:Postgre|My|No)SQL|(?:Maria|Mongo|Dynamo)DB|GraphQL|OpenAI|ChatGPT|DeepSeek"
    r"|PowerShell|OAuth|LaTeX|AirPlay|JetBrains|WebSockets?|WiFi|Wi-Fi)\b)"
)

_NAMED = (
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
_ASKED_FOR, _WANTED = 0.6, 1.2


class Query(Struct, frozen=True):
    """A parsed question.

    Attributes:
        terms: weight by term, in the order of the question; at most 64.
        parts: the terms that are words, not whole identifiers.
        words: those of the question, and those that were found for them.
        kinds: the least factor of each kind of files that the question mentions.
        formats: what finds the paths of the formats that it names.
        identifier: the name of which the question consists, "" if it says more.
        names: the names of code that it says, and what it wants to know of them.
        only_stop_words: whether it says nothing about code.
        only_task_words: whether it says nothing but what to do, if anything.
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
    """Parse a question; of more than 10,000 characters the rest is ignored."""
    text = without_template(normalize(text, _LONGEST))
    said = words(text)
    foreign = read_foreign(said)
    tasks = TASK_WORDS | {
        term
        for term, english in foreign.own.items()
        if stem(english.split()[0]) in TASK_WORDS
    }
    weights: dict[str, float] = {}
    stopped: dict[str, float] = {}
    for word in said:
        for term in _terms(word):
            if term in STOP_WORDS or term in foreign.idle:
                stopped[term] = 1.0
            else:
                weights[term] = _TASK_WEIGHT if term in tasks else 1.0
    for word in said:
        if _PRODUCT.fullmatch(word):
            weights.setdefault(stem(word.lower()), _PRODUCT_WEIGHT)
    for code in named_languages(text):
        weights.setdefault(code, 2.0)
    known = [*said, *foreign.english]
    _add_english(weights, foreign.english)
    only_task_words = weights.keys() <= tasks
    if weights and not foreign.english and not names_code(text):
        concepts = read_concepts(said)
        for term in concepts.said & weights.keys():
            weights[term] *= _EXPLAINED_WEIGHT
        _add_english(weights, concepts.code)
        known += concepts.code
    terms = _best(weights or stopped)
    return Query(
        terms,
        frozenset(term for term in terms if not term.startswith(COMPOUND)),
        tuple(known),
        {
            kind: _ASKED_FOR
            for kind, name in _NAMED
            if any(name.fullmatch(w) for w in (*said, *foreign.likely))
        }
        | ({Kind.TEST: _WANTED} if wants_tests(text) else {})
        | ({Kind.DOC: _WANTED} if wants_docs(text) else {}),
        named_formats(text),
        identifier_of(text),
        find_names(text),
        only_stop_words=not weights,
        only_task_words=only_task_words,
    )


def names_code(text: str) -> bool:
    """Tell whether a question has a name or a piece of code in it."""
    return _NAMES_CODE.search(_COMMON_NAMES.sub(" ", text)) is not None


# What templates of pull requests and issues say in every text: lists to tick, comments
# that are not shown, headings. It would find the templates.
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


def without_template(text: str) -> str:
    """Return a question without what a template of pull requests put into it.

    Unless that is all there is.
    """
    if "#" not in text and "<!--" not in text and "[" not in text:
        return text
    left = _TEMPLATE.sub(" ", text)
    return left if left.strip() else text


def with_english(query: Query, english: Mapping[str, float]) -> Query:
    """Return a query that has these English words too, with a weight for each."""
    weights = {} if query.only_stop_words else dict(query.terms)
    _add_english(weights, english)
    if not weights:
        return query
    terms = _best(weights)
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
        for term in _terms(word):
            if term not in STOP_WORDS:
                worth = weight * (_TASK_WEIGHT if term in TASK_WORDS else 1.0)
                weights[term] = max(weights.get(term, 0.0), worth)


def _terms(word: str) -> Iterator[str]:
    if word[0] >= IDEOGRAPHS:
        # A long run has many terms; those beyond the limit are not built.
        word = word[: _MOST_TERMS + 1]
    for term in expand(word):
        if len(term.removeprefix(COMPOUND)) <= _LONGEST_TERM:
            yield term


def _best(weights: dict[str, float]) -> dict[str, float]:
    """Keep 64 terms: whole identifiers first, then words, then task words.

    Pairs of ideographs come last: English words were found for most of them.
    """
    if len(weights) <= _MOST_TERMS:
        return weights
    ordered = sorted(
        weights,
        key=lambda term: (
            term[0] >= IDEOGRAPHS,
            -weights[term],
            not term.startswith(COMPOUND),
        ),
    )
    kept = set(ordered[:_MOST_TERMS])
    return {term: weight for term, weight in weights.items() if term in kept}
