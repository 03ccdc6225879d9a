"""Public lists of models, in the forms of those who publish them."""

from typing import Any


def models_dev(**models: Any) -> dict[str, Any]:
    """Return a list of models.dev's form, long enough to be believed."""
    text = {"input": ["text"], "output": ["text"]}
    many = {
        f"m{n}": {"limit": {"context": 9000}, "modalities": text} for n in range(200)
    }
    return {"google": {"models": many | models}}


GEM = {
    "reasoning": True,
    "reasoning_options": [
        {"type": "toggle"},
        {"type": "effort", "values": ["low", "x"]},
    ],
    "tool_call": True,
    "temperature": False,
    "modalities": {"input": ["text", "image"], "output": ["text"]},
    "limit": {"context": 1_000_000, "input": 900_000, "output": 65_536},
    "cost": {"input": 1.5, "output": 9, "cache_read": 0.15, "tiers": []},
}
