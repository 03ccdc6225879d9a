"""What paths tell."""

from typing import get_args

import pytest
from tree_sitter_language_pack import SupportedLanguage

from byok.search.index.files.languages import LANGUAGE_OF, kind_of, language_of


def test_a_language_is_a_grammar_of_the_pack() -> None:
    own = {"tlaplus"}  # a wheel of its own
    assert set(LANGUAGE_OF.values()) - own <= set(get_args(SupportedLanguage))


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a/b.py", "python"),
        ("a/B.PY", "python"),
        ("x.d.ts", "typescript"),
        ("x.tsx", "tsx"),
        ("x.jsx", "javascript"),
        ("x.h", "cpp"),
        ("x.cs", "csharp"),
        ("x.mli", "ocaml_interface"),
        ("x.el", "elisp"),
        ("x.erb", "embeddedtemplate"),
        ("x.ejs", "embeddedtemplate"),
        ("Spec.tla", "tlaplus"),
        ("Gemfile", "ruby"),
        ("a/CMakeLists.txt", "cmake"),
        ("x.rdl", None),
        ("x.vb", None),
        ("a.py/Makefile", None),
        ("py", None),
        ("", None),
    ],
)
def test_a_path_has_a_language(path: str, language: str | None) -> None:
    assert language_of(path) == language


KINDS = {
    "code": """
        src/a.py byok/context/history.py src/latest/a.js release.py src/news/feed.ts
        contest/a.go lib/testament.rb x.vb x.proto app/Main.java components/App.vue
        build.gradle app/changes.rs src/testing.c x.sol x.el x.tla Specification.cs
        raft/src/main/java/org/x/snapshot/Reader.java db/snapshots/list.go
        src/snapshot/mod.rs src/main/java/org/x/mock/Web.java lib/a/changelog/b.rb
        src/main/java/x/documentation/Api.java src/a/site/b.py
        .github/scripts/a.py src/a/docs/b/man/c.py src/i18n/index.ts lang/parser.ts
        src/moment.js src/translations/loader.php
    """,
    "conf": """
        pyproject.toml Makefile .github/workflows/release.yml a.json Dockerfile a.xml
        a.properties no_end change.json .github/CODEOWNERS
        .github/workflows/test.yml .github/tests/a.json sub/.github/x.json
    """,
    "doc": """
        README README.rst docs/a.py doc/x.js CHANGES LICENSE-MIT a.md x/y.mdx notes.txt
        index.html website/a.ts man/byok.1 .changeset/a.json release-notes/1.yaml
        docs/test_a.py Documentation/Makefile NEWS HISTORY.old
        .github/PULL_REQUEST_TEMPLATE.md src/site/a.py src/docs/a.ts docs/src/a/b.py
        packages/docs/a.ts src/a/docs/b.md docs/src/a/mock/b.py src/a/docs/b.json
        app/res/values/strings.xml res/values-pt-rBR/strings.xml po/de.po src/lang/de.ts
        gui/lang/lang-en-GB.json config/locales/de.yml translations/editor_pt_BR.ts
        locales/fr/common.json
    """,
    "example": """
        examples/a.py _example/main.go samples/x.cs demo/a.js tutorial/a.py
        docs_src/a.py cookbook/x.rb Examples/a.swift
    """,
    "gen": """
        types.d.ts a.pb.go a_pb2.py vendor/x.go third_party/y.c generated/z.ts a.css
        b.scss c.less logo.svg __snapshots__/a.js single_include/all.h
        snapshots/a.py snapshot/src/a.js src/a/snapshots/b.json src/a/__snapshots__/b.js
        web/js/jquery-3.7.1.js a/static/moment.min.js app.min.js
    """,
    "test": """
        tests/a.py test/a.py __tests__/a.js src/test/java/A.java spec/a_spec.rb
        a_test.go test_a.py conftest.py a.spec.ts a.stories.tsx FooTest.java FooIT.kt
        ATests.swift testdata/x.json benches/b.rs benchmark/x.py src/androidTest/A.kt
        a-test.js test-utils/a.ts unit_tests/a.cc e2e/a.js fixtures/a.py
        playground/a.vue mock/a.py src/mock/users.js server/mock/a.go pkg/a/mocks/b.go
        tests/a/snapshot/b.py src/test/java/x/mock/A.java src/a/tests/mock/b.ts
        src/a/snapshot/reader_test.go lib/a/mocks/b.rb
        .github/scripts/test_a.py src/a/mock/users.json
    """,
}


@pytest.mark.parametrize(
    ("kind", "path"), [(kind, path) for kind in KINDS for path in KINDS[kind].split()]
)
def test_language_of_a_path_has_a_kind(kind: str, path: str) -> None:
    assert kind_of(path) == kind
