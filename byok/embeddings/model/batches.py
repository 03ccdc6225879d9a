"""How many texts go into one request, which changes with what a model takes."""

from collections.abc import Iterator, Sequence

MOST_TEXTS = 64
MOST_TOKENS = 100_000
LONGEST_TEXT = 32_000  # characters; no known model reads more than 32,768 tokens
_LEAST_LONGEST = 200  # characters
# A question that comes while a model on this machine is busy with code waits for it.
_SLOW, _FAST = 2.0, 1.0  # seconds for a batch
_FEW = 8  # texts; smaller batches do not help
_BYTES_PER_TOKEN = 3  # code has 2.9 characters in a token (docs/RETRIEVAL.md)


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has; at least one."""
    return len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN + 1


class BatchSize:
    """The size of the next batch: at most 64 texts and 100,000 tokens.

    What a model refuses by its size is never sent again. After a timeout or a slow
    answer batches are half as large, and grow by a text with each fast answer.
    `longest` is how many characters of a text are sent.
    """

    def __init__(self) -> None:
        self.longest = LONGEST_TEXT
        self._most = MOST_TEXTS  # that the model takes
        self._now = MOST_TEXTS

    def first_of(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the first of these texts that make one request, one at least."""
        count = max(1, sum(1 for _ in self._fitting(texts)))
        return texts[:count]

    def _fitting(self, texts: Sequence[str]) -> Iterator[str]:
        tokens = 0
        for text in texts[: self._now]:
            tokens += estimate_tokens(text)
            if tokens > MOST_TOKENS:
                return
            yield text

    def note_answer(self, count: int, seconds: float) -> None:
        """Note that a batch of this many texts was answered, and how fast."""
        if seconds < _FAST:
            self._now = min(self._now + 1, self._most)
        elif seconds > _SLOW and count > _FEW:
            self._now = max(_FEW, min(self._now, count // 2))

    def note_timeout(self, count: int) -> None:
        """Note that a batch of this many texts was not answered in time."""
        self._now = max(1, min(self._now, count // 2))

    def note_refusal(self, count: int) -> None:
        """Note that a batch of this many texts was refused, and both halves taken."""
        self._most = max(1, min(self._most, (count + 1) // 2))
        self._now = min(self._now, self._most)

    def note_too_long(self, length: int) -> None:
        """Note that a text of this many characters was too long, and its half was not.

        Texts have more or fewer tokens, so the next ones keep three quarters of that.
        """
        self.longest = max(_LEAST_LONGEST, min(self.longest, length * 3 // 4))
