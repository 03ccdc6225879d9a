"""The words that stand in a conversation where a model takes no calls or pictures."""

NO_PICTURE = "[a picture stood here; this model sees none]"
# For the system prompt, so that the model does not write such blocks itself.
ABOUT_RECORDS = (
    "Blocks headed [earlier tool call] are records of the past, "
    "not a format to imitate."
)


def call_record(name: str, arguments: str, result: str) -> str:
    """Describe a tool call of the past and its result for a message of the user."""
    return f"[earlier tool call]\n{name} {arguments}\nresult:\n{result}"
