"""Language and kind of a file, from its path alone."""

import re
from functools import lru_cache

from byok.search.index.types import Kind

_CODE = {
    "bash": "sh bash zsh ksh bats",
    "c": "c",
    "clojure": "clj cljs cljc",
    "cmake": "cmake",
    "commonlisp": "lisp lsp",
    "cpp": "h cc cpp cxx c++ hpp hh hxx inl ipp ino",
    "csharp": "cs csx",
    "cuda": "cu cuh",
    "dart": "dart",
    "elisp": "el",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "fsharp": "fs fsx",
    "gdscript": "gd",
    "glsl": "glsl vert frag",
    "go": "go",
    "graphql": "graphql gql graphqls",
    "groovy": "groovy gradle",
    "haskell": "hs",
    "hlsl": "hlsl",
    "java": "java",
    "javascript": "js jsx mjs cjs",
    "julia": "jl",
    "kotlin": "kt kts",
    "lua": "lua",
    "objc": "m mm",
    "ocaml": "ml",
    "ocaml_interface": "mli",
    "perl": "pl pm",
    "php": "php phtml",
    "powershell": "ps1 psm1",
    "proto": "proto",
    "python": "py pyi pyw",
    "r": "r",
    "ruby": "rb rake gemspec",
    "rust": "rs",
    "scala": "scala sc sbt",
    "scheme": "scm ss",
    "solidity": "sol",
    "sql": "sql",
    "starlark": "bzl star",
    "svelte": "svelte",
    "swift": "swift",
    "tlaplus": "tla",
    "tsx": "tsx",
    "typescript": "ts mts cts",
    "vim": "vim",
    "vue": "vue",
    "zig": "zig",
}
_OTHER = {
    "css": "css less",
    "embeddedtemplate": "ejs erb",
    "hcl": "hcl tf",
    "html": "html htm",
    "json": "json jsonc json5",
    "markdown": "md mdx markdown",
    "scss": "scss",
    "toml": "toml",
    "xml": "xml",
    "yaml": "yaml yml",
}
# Code that has no grammar of its own here.
_UNPARSED = "ada adb ads d elm f90 fsi gleam ipynb nim odin pas rdl thrift v vb vhd"
_NAMES = {
    "BUILD": "starlark",
    "CMakeLists.txt": "cmake",
    "Gemfile": "ruby",
    "Jenkinsfile": "groovy",
    "Rakefile": "ruby",
    "Vagrantfile": "ruby",
    "WORKSPACE": "starlark",
    ".bash_profile": "bash",
    ".bashrc": "bash",
    ".zshrc": "bash",
}


def _invert(table: dict[str, str]) -> dict[str, str]:
    return {end: name for name, ends in table.items() for end in ends.split()}


_LANGUAGE_OF_CODE = _invert(_CODE)
LANGUAGE_OF = _LANGUAGE_OF_CODE | _invert(_OTHER)
_CODE_ENDS = _LANGUAGE_OF_CODE.keys() | set(_UNPARSED.split())


def language_of(path: str) -> str | None:
    """Return the name of a grammar in tree-sitter-language-pack, None without one."""
    name = path.rpartition("/")[2]
    return _NAMES.get(name) or LANGUAGE_OF.get(_end(name))


def _end(name: str) -> str:
    return name.rpartition(".")[2].lower() if "." in name else ""


def _folders(words: str, flags: int = 0) -> re.Pattern[str]:
    """Match a path that has one of these among its parts, `|` between them."""
    return re.compile(rf"(?:^|/)(?:{words})(?:/|$)", flags)


_DOC_FOLDER = _folders(
    r"docs?|documentation|website|site|man|changelogs?|\.changeset|release[-_]notes",
    re.I,
)
_DOC_ENDS = frozenset(["md", "mdx", "rst", "txt", "adoc", "htm", "html"])
_DOC_NAME = re.compile(r"(?:change|history|news|readme|license|release)", re.I)
# What a program says to its users, in one language a file: `values-de/strings.xml`,
# `locales/fr.json`, `translations/editor_pt_BR.ts`. It has the words of any question.
_LANGUAGE = r"[a-z]{2}(?:[-_][a-z]{2,4})?"
_TEXTS = re.compile(
    r"(?:.*/)?values(?:-[\w+-]+)?/[\w-]*strings[\w-]*\.xml"
    r"|.*\.(?:po|pot|xlf|xliff|resx|arb|strings|stringsdict)"
    r"|(?:.*/)?(?:i18n|l10n|locales?|lang(?:uages?)?|translations?|messages)"
    rf"/(?:.*/)?(?:{_LANGUAGE}/[^/]+|(?:[^/]*[-_.])?{_LANGUAGE})"
    r"\.(?:json5?|ya?ml|toml|properties|ini|php|ts|js)",
    re.I,
)
_TEST_FOLDER = _folders(
    r"tests?|testdata|testing|testkit|testsuite|__tests__|specs?|e2e"
    r"|fixtures?|mocks?|__mocks__|benches|benchmarks?|playgrounds?"
    r"|test[-_]\w+|\w+[-_]tests?"
)
_TEST_SOURCES = re.compile(r"(?:^|/)src/(?:test\w*|\w+_test\w*|\w*Test\w*|inttest)/")
_TEST_NAME = re.compile(
    r"(?:test_.*|conftest|.*_(?:tests?|spec|bench)|.*[.-](?:test|spec|stories|bench))"
    r"\.[a-z]+"
)
_TEST_CLASS = re.compile(
    r".*(?:Tests?|TestCase|IT|ITCase|Spec|Benchmark)\.(?:java|kt|scala|cs|php|swift)"
)
_EXAMPLE_FOLDER = _folders(
    r"_?examples?|samples?|demos?|tutorials?|docs?_src|cookbook|templates?-?examples?",
    re.I,
)
_GEN_FOLDER = _folders(
    r"vendor|third[-_]party|generated|gen|single_include|snapshots?|__snapshots__", re.I
)
_GEN_NAME = re.compile(
    r".*(?:\.d\.ts|\.pb\.go|_pb2\.py|\.snap|\.svg|\.css|\.scss|\.less|\.min\.m?js)",
    re.I,
)
# Libraries that programs carry along among the files for browsers.
_COPIED = re.compile(
    r"(?:.*/)?(?:static|assets?|public|www|wwwroot|webapp|js|scripts)/(?:.*/)?"
    r"(?:jquery|bootstrap|moment|lodash|underscore|backbone|angular|modernizr)"
    r"[-.\w]*\.js",
    re.I,
)
# Code in such folders is part of the program. Snapshots that tools write are no code,
# but a folder of them at the top is kept for comparison. The others are so only below a
# package: `src/mock` holds what it is called, `src/a/mock` is about mocks.
_SNAPSHOTS = frozenset(["snapshot", "snapshots"])
_SOURCES = frozenset(["src", "lib", "source", "sources"])
_FEATURES = frozenset(
    ["changelog", "changelogs", "doc", "docs", "documentation", "man", "mock", "site"]
)
_GITHUB = _folders(r"\.github")


@lru_cache(maxsize=16_384)
def kind_of(path: str) -> Kind:
    """Return the kind of a file; the first row of the table that matches wins."""
    name = path.rpartition("/")[2]
    end = _end(name)
    if end in _CODE_ENDS:
        path = _without_features(path)
    elif end not in _DOC_ENDS and _GITHUB.search(path):
        return Kind.CONF
    if _is_doc(path, name, end):
        return Kind.DOC
    if _is_test(path, name):
        return Kind.TEST
    if _EXAMPLE_FOLDER.search(path):
        return Kind.EXAMPLE
    if _GEN_FOLDER.search(path) or _GEN_NAME.fullmatch(name) or _COPIED.fullmatch(path):
        return Kind.GEN
    return Kind.CODE if end in _CODE_ENDS else Kind.CONF


def _without_features(path: str) -> str:
    """Leave out folders whose names look like a kind, but tell what the code does."""
    *folders, name = path.split("/")
    kept: list[str] = []
    package = len(folders)  # the depth at which packages begin
    for depth, folder in enumerate(folders):
        if depth > package and folder in _FEATURES:
            continue
        if depth and folder in _SNAPSHOTS:
            continue
        if folder in _SOURCES:
            package = min(package, depth + 1)
        kept.append(folder)
    return "/".join([*kept, name])


def _is_doc(path: str, name: str, end: str) -> bool:
    if end in _DOC_ENDS or _DOC_FOLDER.search(path) or _TEXTS.fullmatch(path):
        return True
    # `NEWS` and `LICENSE-MIT` are read, `history.py` and `release.yml` are run.
    return end not in LANGUAGE_OF and _DOC_NAME.match(name) is not None


def _is_test(path: str, name: str) -> bool:
    return bool(
        _TEST_FOLDER.search(path)
        or _TEST_SOURCES.search(path)
        or _TEST_NAME.fullmatch(name)
        or _TEST_CLASS.fullmatch(name)
    )
