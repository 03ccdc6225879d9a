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
# Extensions of code without a grammar here.
_UNPARSED = "ada adb ads d elm f90 fsi gleam ipynb nim odin pas rdl thrift v vb vhd"
_LANGUAGE_BY_NAME = {
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
    return {ext: name for name, exts in table.items() for ext in exts.split()}


def _folder_pattern(names: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern for paths with one of these folders, separated by `|`."""
    return re.compile(rf"(?:^|/)(?:{names})(?:/|$)", flags)


_LANGUAGE_OF_CODE = _invert(_CODE)
LANGUAGE_OF = _LANGUAGE_OF_CODE | _invert(_OTHER)
_CODE_EXTENSIONS = _LANGUAGE_OF_CODE.keys() | set(_UNPARSED.split())

_DOC_FOLDER = _folder_pattern(
    r"docs?|documentation|website|site|man|changelogs?|\.changeset|release[-_]notes",
    re.I,
)
_DOC_EXTENSIONS = frozenset(["md", "mdx", "rst", "txt", "adoc", "htm", "html"])
_DOC_NAME = re.compile(r"(?:change|history|news|readme|license|release)", re.I)
# Texts of a program for its users, one language per file: `values-de/strings.xml`,
# `locales/fr.json`, `translations/editor_pt_BR.ts`. They match words of any question.
_LANGUAGE = r"[a-z]{2}(?:[-_][a-z]{2,4})?"
_TRANSLATIONS = re.compile(
    r"(?:.*/)?values(?:-[\w+-]+)?/[\w-]*strings[\w-]*\.xml"
    r"|.*\.(?:po|pot|xlf|xliff|resx|arb|strings|stringsdict)"
    r"|(?:.*/)?(?:i18n|l10n|locales?|lang(?:uages?)?|translations?|messages)"
    rf"/(?:.*/)?(?:{_LANGUAGE}/[^/]+|(?:[^/]*[-_.])?{_LANGUAGE})"
    r"\.(?:json5?|ya?ml|toml|properties|ini|php|ts|js)",
    re.I,
)
_TEST_FOLDER = _folder_pattern(
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
_EXAMPLE_FOLDER = _folder_pattern(
    r"_?examples?|samples?|demos?|tutorials?|docs?_src|cookbook|templates?-?examples?",
    re.I,
)
_GEN_FOLDER = _folder_pattern(
    r"vendor|third[-_]party|generated|gen|single_include|snapshots?|__snapshots__", re.I
)
_GEN_NAME = re.compile(
    r".*(?:\.d\.ts|\.pb\.go|_pb2\.py|\.snap|\.svg|\.css|\.scss|\.less|\.min\.m?js)",
    re.I,
)
# Libraries of others, copied among a program's files for browsers.
_COPIED = re.compile(
    r"(?:.*/)?(?:static|assets?|public|www|wwwroot|webapp|js|scripts)/(?:.*/)?"
    r"(?:jquery|bootstrap|moment|lodash|underscore|backbone|angular|modernizr)"
    r"[-.\w]*\.js",
    re.I,
)
# Folders that do not decide the kind of code in them, as their names tell its subject.
# `snapshots` does decide at the top, where tools store snapshots for comparison. The
# others do so outside of packages: `src/mock` has mocks, `src/a/mock` is about mocks.
_SNAPSHOT_FOLDERS = frozenset(["snapshot", "snapshots"])
_SOURCE_FOLDERS = frozenset(["src", "lib", "source", "sources"])
_FEATURE_FOLDERS = frozenset(
    ["changelog", "changelogs", "doc", "docs", "documentation", "man", "mock", "site"]
)
_GITHUB_FOLDER = _folder_pattern(r"\.github")


def language_of(path: str) -> str | None:
    """Return the name of a file's grammar in tree-sitter-language-pack, or None."""
    name = path.rpartition("/")[2]
    return _LANGUAGE_BY_NAME.get(name) or LANGUAGE_OF.get(_extension(name))


@lru_cache(maxsize=16_384)
def kind_of(path: str) -> Kind:
    """Return the kind of a file; the first check that matches wins."""
    name = path.rpartition("/")[2]
    extension = _extension(name)
    if extension in _CODE_EXTENSIONS:
        path = _without_feature_folders(path)
    elif extension not in _DOC_EXTENSIONS and _GITHUB_FOLDER.search(path):
        return Kind.CONF
    if _is_doc(path, name, extension):
        return Kind.DOC
    if (
        _TEST_FOLDER.search(path)
        or _TEST_SOURCES.search(path)
        or _TEST_NAME.fullmatch(name)
        or _TEST_CLASS.fullmatch(name)
    ):
        return Kind.TEST
    if _EXAMPLE_FOLDER.search(path):
        return Kind.EXAMPLE
    if _GEN_FOLDER.search(path) or _GEN_NAME.fullmatch(name) or _COPIED.fullmatch(path):
        return Kind.GEN
    return Kind.CODE if extension in _CODE_EXTENSIONS else Kind.CONF


def _without_feature_folders(path: str) -> str:
    """Remove folders whose names look like a kind, but tell what the code does."""
    *folders, name = path.split("/")
    remaining: list[str] = []
    package = len(folders)  # the depth at which packages begin
    for depth, folder in enumerate(folders):
        if depth > package and folder in _FEATURE_FOLDERS:
            continue
        if depth and folder in _SNAPSHOT_FOLDERS:
            continue
        if folder in _SOURCE_FOLDERS:
            package = min(package, depth + 1)
        remaining.append(folder)
    return "/".join([*remaining, name])


def _is_doc(path: str, name: str, extension: str) -> bool:
    if (
        extension in _DOC_EXTENSIONS
        or _DOC_FOLDER.search(path)
        or _TRANSLATIONS.fullmatch(path)
    ):
        return True
    # `NEWS` and `LICENSE-MIT` are documents, `history.py` and `release.yml` are not.
    return extension not in LANGUAGE_OF and _DOC_NAME.match(name) is not None


def _extension(name: str) -> str:
    return name.rpartition(".")[2].lower() if "." in name else ""
