"""What the panels of the index and of code search ask for."""

import asyncio
import time
from collections.abc import Mapping

from byok.chat import Json
from byok.code_query import DEFAULT_LENGTH, LONGEST, RetrievalRequest
from byok.index.types import SkipReason
from byok.retrieval.code_context import CodeContext
from byok.server.dashboard.endpoint import PageHandler, PageRequest
from byok.server.dashboard.fields import (
    read_choice,
    read_count,
    read_number,
    read_text,
    read_texts,
    refuse_empty,
)

_LONGEST_QUESTION = 10_000
_LONGEST_PATH = 4096
_MOST_FOLDERS = 100
_HITS, _MOST_HITS = 10, 50
_LINES = 12  # of a chunk
_MOST_FILES = 200


def make_index_handlers(context: CodeContext) -> Mapping[str, PageHandler]:
    """Return what answers each name of these panels."""
    answers = _IndexApi(context)
    return {
        "index-skipped": answers.list_skipped,
        "search": answers.search,
        "retrieval": answers.retrieve,
    }


class _IndexApi:
    def __init__(self, context: CodeContext) -> None:
        self._context = context
        self._walking = asyncio.Lock()  # a walk keeps a thread busy for seconds

    async def list_skipped(self, asked: PageRequest) -> Json:
        """Return how many files are left out for each reason, and some of them."""
        body = asked.body
        root = read_text(body, "root", longest=_LONGEST_PATH)
        name = read_choice(body, "reason", ("", *SkipReason), "")
        reason = SkipReason(name) if name else None
        offset = read_number(body, "offset") or 0
        limit = read_count(body, "limit", _MOST_FILES, most=_MOST_FILES)
        async with self._walking:
            found = await self._context.find_skipped(root, reason, offset, limit)
        return {
            "reasons": [
                {"reason": one, "count": found.counts[one], "why": one.explanation}
                for one in SkipReason
                if found.counts.get(one)
            ],
            "files": [file._asdict() for file in found.files],
            "whole": found.whole,
        }

    async def search(self, asked: PageRequest) -> Json:
        """Return the best files with lines of them, and how long that took."""
        question, roots = _question(asked.body)
        limit = read_count(asked.body, "limit", _HITS, most=_MOST_HITS)
        began = time.monotonic()
        found = await self._context.search(question, limit, roots, lines=_LINES)
        return {**found, "seconds": time.monotonic() - began}

    async def retrieve(self, asked: PageRequest) -> Json:
        """Return the excerpts that a model would get, and how long that took."""
        question, roots = _question(asked.body)
        length = read_count(asked.body, "length", DEFAULT_LENGTH, most=LONGEST)
        wanted = RetrievalRequest(question, length, roots=roots)
        found = await self._context.retrieve(wanted)
        return {"text": found.text, "seconds": found.seconds}


def _question(body: Json) -> tuple[str, list[str]]:
    """Return a question, and the workspaces to search."""
    question = read_text(body, "query", longest=_LONGEST_QUESTION)
    roots = read_texts(body, "workspaces", most=_MOST_FOLDERS, longest=_LONGEST_PATH)
    return refuse_empty("query", question), roots
