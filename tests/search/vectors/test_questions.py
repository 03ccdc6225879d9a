import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from byok.core.errors import UpstreamTimeout
from byok.search.vectors.session import QuestionVectors
from byok.search.vectors.types import SpaceName
from tests.fakes.engines import until

if TYPE_CHECKING:
    from byok.search.vectors.types import Vectors


class _Model:
    """Makes the vector of a question once `ready` is set; fails while `failure` is."""

    host, model = "localhost:1", "fake"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.ready = asyncio.Event()
        self.ready.set()
        self.failure: UpstreamTimeout | None = None

    async def embed_documents(self, texts: Sequence[str]) -> "Vectors":
        raise NotImplementedError

    async def probe(self) -> "tuple[SpaceName, Vectors]":
        raise NotImplementedError

    async def embed_question(self, text: str) -> "Vectors":
        self.asked.append(text)
        await self.ready.wait()
        if self.failure is not None:
            raise self.failure
        return np.full((1, 2), len(text), np.float32)


async def test_a_question_is_asked_once_and_kept() -> None:
    model = _Model()
    vectors = QuestionVectors(model, kept=2)
    for question in ("a", "bb", "a", "ccc", "a", "bb"):
        found = await vectors.find(question)
        assert found is not None
        assert found[0, 0] == len(question)
    assert model.asked == ["a", "bb", "ccc", "bb"]  # the one unused longest went
    vectors.forget()
    await vectors.find("bb")
    assert model.asked[-1] == "bb"


async def test_a_vector_that_came_too_late_is_there_the_next_time() -> None:
    model = _Model()
    model.ready.clear()
    vectors = QuestionVectors(model)
    first = asyncio.ensure_future(vectors.find("a"))
    await until(lambda: model.asked == ["a"])
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    model.ready.set()
    assert await vectors.find("a") is not None
    assert model.asked == ["a"]


async def test_a_vector_of_a_model_that_was_replaced_meanwhile_is_not_kept() -> None:
    model = _Model()
    model.ready.clear()
    vectors = QuestionVectors(model)
    asked = asyncio.ensure_future(vectors.find("a"))
    await until(lambda: model.asked == ["a"])
    vectors.forget()
    model.ready.set()
    await asked
    await vectors.find("a")
    assert model.asked == ["a", "a"]


async def test_a_failure_is_noted_and_not_kept() -> None:
    model = _Model()
    vectors = QuestionVectors(model)
    model.failure = UpstreamTimeout("it slept.", upstream="zoo")
    assert await vectors.find("a") is None
    assert "it slept" in vectors.error
    model.failure = None
    assert await vectors.find("a") is not None
    assert vectors.error == ""


async def test_a_model_that_hangs_is_given_up() -> None:
    model = _Model()
    model.ready.clear()
    vectors = QuestionVectors(model, seconds=0.01)
    assert await vectors.find("a") is None
    assert "0.01 s" in vectors.error


async def test_only_so_many_questions_are_open_at_a_time() -> None:
    model = _Model()
    model.ready.clear()
    vectors = QuestionVectors(model)
    waiting = [asyncio.ensure_future(vectors.find(str(n))) for n in range(8)]
    await until(lambda: len(model.asked) == 8)
    assert await vectors.find("one more") is None
    await vectors.close()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_secrets_in_a_question_are_masked() -> None:
    model = _Model()
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    await QuestionVectors(model).find(f"why does\nit refuse {secret}")
    assert "ghp_" not in model.asked[0]
    assert model.asked[0].startswith("why does\nit refuse ")


async def test_who_waits_for_a_vector_when_asking_ends_goes_on_without_one() -> None:
    model = _Model()
    model.ready.clear()
    vectors = QuestionVectors(model)
    waiting = asyncio.ensure_future(vectors.find("a"))
    await until(lambda: model.asked == ["a"])
    await vectors.close()
    assert await waiting is None
