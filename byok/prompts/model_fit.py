"""Which variants of prompts suit a model."""

import re
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from byok.prompts.kinds import FAMILIES, REASONING, SHORT, SMALL

SMALL_WINDOW = 8192  # tokens; below, the whole texts take more than an eighth of it
# "7b", "1.7b", "e4b", "135m" in the name: the number of parameters, as hosts write it.
_SIZE = re.compile(
    r"(?<![a-z\d.])e?(\d{1,4}(?:\.\d+)?)([bm])(?![a-z\d])", re.IGNORECASE
)
_FEW = 10e9  # parameters
_FEWEST = 20e6  # of a model that can talk; "1m" is the length of a context window
_UNITS = {"b": 1e9, "m": 1e6}
_MAX_KEPT = 1000  # conversations
_LONGEST_KEY = 1000  # characters of the ids of a conversation and a model


class ModelFit(NamedTuple):
    """What prompts must suit.

    Attributes:
        variants: the variants of prompts for the model, the best first.
        window: its context window in tokens, 0 if that is unknown.
    """

    variants: tuple[str, ...] = ()
    window: int = 0

    @property
    def is_small(self) -> bool:
        """Whether the model or its window is small."""
        return SMALL in self.variants or SHORT in self.variants


def find_fit(model: str, *, family: str, thinks: bool, window: int) -> ModelFit:
    """Return what suits a model of this name.

    `family` is the name of its family, or ""; `thinks` says that it reasons by itself;
    `window` is its context window in tokens, 0 if that is unknown.
    """
    small = has_few_parameters(model)
    found = {
        SHORT: 0 < window < SMALL_WINDOW,
        SMALL: small,
        family: family in FAMILIES,
        REASONING: thinks and not small,
    }
    return ModelFit(tuple(name for name, suits in found.items() if suits), window)


def has_few_parameters(model: str) -> bool:
    """Tell whether a model's name says that it has fewer than 10 billion parameters."""
    sizes = [float(n) * _UNITS[unit.lower()] for n, unit in _SIZE.findall(model)]
    return bool(sizes) and _FEWEST <= max(sizes) < _FEW


class FitMemory:
    """Keeps what suited a model when a conversation began; for use on one thread.

    What is known of a model may grow while it answers: its list arrives, a local server
    tells how it was loaded. A prompt that changed with it would miss the prompt cache.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], ModelFit] = OrderedDict()

    def recall(
        self, conversation: str, model_id: str, find: Callable[[], ModelFit]
    ) -> ModelFit:
        """Return what suited the model in the first turn; in that one, `find` it.

        Nothing is kept of requests without a conversation, or with endless ids.
        """
        if not conversation or len(conversation) + len(model_id) > _LONGEST_KEY:
            return find()
        key = (conversation, model_id)
        fit = self._kept.pop(key, None) or find()
        self._kept[key] = fit
        if len(self._kept) > _MAX_KEPT:
            self._kept.popitem(last=False)
        return fit
