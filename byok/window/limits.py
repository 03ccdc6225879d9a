"""What is known of one model's window, and how it is learned.

Three sources tell how many tokens fit: the user, the server, and refusals. The last
are never wrong, but not every upstream names a number in them. How many bytes a
token has is learned from the counts of answers.
"""

from dataclasses import dataclass

BYTES_A_TOKEN = 3.5  # until an answer tells
_FEWEST, _MOST = 1.0, 8.0
_MOST_A_BYTE = 4  # tokens; a larger count is of more than this prompt, or a lie
_TELLING = 500  # tokens; a shorter prompt is mostly the template's own words
_RISE = 0.3
_MARGIN = 0.95  # of the room, since an estimate may be wrong
_ANSWER = 4096  # tokens kept for an answer of unknown length
_GUESS = 0.7  # of a prompt that was too long, where no number is named
_SMALLEST = 2048  # tokens; no guess goes below
_GROWTH = 1.25  # of a guess that a prompt of half of it did not disprove


@dataclass(slots=True)
class WindowLimits:
    """One model's window in tokens, and its bytes a token.

    `configured` is the user's word, `learned` what a refusal taught; 0 is unknown.
    `answer` are tokens that refusals showed to be kept for answers. Where `guessed`, no
    refusal named the window: it is tried out upwards again as answers come.
    """

    configured: int = 0
    learned: int = 0
    ratio: float = BYTES_A_TOKEN
    answer: int = 0
    guessed: bool = False

    def window(self, told: int = 0) -> int:
        """Return the window, 0 where unknown; `told` is what the server says."""
        if self.configured and self.learned:
            return min(self.configured, self.learned)
        return self.configured or self.learned or told

    def room(self, told: int = 0, max_tokens: int | None = None) -> int:
        """Return how heavy a prompt may be, in bytes; 0 where that is unknown."""
        window = self.window(told)
        answer = max(max_tokens or min(_ANSWER, window // 8), self.answer)
        tokens = window - min(answer, window // 2)
        return int(tokens * _MARGIN * self.ratio)

    def learn_from_count(self, weight: int, tokens: int) -> bool:
        """Learn from a count; False where it cannot be the count of this prompt.

        The ratio falls at once and rises slowly: too small a one only costs room.
        """
        if self.guessed and 2 * weight >= self.learned * self.ratio:
            self.learned = int(self.learned * _GROWTH)
        if tokens < _TELLING or tokens > weight * _MOST_A_BYTE:
            return True
        if self.learned and tokens > self.learned:
            self.learned = tokens
        seen = weight / tokens
        if seen > _MOST:
            return False
        rise = max(0.0, seen - self.ratio) * _RISE
        self.ratio = max(_FEWEST, min(self.ratio, seen) + rise)
        return True

    def learn_from_refusal(
        self, weight: int, window: int | None, counted: int | None
    ) -> None:
        """Learn from a refusal: the window and the count that it names, if any."""
        self.guessed = not window
        if counted:
            self.ratio = min(max(weight / counted, _FEWEST), _MOST)
        if window:
            self.learned = window
            if counted:  # what is refused although it fits left too little behind it
                self.answer = max(self.answer, window - counted)
            else:  # its tokens were more than the window has, or it were no refusal
                self.ratio = max(min(self.ratio, weight / window), _FEWEST)
        else:
            self.learned = max(int(_GUESS * weight / self.ratio), _SMALLEST)
