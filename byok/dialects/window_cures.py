"""What a user can do about a window that is too small, by the server's vendor."""

from byok.dialects.presets import OLLAMA

_CURES = {
    "ollama": (
        'Set type = "ollama" and no dialect for this upstream, so that byok chooses '
        "the window, or start Ollama with OLLAMA_CONTEXT_LENGTH=32768."
    ),
    "lmstudio": "Load the model with a longer context length in LM Studio.",
    "llamacpp": "Start llama-server with a larger --ctx-size.",
    "vllm": "Start vLLM with a larger --max-model-len.",
    "sglang": "Start SGLang with a larger --context-length.",
}
_OWN = "Raise num_ctx of this upstream, or choose a model with a larger window."
_ANY = (
    "Raise the context length of its server, or set context_window for this upstream."
)


def window_cure(vendor: str, dialect: str) -> str:
    """Return the sentence for a vendor's server that is asked in a dialect."""
    return _OWN if dialect == OLLAMA else _CURES.get(vendor, _ANY)
