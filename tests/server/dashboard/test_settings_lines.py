"""The lines that change are those that are written; what is hidden stays so."""

import difflib

import pytest

from byok.server.dashboard.settings_page import changed_lines

SHOWN = [
    "[chat]",
    "temperature = 0.5 # not too wild",
    'effort = "low"',
    "[caps]",
    "usd_per_day = 5",
    "[routing.fallback]",
    "chat = [",
    '  "byok:a:b", # the best',
    "]",
    "[upstreams.a]",
    'base_url = "https://a.example/v1"',
    'system_prompt = """',
    "headers = none of them",
    '"""',
]
SECRET = "canary"


def redact(text: str) -> str:
    return text.replace("sk-live", "[redacted]")


def test_lines_of_settings_are_shown_as_they_are_written() -> None:
    text = "\n".join(SHOWN) + "\n"
    gone = [{"sign": "-", "line": line} for line in SHOWN]
    come = [{"sign": "+", "line": line} for line in SHOWN]
    assert changed_lines(text.encode(), b"", redact) == gone
    assert changed_lines(b"", text.encode(), redact) == come


def test_only_what_differs_is_given() -> None:
    old = "\n".join(SHOWN) + "\n"
    new = old.replace("0.5", "1").replace('"low"', '"high"').replace("= 5", "= 6")
    due = difflib.unified_diff(old.split("\n"), new.split("\n"), n=0, lineterm="")
    assert [
        row["sign"] + row["line"]
        for row in changed_lines(old.encode(), new.encode(), redact)
    ] == [line for line in [*due][2:] if not line.startswith("@@")]


@pytest.mark.parametrize(
    "line",
    [
        f"[upstreams.a]\nheaders = {{ X = '{SECRET}' }}",
        f"[upstreams.a.headers]\nmodel = '{SECRET}'",
        f"[upstreams]\na.query.k = '{SECRET}'",
        f"[upstreams]\na = {{ model = 'm', \"headers\" = {{ X = '{SECRET}' }} }}",
        f'[upstreams.a]\napi_key_cmd = ["pass",\n"model = 1 {SECRET}"]',
        f'[upstreams.a]\nextra_body.x = """\nmodel = "{SECRET}"\n"""',
        f"[upstreams.a]\nbase_url = 'https://me:{SECRET}@a.example/v1'",
        f"[upstreams.a]\nmodels = ['x://me:{SECRET}@a.example/v1']",
        f"[upstreams.a]\nmodel = 'sk-live-{SECRET}'",
        f"[network]\nproxy = 'http://{SECRET}.example:3128'",
        f"[[upstreams.a]]\nmodel = '{SECRET}'",
        f"# temperature = {SECRET}",
    ],
)
def test_what_the_page_hides_is_in_no_line(line: str) -> None:
    text = f"{line}\n".encode()
    kept = b"[chat]\ntop_p = 1\n"
    assert SECRET not in str(changed_lines(kept + text, kept, redact))
    assert SECRET not in str(changed_lines(kept, kept + text, redact))
