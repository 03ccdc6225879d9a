"""The table of known models is written from a wheel, and stays small."""

import json
import zipfile
from pathlib import Path

from tools.known_models import MAX_BYTES, SOURCE, TABLE, main

MEMBER = "litellm/model_prices_and_context_window_backup.json"
CHAT = {"mode": "chat", "litellm_provider": "openai"}


def test_the_table_is_written_from_a_wheel(tmp_path: Path) -> None:
    wheel, table = tmp_path / "list.whl", tmp_path / "table.json"
    listed = {"m": {**CHAT, "max_input_tokens": 9000}}
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(MEMBER, json.dumps(listed))
    assert main(["--wheel", str(wheel), "--table", str(table)]) == 0
    assert json.loads(table.read_bytes()) == {
        "source": f"LiteLLM {SOURCE.version}",
        "licence": "MIT License, Copyright (c) 2023 Berri AI",
        "date": SOURCE.day,
        "vendors": {"openai": {"m": [9000]}},
    }


def test_a_table_that_is_too_large_is_not_written(tmp_path: Path) -> None:
    wheel, table = tmp_path / "list.whl", tmp_path / "table.json"
    row = {**CHAT, "max_input_tokens": 9000}
    with zipfile.ZipFile(wheel, "w") as archive:
        listed = {f"m{n:0100}": row for n in range(MAX_BYTES // 100)}
        archive.writestr(MEMBER, json.dumps(listed))
    assert main(["--wheel", str(wheel), "--table", str(table)]) == 1
    assert not table.exists()


def test_the_table_in_the_package_is_from_this_source_and_small() -> None:
    content = TABLE.read_bytes()
    assert len(content) <= MAX_BYTES
    assert json.loads(content)["source"] == f"LiteLLM {SOURCE.version}"
    assert json.loads(content)["date"] == SOURCE.day
