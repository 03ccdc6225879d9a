"""A person who gives scripted answers to the questions of a command."""

import click

from byok.cli.asker import Asker


class ScriptedPerson(Asker):
    """Answers in order; None stands for Ctrl-C. `asked` are the questions."""

    def __init__(self, *answers: str | bool | None) -> None:
        super().__init__(is_person=True)
        self.asked: list[str] = []
        self._answers = [*answers]

    def _next(self, question: str) -> str | bool:
        self.asked.append(question)
        answer = self._answers.pop(0)
        if answer is None:
            raise click.Abort
        return answer

    def confirm(self, question: str, *, default: bool = True) -> bool:
        answer = self._next(question)
        assert isinstance(answer, bool)
        return answer

    def text(self, question: str, default: str) -> str:
        return str(self._next(question)) or default

    def secret(self, question: str) -> str:
        return str(self._next(question))
