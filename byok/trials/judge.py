"""Whether a task is solved: the files and the last answer against what is wanted."""

from collections.abc import Mapping

from byok.trials.normal_form import NotParsed, find_meaning
from byok.trials.tasks import TrialTask


def find_fault(task: TrialTask, after: Mapping[str, str], answer: str) -> str:
    """Return why a task is not solved, "" if it is.

    `after` are the files afterwards, `answer` is the last text for the user.
    """
    for path in sorted({*task.before, *task.wanted, *after}):
        if fault := _fault_of_file(task, path, after.get(path)):
            return fault
    said = answer.lower().replace("’", "'")  # as many models write it
    for group in task.answer:
        if not any(text.lower() in said for text in group):
            return f"the answer does not say '{group[0]}'"
    return ""


def _fault_of_file(task: TrialTask, path: str, text: str | None) -> str:
    before = task.before.get(path)
    accepted = task.wanted.get(path) or (() if before is None else (before,))
    if text is None:
        return f"{path} was not made"
    if not accepted:
        return f"{path} was made, which nobody asked for"
    if text == before:
        return "" if path not in task.wanted else f"{path} was not changed"
    try:
        meaning = find_meaning(path, text)
    except NotParsed:
        return f"{path} cannot be parsed any more"
    if any(meaning == find_meaning(path, wanted) for wanted in accepted):
        return ""
    if path in task.wanted:
        return f"{path} is not as wanted"
    return f"{path} was changed, which nobody asked for"
