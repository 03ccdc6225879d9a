"""Remove secrets from every text that is stored, logged or shown."""

import base64
import re
from collections.abc import Iterable
from urllib.parse import quote

MARK = "[redacted]"

# Patterns of well-known keys. Before each stand words of which every such key contains
# one: to look for these first is far cheaper. A match is replaced as a whole.
_SHAPES = (
    ("sk-", r"c?sk-[\w\-]{16,}"),  # OpenAI, Anthropic, OpenRouter, Cerebras
    ("hf_ gsk_ xai- pplx- r8_ fw_",  # Hugging Face, Groq, xAI, Perplexity, Replicate
     r"(?:hf_|gsk_|xai-|pplx-|r8_|fw_)[A-Za-z0-9]{20,}"),
    ("nvapi- tvly- pcsk_ lsv2_", r"(?:nvapi-|tvly-|pcsk_|lsv2_)[\w\-]{20,}"),
    ("AIza", r"AIza[\w\-]{30,}"),  # Google
    ("ya29. GOCSPX-", r"(?:ya29\.|GOCSPX-)[\w\-]{20,}"),  # Google
    ("ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{20,}"),  # GitHub
    ("_pat_", r"(?:github|dckr)_pat_[\w\-]{20,}"),  # GitHub, Docker
    ("glpat- gldt- glrt- glptt- glcbt- glsoat-",  # GitLab
     r"gl(?:pat|dt|rt|ptt|cbt|soat)-[\w\-]{16,}(?:\.\w+)*"),
    ("k_live_ k_test_", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),  # Stripe
    ("whsec_", r"whsec_[A-Za-z0-9+/]{20,}=*"),  # Stripe, Svix
    ("xox xapp-", r"(?:xox[a-z]|xapp)[\-.][A-Za-z0-9.\-]{10,}"),  # Slack
    ("hooks.slack", r"hooks\.slack\.com/services/[A-Za-z0-9/]{20,}"),
    ("api/webhooks/", r"discord(?:app)?\.com/api/webhooks/\d{10,20}/[\w\-]{40,}"),
    ("AKIA ASIA", r"A[KS]IA[0-9A-Z]{16}\b"),  # AWS
    ("AccountKey=", r"AccountKey=[A-Za-z0-9+/]{40,}=*"),  # Azure
    ("byok_ui_", r"byok_ui_[\w\-]{16,}"),  # byok's own, of the dashboard
    ("byok_owner_", r"byok_owner_[0-9a-f]{64}"),  # and of its commands
    ("npm_ rubygems_", r"(?:npm|rubygems)_[A-Za-z0-9]{30,}"),
    ("pypi-AgE", r"pypi-AgE[\w\-]{40,}"),
    ("SG.", r"SG\.[\w\-]{16,}\.[\w\-]{16,}"),  # SendGrid
    ("_v1_", r"(?:do[opr]|tgp)_v1_[\w\-]{40,}"),  # DigitalOcean, Together
    ("shp dapi", r"(?:shp(?:at|ss|ca|pa)_|dapi)[0-9a-f]{32}\b"),  # Shopify, Databricks
    ("sq0", r"sq0(?:at|cs)p-[\w\-]{20,}"),  # Square
    ("hvs. hvb.", r"hv[sb]\.[\w\-]{24,}"),  # Vault
    ("glsa_ glc_ sntry", r"(?:glsa_|glc_|sntry[su]_)[\w+/=\-]{30,}"),  # Grafana, Sentry
    ("lin_api_ ntn_ sbp_", r"(?:lin_api_|ntn_|sbp_)[A-Za-z0-9]{30,}"),  # Linear, Notion
    ("sb_secret_ figd_ ATATT3", r"(?:sb_secret_|figd_|ATATT3)[\w\-]{24,}"),
    ("AGE-SECRET", r"AGE-SECRET-KEY-1[0-9A-Z]{40,}"),
)  # fmt: skip
PATTERNS = re.compile(
    rf"""
      \b(?:{"|".join(shape for _, shape in _SHAPES)})
    | (?<![\w\-])eyJ[\w\-]{{8,4096}}\.[\w\-]{{8,8192}}\.[\w\-]{{8,2048}}  # JWT
    | (?<=://)[^/\s:@]*:[^/\s@]+(?=@)                 # user and password in a URL
    | (?<=[Bb]asic[ ])[A-Za-z0-9+/=]{{8,}}             # HTTP basic credentials
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY(?:[ ]BLOCK)?-----
      .*?(?:-----END[ ][A-Z ]*-----|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
# A secret behind a name that announces one: the name stays, the value is removed.
_NAMED_SECRET = re.compile(
    r"((?:bearer\s+|[?&\"']?(?:api[_-]?key|access[_-]?token|token|secret|password|key)"
    r"[\"']?\s*[=:]\s*[\"']?))(?=[^\s\"'&,;]{8})([A-Za-z0-9_\-.~+/=%]{8,})",
    re.IGNORECASE,
)
_KEY_PREFIXES = ("sk-", "csk-", "gsk_", "nvapi-", "AIza")  # no name begins like these
HINTS = (
    *(word for words, _ in _SHAPES for word in words.split()),
    *("eyJ", "://", "asic ", "-----BEGIN "),
)
_TELLING_WORDS = ("bearer", "key", "token", "secret", "password")
_MIN_CHARS = 8
_JSON_LEVELS = 3  # of nested JSON, such as the arguments of a call in a captured body


def looks_like_key(word: str) -> bool:
    """Tell whether a word has the form of a key, or of the beginning of one."""
    return word.startswith(_KEY_PREFIXES) or PATTERNS.search(word) is not None


class Redactor:
    """Removes known secrets, their usual encodings, and texts that look like one."""

    def __init__(self) -> None:
        self._forms: list[str] = []

    def add(self, secret: str) -> None:
        """Add a known secret; one of less than eight characters is ignored."""
        if len(secret) < _MIN_CHARS:
            return
        raw = secret.encode()
        encoded = base64.b64encode(raw).decode()
        forms = {
            secret,
            quote(secret),
            quote(secret, safe=""),
            encoded,
            encoded.rstrip("="),
            base64.urlsafe_b64encode(raw).decode().rstrip("="),
            raw.hex(),
            raw.hex().upper(),
        }
        written = {secret}
        for _ in range(_JSON_LEVELS):
            quoted = (w.replace("\\", "\\\\").replace('"', '\\"') for w in written)
            written = {form for w in quoted for form in (w, w.replace("/", "\\/"))}
            forms |= written
        self._forms = sorted({*self._forms, *forms}, key=len, reverse=True)

    def remove_known(self, text: str) -> str:
        """Return the text without the secrets that were added, in any form."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MARK)
        return text

    def find_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of secrets, as (begin, end), unordered; they may overlap.

        A known secret that is cut off by the end of the text is found if at least its
        first eight characters are there.
        """
        spans = [span for form in self._forms for span in _find_all(form, text)]
        spans += [cut for form in self._forms if (cut := _find_cut_end(form, text))]
        if _has_any(HINTS, text):
            spans += [match.span() for match in PATTERNS.finditer(text)]
        folded = text.casefold()
        if _has_any(_TELLING_WORDS, folded):
            spans += [match.span(2) for match in _NAMED_SECRET.finditer(text)]
        return spans

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        text = self.remove_known(text)
        if _has_any(HINTS, text):
            text = PATTERNS.sub(MARK, text)
        folded = text.casefold()
        if _has_any(_TELLING_WORDS, folded):
            text = _NAMED_SECRET.sub(rf"\1{MARK}", text)
        return text


def _has_any(words: Iterable[str], text: str) -> bool:
    return any(map(text.__contains__, words))  # twice as fast as with a generator


def _find_all(form: str, text: str) -> list[tuple[int, int]]:
    places, position = [], text.find(form)
    while position >= 0:
        places.append((position, position + len(form)))
        position = text.find(form, position + len(form))
    return places


def _find_cut_end(form: str, text: str) -> tuple[int, int] | None:
    """Return the span at the end of a text that is the beginning of a secret."""
    for size in range(min(len(form) - 1, len(text)), _MIN_CHARS - 1, -1):
        if text.endswith(form[:size]):
            return len(text) - size, len(text)
    return None
