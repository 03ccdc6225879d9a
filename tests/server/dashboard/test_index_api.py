"""What the panels of the index and of code search ask for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.fakes.daemon import running
from tests.fakes.dashboard import Page, signed_in
from tests.fakes.engines import written
from tests.fakes.patience import PATIENCE
from tests.fakes.project import make_project

KEY = "sk-proj-Zk39fjQ0a8Zr1LmN7pQ2sT5uV8wX0yZ3"


@asynccontextmanager
async def searching(*roots: Path) -> AsyncIterator[Page]:
    """Open a session of a daemon that has indexed these folders."""
    async with running(upstream="demo") as editor:
        page = await signed_in(editor)
        for root in roots:
            await page.call("index-add", {"root": str(root)})
        async with asyncio.timeout(PATIENCE):
            while not is_complete(await page.call("index"), len(roots)):
                await asyncio.sleep(0.05)
        yield page


def is_complete(status: dict[str, Any], count: int) -> bool:
    """Tell whether so many folders are indexed."""
    spaces = status["workspaces"]
    done = all(space["phase"] == "complete" for space in spaces)
    return len(spaces) == count and done and not status["waiting"]


async def test_a_search_gives_files_of_a_folder_with_scores_and_lines_that_match(
    tmp_path: Path,
) -> None:
    root = make_project(tmp_path / "project")
    written(root, {"src/key.py": f'total_price_key = "{KEY}"\n'})
    other = written(tmp_path / "other", {"b.py": "def total_price():\n    pass\n"})
    async with searching(root, other) as page:
        body = {"query": "total price", "workspaces": [str(root)], "limit": 2}
        found = await page.call("search", body)
        raw = await page.raw("search", body)
        there = await page.call("search", {**body, "workspaces": [str(other)]})
    assert {hit["path"] for hit in there["hits"]} == {"b.py"}
    assert len(found["hits"]) == 2
    assert found["hits"][0]["score"] >= found["hits"][1]["score"] > 0
    assert found["seconds"] > 0
    assert [one["term"] for one in found["terms"]][:2] == ["total", "price"]
    matching = [
        line["text"] for hit in found["hits"] for line in hit["lines"] if line["match"]
    ]
    assert any("total_price" in text for text in matching)
    assert KEY.encode() not in raw.raw


async def test_the_text_of_an_agent_is_the_answer_of_its_tool(tmp_path: Path) -> None:
    root = make_project(tmp_path / "project")
    async with searching(root) as page:
        body = {"query": "preheat the oven", "workspaces": [str(root)]}
        shown = await page.call("retrieval", body)
        short = await page.call("retrieval", {**body, "length": 200})
        asked = {"information_request": body["query"], "workspaces": [str(root)]}
        tool = await page.editor.post("/agents/codebase-retrieval", asked)
    assert shown["text"] == tool.json["formatted_retrieval"]
    assert "preheat" in shown["text"]
    assert len(short["text"]) <= 200
    assert shown["seconds"] >= 0


async def test_skipped_files_come_with_their_reasons_and_pages(tmp_path: Path) -> None:
    logs = {f"{n}.log": "x" for n in range(3)}
    files = {**logs, ".gitignore": "*.log\n", "e.bin": "\0", "a.py": "x = 1\n"}
    root = written(tmp_path / "project", files)
    async with searching(root) as page:
        body = {"root": str(root), "reason": "ignored", "offset": 2, "limit": 2}
        found = await page.call("index-skipped", body)
    counts = {row["reason"]: row["count"] for row in found["reasons"]}
    assert counts == {"ignored": 3, "binary": 1}
    assert found["files"] == [{"path": "2.log", "reason": "ignored"}]
    assert found["whole"]


async def test_a_skipped_file_is_told_if_a_question_has_the_words_of_its_name(
    tmp_path: Path,
) -> None:
    files = {"shop/mailLog.log": "x", ".env": "A=1", "dist/a.py": "", "p2.log": "x"}
    root = written(tmp_path / "project", {**files, ".gitignore": "*.log\ndist/\n"})
    other = written(tmp_path / "other", {"mail.log": "x", ".gitignore": "*.log\n"})
    told = {}
    async with searching(root, other) as page:
        for asked in (
            *("Where are mails logged?", "the .env file"),
            *("dist", "who mails", "what p2.log is"),
        ):
            body = {"query": asked, "workspaces": [str(root)]}
            found = (await page.call("search-skipped", body))["files"]
            told[asked] = {file["path"]: file["reason"] for file in found}
        both = await page.call("search-skipped", {"query": "mails"})
        named = await page.call("index-why", {"path": "mailLog.log"})
    assert told == {
        "Where are mails logged?": {"shop/mailLog.log": "ignored"},
        "the .env file": {".env": "secret"},
        "dist": {"dist/": "ignored"},
        "what p2.log is": {"p2.log": "ignored"},
        "who mails": {},
    }
    assert [one["file"] for one in both["files"]] == [str(other / "mail.log")]
    assert named["path"] == str(root / "shop/mailLog.log")
    assert named["rule"] == "*.log in .gitignore, line 1"


async def test_a_path_may_be_whole_or_begin_at_or_in_any_folder(tmp_path: Path) -> None:
    one = written(tmp_path / "one", {"one/a.py": "x = 1\n", "b.py": "y = 2\n"})
    written(one, {"x/d.py": "", "y/d.py": "", ".gitignore": "y/d.py\n"})
    two = written(tmp_path / "two", {"c.py": "z = 3\n"})
    paths = ("b.py", "one/b.py", "one/a.py", "one/one/a.py", "c.py", str(two / "c.py"))
    async with searching(one, two) as page:
        found = [await page.call("index-why", {"path": path}) for path in paths]
        gone = await page.call("index-why", {"path": "two/.env"})
        bare = await page.call("index-why", {"path": "a.py"})
        several = await page.call("index-why", {"path": "d.py"})
        page.language = "zh"
        noise = await page.call("index-why", {"path": "two/node_modules/x.js"})
    a, b, c = str(one / "one/a.py"), str(one / "b.py"), str(two / "c.py")
    assert [row["path"] for row in found] == [b, b, a, a, c, c]
    assert {(row["exists"], row["what"]) for row in found} == {(True, "indexed")}
    assert (bare["path"], bare["exists"], bare["alike"]) == (a, True, [])
    assert several["alike"] == [str(one / "x/d.py"), str(one / "y/d.py")]
    assert (gone["path"], gone["exists"]) == (str(two / ".env"), False)
    assert noise["rule"].startswith("node_modules/，")
    assert "!/node_modules/" in noise["advice"]
