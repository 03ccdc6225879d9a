"""The rows of `byok prompts list`."""

from byok.cli.prompt_list import prompt_rows
from byok.prompts.own_files import PromptProblem
from byok.prompts.prompt_set import shipped_texts
from tests.fakes.prompts import prompts


def test_every_shipped_prompt_has_a_row() -> None:
    rows = [*prompt_rows({}, [])]
    assert [row.name for row in rows] == sorted(shipped_texts())
    for row in rows:
        assert (row.state, row.problems) == ("shipped", ())
        assert row.told
        assert row.tokens > 10


def test_own_and_broken_files_have_rows_of_their_own() -> None:
    own = prompts(agent__qwen="Mine.", commit="{{shipped}} Mine.").templates
    problems = [
        PromptProblem("title.md", 3, "it is wrong", "Mend it."),
        PromptProblem("title.md", 9, "it is wrong", "Mend it."),
        PromptProblem("README.txt", 0, "it is no prompt", "Move it."),
        PromptProblem("agents.md", 0, "no prompt has this name", "Rename it."),
    ]
    rows = {row.name: row for row in prompt_rows(own, problems)}
    assert rows["agent.qwen"].told == "agent modes, for models of the qwen family"
    assert (rows["agent.qwen"].state, rows["agent.qwen"].tokens) == ("your own", 2)
    assert rows["agent.small"].state == "shipped"
    shipped = {row.name: row for row in prompt_rows({}, [])}
    assert rows["commit"].tokens > shipped["commit"].tokens
    assert len(rows["title"].problems) == 2
    assert (rows["title"].tokens, rows["title"].state) == (0, "your own")
    assert [*rows][-2:] == ["README.txt", "agents.md"]
