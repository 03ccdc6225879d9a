"""A small model names words of code; whatever it does, a search has its answer."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from byok.core.errors import UpstreamRefused
from byok.core.prompts.prompt_set import PromptSet, shipped_prompts
from byok.core.prompts.template import parse_template
from byok.search.retrieval.model_words import ModelWords, read_words
from byok.search.retrieval.query import Query, parse_query

CHINESE = "会话是如何签名的"
ENGLISH = "throw old entries away"


class Asked:
    """A model by a function, and a clock."""

    def __init__(
        self,
        answer: Callable[[str], str] = lambda _: "session cookie_signer sign",
        seconds: float = 5.0,
        prompts: PromptSet | None = None,
    ) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.told: list[str] = []
        self.now = 0.0
        self.free = asyncio.Event()
        self.free.set()
        self.is_said = False
        self.words = ModelWords(
            self._ask,
            prompts or shipped_prompts(),
            seconds=seconds,
            clock=lambda: self.now,
        )

    async def _ask(
        self, instruction: str, text: str, *, seconds: float, longest: int
    ) -> str:
        self.asked.append(text)
        self.told.append(instruction)
        await self.free.wait()
        return self.answer(text)

    async def until_answered(self) -> None:
        self.free.set()
        for _ in range(5):
            await asyncio.sleep(0)

    async def __call__(self, text: str) -> Query:
        return await self.words(text, parse_query(text), lambda: self.is_said)


async def test_words_of_the_model_join_those_of_the_tables() -> None:
    asked = Asked()
    query, plain = await asked(CHINESE), parse_query(CHINESE)
    assert plain.terms.keys() < query.terms.keys()
    assert query.terms["=cookiesigner"] == query.terms["session"] == 0.8
    assert "cooki" in query.parts


async def test_everyday_english_gets_words_that_weigh_less_than_its_own() -> None:
    asked = Asked()
    query = await asked(ENGLISH)
    assert query.terms["=cookiesigner"] == query.terms["session"] == 0.5
    assert asked.asked == [ENGLISH]


async def test_english_that_code_says_is_asked_as_it_stands() -> None:
    asked = Asked()
    asked.is_said = True
    assert await asked(ENGLISH) == parse_query(ENGLISH)
    await asked(CHINESE)
    assert asked.asked == [CHINESE]


async def test_users_own_prompt_is_told() -> None:
    own = {"translate": parse_template("{{shipped}}\nPrefer nouns.")}
    asked = Asked(prompts=PromptSet(shipped_prompts().templates, own))
    await asked(CHINESE)
    shipped = shipped_prompts().render("translate").text
    assert asked.told == [f"{shipped}\nPrefer nouns."]


@pytest.mark.parametrize(
    "text",
    [
        "where does sign_cookie throw old entries away",
        "session",
        "RouterGroup",
        "explain what this function does",
        "O(n²) naïve λ comparison",
        "你好",
        "",
    ],
)
async def test_model_is_not_asked_about_names_or_nothing(text: str) -> None:
    asked = Asked()
    assert await asked(text) == parse_query(text)
    assert asked.asked == []


async def test_late_answer_counts_for_the_next_search() -> None:
    asked = Asked(seconds=0)
    asked.free.clear()
    assert await asked(CHINESE) == parse_query(CHINESE)
    assert await asked(CHINESE) == parse_query(CHINESE)
    await asked.until_answered()
    assert "=cookiesigner" in (await asked(CHINESE)).terms
    assert len(asked.asked) == 1


async def test_few_questions_are_open_at_once() -> None:
    asked = Asked(seconds=0)
    asked.free.clear()
    for n in range(10):
        await asked(f"{CHINESE} {n}{n}")
    assert len(asked.asked) == 4
    await asked.until_answered()


@pytest.mark.parametrize("failure", ["refused", "", "没有", "🙂 1 2 3"])
async def test_failing_model_is_left_alone_for_a_while(
    failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: str) -> str:
        if failure == "refused":
            raise UpstreamRefused("no.", upstream="box")
        return failure

    asked = Asked(fail)
    with caplog.at_level(logging.WARNING):
        assert await asked(CHINESE) == parse_query(CHINESE)
        assert await asked("路由注册") == parse_query("路由注册")
    assert len(asked.asked) == 1
    assert len(caplog.records) == 1
    assert CHINESE not in caplog.text
    asked.now += 61
    await asked(CHINESE)
    assert len(asked.asked) == 2


async def test_long_question_is_cut() -> None:
    asked = Asked()
    await asked("路由 " * 5_000)
    assert len(asked.asked[0]) <= 1_000


async def test_keys_in_a_question_are_not_sent() -> None:
    asked = Asked()
    key = "sk-proj-" + "Ab3dEf6hIj9lMn2pQr5tUv8x" * 2
    await asked(f"路由 {key}\n" + "路由 " * 320 + key)
    assert "sk-proj" not in asked.asked[0]
    assert "[redacted]" in asked.asked[0]


def test_words_are_read_in_order_and_once() -> None:
    assert read_words("1. `session`, cookie\nsession x été") == ("session", "cookie")
