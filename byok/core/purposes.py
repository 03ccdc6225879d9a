"""The purposes for which models are asked, and what every summary must contain."""

from enum import StrEnum


class Purpose(StrEnum):
    """What a model is used for; users may choose a model for each purpose."""

    CHAT = "chat"
    COMPLETION = "completion"
    EDIT = "edit"
    COMMIT = "commit"
    TITLE = "title"
    SUMMARY = "summary"
    ENHANCE = "enhance"

    @property
    def is_small(self) -> bool:
        """Whether a small model does it well."""
        return self not in (Purpose.CHAT, Purpose.COMPLETION, Purpose.EDIT)


# What a summary of a conversation must hold, whoever asks a model for it.
SUMMARY_HOLDS = (
    "Keep what the user wants, with every condition and preference; what was decided "
    "and why; the files that were read or changed, by their paths, and what is in them "
    "that matters; the commands that ran and how they ended; errors and how they were "
    "solved; what is done and what is still to do, in that order. Keep names, paths, "
    "numbers and error messages as they are."
)
