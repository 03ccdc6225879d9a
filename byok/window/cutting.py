"""Where a conversation may be cut, and what must survive a cut.

A cut lies before an assistant message. So results stay with their calls, and the
message that is put in front can be a user message, which every upstream accepts.
"""

from collections.abc import Collection, Sequence
from itertools import accumulate, pairwise

from byok.chat import ImagePart, Message, Part, Role, TextPart
from byok.truncate import fair_share, truncate_middle
from byok.window.estimate import IMAGE_WEIGHT
from byok.window.shorten import NO_IMAGE
from byok.window.summary_message import without_summary

_NEWEST = 0.25  # share of the room for the newest messages
_LEAST_TEXT = 200  # characters of each text of the user that is kept
_LAST_WORDS = 0.5  # a larger share if that includes the user's last words


def cut_points(body: Sequence[Message]) -> list[int]:
    """Return the indexes before which everything may be left out."""
    return [n for n, m in enumerate(body) if n and m.role is Role.ASSISTANT]


def newest_from(
    body: Sequence[Message], points: Sequence[int], weights: Sequence[int], room: int
) -> int:
    """Return the cut point after which nothing is changed.

    The last step always lies after it, and the user's last words too unless too much
    followed them.
    """
    behind = list(accumulate(reversed(weights), initial=0))[::-1]
    start = next((p for p in points if behind[p] <= room * _NEWEST), points[-1])
    question = question_before(body, len(body))
    last = max((p for p in points if p < question), default=points[-1])
    return min(start, last) if behind[last] <= room * _LAST_WORDS else start


def question_before(body: Sequence[Message], stop: int) -> int:
    """Return the index of the last question before `stop`, or -1."""
    return next((n for n in reversed(range(stop)) if is_question(body, n)), -1)


def is_question(body: Sequence[Message], place: int) -> bool:
    """Tell whether a user message is a question, not just text beside tool results."""
    if body[place].role is not Role.USER:
        return False
    return place == 0 or body[place - 1].role is not Role.TOOL


def task_of(
    dropped: Sequence[Message], user_texts: Collection[str], longest: int
) -> tuple[Part, ...]:
    """Return the user's last request among the dropped messages, word for word.

    What the user wrote while the agent worked on it follows: words beside tool results,
    which `user_texts` tells from the context that an editor sends there. Only very long
    texts are cut, in the middle; images are kept if there is room, and of very many
    parts the newest.
    """
    start = max(question_before(dropped, len(dropped)), 0)
    parts = list(without_summary(dropped[start])) if dropped else []
    whole = {text.strip() for text in user_texts}
    lines = {line.strip() for text in user_texts for line in text.split("\n")}
    for before, message in pairwise(dropped[start:]):
        if message.role is Role.USER and before.role is Role.TOOL:
            parts += (
                p
                for p in message.parts
                if isinstance(p, TextPart) and (said := p.text.strip())
                if said in whole
                or (
                    said.partition("\n")[0].strip() in lines  # cheap, so first
                    and any(said in text for text in user_texts)
                )
            )
    most = max(longest // _LEAST_TEXT, 2)
    parts = parts[:1] + parts[1:][-(most - 1) :]
    texts = [len(p.text) for p in parts if isinstance(p, TextPart)]
    cap = max(fair_share(texts, longest), _LEAST_TEXT)
    images = sum(isinstance(p, ImagePart) for p in parts)
    return tuple(
        TextPart(truncate_middle(p.text, cap))
        if isinstance(p, TextPart)
        else (p if images * IMAGE_WEIGHT <= longest else NO_IMAGE)
        for p in parts
    )
