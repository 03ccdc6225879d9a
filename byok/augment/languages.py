"""The languages of /get-models, for which the editor offers completion."""

from typing import Any

_ROWS = """
Bash shellscript .sh .bash
C c .c .h
C++ cpp .cpp .cc .cxx .hpp .hh
C# csharp .cs
CSS css .css
Dart dart .dart
Dockerfile dockerfile .dockerfile
Elixir elixir .ex .exs
Go go .go
GraphQL graphql .graphql .gql
Groovy groovy .groovy .gradle
Haskell haskell .hs
HTML html .html .htm
Java java .java
JavaScript javascript .js .mjs .cjs
JavaScriptReact javascriptreact .jsx
JSON json .json
Julia julia .jl
Kotlin kotlin .kt .kts
Less less .less
Lua lua .lua
Markdown markdown .md
Objective-C objective-c .m
OCaml ocaml .ml .mli
Perl perl .pl .pm
PHP php .php
PowerShell powershell .ps1
Protobuf proto3 .proto
Python python .py .pyi
R r .r
Ruby ruby .rb
Rust rust .rs
Scala scala .scala
SCSS scss .scss
SQL sql .sql
Svelte svelte .svelte
Swift swift .swift
Terraform terraform .tf
TOML toml .toml
TypeScript typescript .ts .mts .cts
TypeScriptReact typescriptreact .tsx
Vue vue .vue
XML xml .xml
YAML yaml .yaml .yml
Zig zig .zig
"""


def _language(row: str) -> dict[str, Any]:
    name, vscode_name, *extensions = row.split()
    return {"name": name, "vscode_name": vscode_name, "extensions": extensions}


LANGUAGES: list[dict[str, Any]] = [_language(row) for row in _ROWS.strip().splitlines()]
