"""Code goes into a chat where it is wanted; a chat goes on without, come what may."""

from pathlib import Path
from typing import Any

import pytest

from byok.core.chat import ChatRequest, TextPart
from byok.core.code_query import (
    BlobNames,
    CodeContextBlock,
    CodeQuestion,
    UnknownBlobs,
)
from byok.core.errors import NotReady
from byok.protocols.augment.chat_job import ChatLines, chat_lines
from byok.protocols.augment.reply_job import ReplyFacts, ReplyJob
from byok.search.index.types import IndexOptions
from byok.search.retrieval.code_context import CodeContext
from byok.server.generate import Grounding
from byok.settings.sections import ChatSettings
from tests.fakes.jobs import PLAIN, STATE

BODY = {"message": "Where?", "blobs": {"added_blobs": ["a" * 64]}}


class Context(CodeContext):
    """Answers what it is told to; `asked` is how often it was asked for what."""

    def __init__(self, folder: Path, found: CodeContextBlock | Exception) -> None:
        super().__init__(folder / "data.db", folder / "index", IndexOptions())
        self.asked: list[Any] = []
        self._found = found

    async def passages(self, wanted: CodeQuestion, length: int) -> CodeContextBlock:
        self.asked.append((wanted.question, length))
        if isinstance(self._found, Exception):
            raise self._found
        return self._found

    async def find_unknown(self, names: BlobNames) -> UnknownBlobs:
        self.asked.append(names)
        if isinstance(self._found, Exception):
            raise self._found
        return UnknownBlobs(("b",), checkpoint_found=False)


async def run(work: Any) -> Any:
    return work()


async def grounded(
    context: Context, body: Any = BODY, *, keeps_uploads: bool = True, **settings: Any
) -> tuple[ChatRequest, ReplyFacts]:
    job: ReplyJob[ChatLines] = chat_lines(body, PLAIN, STATE)
    grounding = Grounding(
        context, ChatSettings(**settings), keeps_uploads=keeps_uploads
    )
    return await grounding.ground(job, body, "r", run)


@pytest.mark.parametrize(
    ("error", "level"),
    [(NotReady("The disk is full."), "WARNING"), (KeyError("fault"), "ERROR")],
)
async def test_grounding_failure_is_logged_once_and_the_chat_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception, level: str
) -> None:
    chat, facts = await grounded(Context(tmp_path, error))
    assert chat.messages[-1].parts == (TextPart("Where?"),)
    assert facts == ReplyFacts("r")
    [record] = caplog.records
    assert record.levelname == level
    assert record.getMessage().startswith("a chat continues without code")
    assert (record.exc_info is not None) == (level == "ERROR")


@pytest.mark.parametrize("error", [NotReady("The disk is full."), KeyError("fault")])
async def test_grounding_calls_nothing_unknown_where_blobs_cannot_be_looked_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    _, facts = await grounded(Context(tmp_path, error), {**BODY, "mode": "AGENT"})
    assert facts == ReplyFacts("r")
    [record] = caplog.records
    assert record.getMessage().startswith("nothing is said of blobs")
