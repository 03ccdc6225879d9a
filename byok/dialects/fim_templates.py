"""FIM as data: modes, and the templates of model families.

The special tokens are those that the makers publish: the model cards and tokenizers of
Qwen2.5-Coder, CodeLlama, StarCoder, DeepSeek-Coder, Codestral, Granite Code, CodeGemma.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from msgspec import Struct

from byok.dialects.presets import OPENAI_COMPATIBLE, preset_of

_FIM = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")
_BARRED = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
_DEEPSEEK = ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>")


class FimMode(StrEnum):
    """A fill-in-the-middle (FIM) interface: how a model receives the code around a gap.

    INFILL is llama.cpp's own endpoint, FIM Mistral's. SUFFIX is the field of that name
    next to the prompt, TEMPLATE a raw prompt with the model's special tokens, CHAT an
    ordinary chat. EDIT is Inception's endpoint, which is for next edits only.
    """

    INFILL = "infill"
    SUFFIX = "suffix"
    FIM = "fim"
    TEMPLATE = "template"
    CHAT = "chat"
    EDIT = "edit"


class FimProfile(Struct, frozen=True):
    """The modes of one vendor, the best first.

    `suffix_path` is the path of the mode SUFFIX.
    """

    modes: tuple[FimMode, ...] = (FimMode.CHAT,)
    suffix_path: str = "completions"


@dataclass(frozen=True)
class FimTemplate:
    """The FIM prompt of a model family; `text` contains {prefix} and {suffix}.

    `stop` are the tokens that end an answer, `marks` the other special tokens, which
    code in the prompt must not contain.
    """

    names: str  # a regular expression, for the name in lower case
    text: str
    marks: tuple[str, ...]
    stop: tuple[str, ...]

    def prompt(self, prefix: str, suffix: str) -> str:
        """Return a prompt; special tokens in the code are broken by a space."""
        return self.text.format(prefix=self.inert(prefix), suffix=self.inert(suffix))

    def inert(self, code: str) -> str:
        """Return the code with a space inside of each special token."""
        return self._marks_pattern.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", code)

    @cached_property
    def _marks_pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, (*self.marks, *self.stop))))


# The modes of Ollama's own API.
OLLAMA_MODES: tuple[FimMode, ...] = (FimMode.SUFFIX, FimMode.TEMPLATE, FimMode.CHAT)
TEMPLATES: tuple[FimTemplate, ...] = (
    FimTemplate(
        r"qwen[\d.]*-?coder",
        "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        (*_BARRED, "<|fim_pad|>", "<|repo_name|>", "<|im_start|>"),
        ("<|endoftext|>", "<|file_sep|>", "<|im_end|>"),
    ),
    FimTemplate(
        # the larger models and those for Python only were not trained to fill gaps
        r"code-?llama(?!.*(?:python|34b|70b))",
        "<PRE> {prefix} <SUF>{suffix} <MID>",
        ("<PRE>", "<SUF>", "<MID>", "<s>"),
        ("<EOT>", "</s>"),
    ),
    FimTemplate(
        r"star-?coder|granite.*code|codeqwen",
        "<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>",
        (*_FIM, "<fim_pad>", "<filename>", "<reponame>", "<repo_name>"),
        ("<|endoftext|>", "<file_sep>"),
    ),
    FimTemplate(
        r"deepseek-?coder",
        "<｜fim▁begin｜>{prefix}<｜fim▁hole｜>{suffix}<｜fim▁end｜>",
        (*_DEEPSEEK, "<｜begin▁of▁sentence｜>"),
        ("<｜end▁of▁sentence｜>", "<|EOT|>"),
    ),
    FimTemplate(
        r"codestral(?!.*mamba)",
        "[SUFFIX]{suffix}[PREFIX]{prefix}",
        ("[SUFFIX]", "[PREFIX]", "[MIDDLE]", "[INST]", "[/INST]", "<s>"),
        ("</s>",),
    ),
    FimTemplate(
        r"codegemma",
        "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        (*_BARRED, "<start_of_turn>", "<bos>"),
        ("<|file_separator|>", "<eos>", "<end_of_turn>"),
    ),
)


def template_of(model: str) -> FimTemplate | None:
    """Return the template of a model, found by its name, or None."""
    name = model.lower()
    return next((row for row in TEMPLATES if re.search(row.names, name)), None)


def fim_profile_of(vendor: str) -> FimProfile:
    """Return a vendor's profile; every vendor has the mode CHAT."""
    preset = preset_of(vendor)
    modes = ("template",) if vendor == OPENAI_COMPATIBLE else preset.fim
    return FimProfile((*map(FimMode, modes), FimMode.CHAT), preset.suffix_path)
