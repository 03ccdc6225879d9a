"""Recognize the file formats, languages and kinds of files that a question asks about.

A question about a Dockerfile is about Dockerfiles. The text of such files shares few
words with questions, and files of their kinds score less than code. So they get a
higher factor if the question names their format.
"""

import re
from functools import cache

# Patterns of a question in lower case, and of the paths that it is about.
_FORMATS = (
    (
        r"docker[ -]?files?|container ?files?|(?:docker|container|base) images?"
        r"|images? (?:for|of) (?:the )?(?:docker|containers?)",
        r"(?:docker|container)file[^/]*$",
    ),
    (r"(?:docker[- ])?compose", r"compose[^/]*\.ya?ml$"),
    (
        r"(?:ci |actions )?workflows?|github actions?|(?:ci|build) pipelines?"
        r"|pipeline config"
        r"|(?:ci|continuous integration)"
        r" (?:build|checks?|config\w*|jobs?|matrix|runs?|setup|settings|tests?)"
        r"|nightly (?:builds?|checks?|jobs?|runs?|tests?)"
        r"|(?:builds?|checks?|jobs?|runs?|tests?) (?:[\w-]+ ){0,5}"
        r"(?:on|in|by) (?:github|ci)"
        r"|工作流|流水线|ワークフロー|arbeitsablauf|flujos? de trabajo"
        r"|flux de travail|воркфлоу",
        r"\.github/workflows/|(?:^|/)\.?(?:gitlab-ci|travis|appveyor"
        r"|azure-pipelines|bitbucket-pipelines|circleci/|drone|woodpecker|buildkite/"
        r"|jenkinsfile)",
    ),
    (r"terraform|hcl", r"\.(?:tf|tfvars|hcl)$"),
    (
        r"helm|charts?",
        r"(?:^|/)charts?/.*\.(?:ya?ml|tpl)$|(?:^|/)(?:chart|values)[^/]*\.ya?ml$",
    ),
    (
        r"kubernetes|k8s|kubectl|manifests?",
        r"^(?!(?:.*/)?\.github/).*\.ya?ml$",
    ),
    (
        r"sql|migrations?|database schema|迁移|表结构|建表|マイグレーション"
        r"|datenbankschema|migrationen|migraci[oó]n(?:es)?"
        r"|esquema de (?:la )?base de datos"
        r"|sch[eé]ma de (?:la )?base de donn[eé]es|миграци|схем[аыу] базы",
        r"\.sql$|(?:^|/)migrat(?:e|ions?)/",
    ),
    (r"proto|protobuf|protocol buffers?|grpc", r"\.proto$"),
    (r"graphql", r"\.(?:graphqls?|gql)$"),
    (r"ya?ml", r"\.ya?ml$"),
    (r"toml", r"\.toml$"),
    (
        r"css|stylesheets?|scss|sass|less files?|styles|styling|(?:dark|light) theme"
        r"|样式表?|スタイルシート"
        r"|hojas? de estilos?|feuilles? de styles?|таблиц[аыу] стилей",
        r"\.(?:css|scss|sass|less)(?:\.(?:erb|hbs|j2|liquid|tmpl))?$",
    ),
    (
        r"html|templates?|jinja2?|partials?|layouts?"
        r"|(?:texts?|wording|body) of (?:(?:the|an?|our) )?(?:[\w-]+ )?(?:e-?)?mails?"
        r"|模板|テンプレート|vorlagen?"
        r"|plantillas?|gabarits?|шаблон",
        r"\.(?:html?|tmpl|tpl|jinja2?|j2|ejs|erb|hbs|haml|slim|mustache|twig|liquid|gohtml"
        r"|heex|cshtml|jsp|ftl|blade\.php)$"
        r"|(?:^|/)layout[^/]*/[^/]*\.xml$",
    ),
    (r"xml", r"\.xml$"),
    (r"make ?files?|make target", r"(?:^|/)(?:gnu)?makefile[^/]*$|\.mk$"),
    (r"cmake(?:lists)?", r"(?:^|/)cmakelists\.txt$|\.cmake$"),
    (r"maven|pom", r"(?:^|/)pom\.xml$"),
    (r"gradle", r"\.gradle(?:\.kts)?$"),
    (r"cargo\.toml|cargo manifest", r"(?:^|/)cargo\.toml$"),
    (r"package\.json|npm scripts?", r"(?:^|/)package\.json$"),
    (r"pyproject", r"(?:^|/)pyproject\.toml$"),
    (r"tsconfig", r"(?:^|/)tsconfig[^/]*\.json$"),
    (r"pkg-?config", r"\.pc(?:\.in)?$"),
    (r"notebooks?|ipynb|jupyter", r"\.ipynb$"),
    (r"nginx", r"nginx|\.conf$"),
    (
        r"(?:shell|bash|install(?:er|ation)?|build|setup|deploy\w*|entry ?point)"
        r" scripts?|scripts? (?:for|that|to)",
        r"\.(?:sh|bash|zsh|ps1|bat|cmd)$",
    ),
    (
        r"(?:example|sample) (?:config\w*|settings)|config\w* examples?",
        r"(?:example|sample)[^/]*\.(?:ya?ml|toml|json|ini|conf|cfg|env)$|\.env(?:\.\w+)?$",
    ),
    (r"ini", r"\.(?:ini|cfg)$"),
    (r"man(?:ual)? pages?", r"(?:^|/)man\d?/|\.[1-8](?:\.(?:in|md|adoc|rst|gz))?$"),
    (
        r"(?:bug|issue|feature) (?:report )?(?:forms?|templates?)"
        r"|(?:issue|pull request|pr|merge request) templates?"
        r"|forms? (?:[\w']+ ){0,5}(?:report|new feature|feature request)",
        r"(?:issue|pull_request|merge_request|bug_report|discussion)_?(?:template|report)",
    ),
    (
        r"(?:dependency|dependencies|package|library) (?:updates?|bumps?|upgrades?)"
        r"|dependabot|renovate",
        r"(?:^|/)\.?(?:dependabot|renovate)[^/]*$",
    ),
    (
        r"(?:snap|debian|deb|\.deb|rpm|\.rpm|flatpak|appimage|homebrew|chocolatey|nuget"
        r"|windows|mac|linux|arch) (?:packages?|packaging|installers?)"
        r"|snap(?:craft)?|flatpak"
        r"|packag(?:e|ing) (?:recipes?|specs?|files?|manifests?|metadata)",
        r"snapcraft[^/]*\.ya?ml$|flatpak|\.spec$|(?:^|/)debian/|\.nuspec$|pkgbuild$"
        r"|\.(?:iss|wxs|nsi)$|(?:^|/)(?:packaging|packages?|installers?)/"
        r"|\.github/workflows/[^/]*(?:deb|rpm|snap|package|release|flatpak)",
    ),
    (
        r"systemd|service units?|units? (?:files?|(?:that|which|to) (?:starts?|runs?))",
        r"\.(?:service|socket|timer)(?:\.in)?$",
    ),
    (
        r"pwa|progressive web apps?|web[ -]?(?:app )?manifests?|home ?screen",
        r"\.webmanifest$|(?:^|/)(?:web|site)?-?manifest\.json$",
    ),
    (
        r"permissions? (?:(?:that|which) )?(?:(?:does|do) )?(?:the |this |our |an )?"
        r"(?:app|apps|extension|add-?on|plugin)s?|entitlements?",
        r"(?:^|/)(?:androidmanifest\.xml|info\.plist|manifest\.json)$|\.entitlements$",
    ),
    (r"dev ?containers?|codespaces?", r"(?:^|/)\.devcontainer"),
    (r"proguard|code shrinking", r"proguard[^/]*$"),
    (
        r"lint(?:ers?|ing)?(?: (?:rules?|config\w*|settings))?|static analysis"
        r"|checkstyle|eslint|rubocop|ruff|flake8|pylint|golangci|clippy|detekt|ktlint"
        r"|stylelint|prettier|phpstan",
        r"(?:^|/)\.?(?:eslint|rubocop|ruff|flake8|pylint|golangci|clippy|rustfmt|detekt"
        r"|ktlint|stylelint|prettier|phpstan|swiftlint|markdownlint|editorconfig)[^/]*$"
        r"|(?:^|/)checkstyle[^/]*\.xml$|(?:^|/)(?:pyproject\.toml|setup\.cfg|tox\.ini)$",
    ),
    (
        r"translat(?:ions?|ed texts?)|locali[sz]ations?|locale files?|language files?"
        r"|翻译|本地化|翻訳|[uü]bersetzungen|traducciones|traductions|переводы",
        r"(?:^|/)(?:i18n|l10n|locales?|lang|translations?)/"
        r"|(?:^|/)values[^/]*/[^/]*strings[^/]*\.xml$|\.(?:po|pot|xlf|xliff|resx|arb)$",
    ),
)
# Word boundaries for Latin letters only: Chinese and Japanese have no spaces, and
# Russian words have endings.
_BEFORE, _AFTER = r"(?<![a-z0-9_äöüßà-ÿ])", r"(?![a-z0-9_äöüßà-ÿ])"
_FORMAT_PHRASE = re.compile(
    "|".join(
        rf"(?P<f{n}>{_BEFORE}(?:{phrase}){_AFTER})"
        for n, (phrase, _) in enumerate(_FORMATS)
    )
)
# The texts of a program in a language: "German translation", "the texts in French".
# Their paths have its code: `locales/de.json`, `values-fr/strings.xml`.
_LANGUAGES = {
    "ar": r"arabic|阿拉伯[语文]",
    "bg": r"bulgarian|保加利亚[语文]",
    "ca": r"catalan|加泰罗尼亚[语文]",
    "cs": r"czech|捷克[语文]",
    "da": r"danish|丹麦[语文]",
    "de": r"german|德[语文]",
    "el": r"greek|希腊[语文]",
    "en": r"english|英[语文]",
    "es": r"spanish|西班牙[语文]",
    "et": r"estonian|爱沙尼亚[语文]",
    "fa": r"persian|farsi|波斯[语文]",
    "fi": r"finnish|芬兰[语文]",
    "fr": r"french|法[语文]",
    "he": r"hebrew|希伯来[语文]",
    "hi": r"hindi|印地[语文]",
    "hr": r"croatian|克罗地亚[语文]",
    "hu": r"hungarian|匈牙利[语文]",
    "id": r"indonesian|印尼[语文]",
    "it": r"italian|意大利[语文]",
    "ja": r"japanese|日[语文]",
    "ko": r"korean|韩[语文]",
    "lt": r"lithuanian|立陶宛[语文]",
    "lv": r"latvian|拉脱维亚[语文]",
    "nb": r"norwegian|挪威[语文]",
    "nl": r"dutch|荷兰[语文]",
    "pl": r"polish(?! (?:the|up|our|some|all|this)\b)|波兰[语文]",
    "pt": r"portuguese|葡萄牙[语文]",
    "ro": r"romanian|罗马尼亚[语文]",
    "ru": r"russian|俄[语文]",
    "sk": r"slovak|斯洛伐克[语文]",
    "sl": r"slovene|slovenian|斯洛文尼亚[语文]",
    "sr": r"serbian|塞尔维亚[语文]",
    "sv": r"swedish|瑞典[语文]",
    "th": r"thai|泰[语文]",
    "tr": r"turkish|土耳其[语文]",
    "uk": r"ukrainian|乌克兰[语文]",
    "vi": r"vietnamese|越南[语文]",
    "zh": r"chinese|中文|汉语",
}
_LANGUAGE_NAME = re.compile(
    "|".join(
        rf"(?P<{code}>{_BEFORE}(?:{phrase}){_AFTER})"
        for code, phrase in _LANGUAGES.items()
    )
)
_ANY_LANGUAGE_NAME = "|".join(_LANGUAGES.values())
_TEXTS_IN_LANGUAGE = re.compile(
    rf"{_BEFORE}(?:{_ANY_LANGUAGE_NAME}) (?:[\w-]+ ){{0,2}}"
    r"(?:translat\w+|locali[sz]\w+|locales?|texts?|wording)"
    r"|(?:translat\w+|locali[sz]\w+|locales?|texts?|wording|strings?|labels?|messages)"
    rf" (?:[\w'-]+ ){{0,5}}(?:in|into|to|for) (?:the )?(?:{_ANY_LANGUAGE_NAME}){_AFTER}"
    rf"|(?:{_ANY_LANGUAGE_NAME}).{{0,6}}(?:翻译|译文|文案|文本|本地化)"
)
# Questions for tests: "tests of the connector", but not "a client for unit tests".
_TEST_QUESTIONS = (
    # English
    r"\A\W*(?:(?:which|what|where|find|show|list|are|is|the|all|me|our|any) +){0,6}"
    r"(?:(?:unit|integration|e2e|regression|functional) +)?"
    r"(?:tests?|specs?|test +(?:cases?|files?|suites?)) +"
    r"(?:of|for|that|which|covers?|covering|checks?|checking|exercises?|verif(?:y|ies))\b",
    r"\A\W*(?:where|how|is|are)\b.{0,200}\btested\b",
    # Chinese
    r"(?:的(?:单元|集成|回归)?|单元|集成|回归)测试(?:用例|代码|文件)?"
    r"(?:都?在哪里?|在哪儿|有哪些)?\W*\Z",
    r"(?:哪些|哪个|哪里的?|有没有)(?:单元|集成|回归)?测试|在?哪里被?测试",
    # Japanese
    r"の(?:単体)?テスト(?:ケース|コード)?(?:[はを].{0,20})?\W*\Z",
    r"どの(?:単体)?テスト|どこでテスト",
    # Korean
    r"의 ?(?:단위 ?)?테스트(?:[는를].{0,20})?\W*\Z",
    r"어떤 ?테스트|어디서 ?테스트",
    # German
    r"\A\W*(?:(?:welche|wo|zeige?|finde?|sind|gibt|es|die|alle|mir) +){0,6}"
    r"(?:unit-?|integrations-?)?test(?:s|f[aä]e?lle)? +"
    r"(?:f[uü]e?r|von|vom|zum|zur|der|des|pr[uü]e?fen|decken)\b",
    r"\A\W*(?:wo|wie|wird|werden)\b.{0,200}\bgetestet\b",
    # Spanish and Portuguese
    r"\A\W*(?:(?:qu[eé]|quais|d?[oó]nde|muestra|mostre|busca|est[aáã]on?|[lo]?[ao]s"
    r"|tod[ao]s) +){0,6}(?:pruebas?|tests?|testes?)(?: unit[aá]ri[ao]s)? +"
    r"(?:del?|d[ao]s?|para|que|cubren|cobrem)\b",
    r"\A\W*d?[oó]nde\b.{0,200}\b(?:se prueban?|(?:test|prob)ad[ao]s?)\b",
    # French
    r"\A\W*(?:(?:quels?|o[uù]|sont|montre|trouve|les|tous) +){0,6}"
    r"tests?(?: unitaires?)? +(?:de|du|des|d'\w+|pour|qui|couvrent)\b",
    r"\A\W*o[uù]\b.{0,200}\btest[eé]e?s?\b",
    # Russian
    r"\A\W*(?:(?:какие|где|покажи|найди|все) +){0,6}(?:юнит-?|модульные +)?тесты +\w",
    r"\A\W*где\b.{0,200}\bтестиру[её]тся\b",
)
_ASKS_FOR_TESTS = re.compile("|".join(_TEST_QUESTIONS))
_ASKS_FOR_DOCS = re.compile(
    r"\A\W*(?:(?:which|what|where|find|show|list|are|is|the|all|me|our|any) +){0,6}"
    r"(?:(?:user|developer|api|installation) +)?"
    r"(?:documentation|docs?|guides?|manuals?|readme|instructions?|tutorials?|steps) +"
    r"(?:of|for|on|about|to|that|how)\b"
    r"|(?:文档|说明书?|指南|教程)(?:都?在哪里?|在哪儿|有哪些)?\W*\Z"
)


def named_formats(question: str) -> re.Pattern[str] | None:
    """Return a pattern for the paths of the formats that a question names, if any.

    For a question about texts in some languages, it matches only these texts.
    """
    if languages := named_languages(question):
        return _translation_path_pattern(languages)
    groups = {match.lastgroup for match in _FORMAT_PHRASE.finditer(question.lower())}
    numbers = sorted(int(name[1:]) for name in groups if name)
    return _path_pattern(tuple(numbers)) if numbers else None


def named_languages(question: str) -> tuple[str, ...]:
    """Return the codes of the languages whose texts a question is about."""
    phrases = " ".join(
        match[0] for match in _TEXTS_IN_LANGUAGE.finditer(question.lower())
    )
    groups = {match.lastgroup for match in _LANGUAGE_NAME.finditer(phrases)}
    return tuple(sorted(code for code in groups if code))


def wants_tests(question: str) -> bool:
    """Tell whether a question asks for tests: "tests of the connector"."""
    return bool(_ASKS_FOR_TESTS.search(question.lower()))


def wants_docs(question: str) -> bool:
    """Tell whether a question asks for documents: "documentation on caching"."""
    return bool(_ASKS_FOR_DOCS.search(question.lower()))


@cache
def _path_pattern(numbers: tuple[int, ...]) -> re.Pattern[str]:
    return re.compile("|".join(_FORMATS[n][1] for n in numbers), re.IGNORECASE)


@cache
def _translation_path_pattern(codes: tuple[str, ...]) -> re.Pattern[str]:
    code = rf"(?:{'|'.join(codes)})(?:[-_]\w+)?"
    return re.compile(
        r"(?:^|/)(?:i18n|l10n|locales?|lang(?:uages?)?|translations?|messages|texts?)/"
        rf"(?:[^/]+/)*(?:[^/]*[-_.])?{code}(?:/.+|\.\w+)$"
        rf"|(?:^|/)(?:values-{code}|{code}\.lproj)/"
        rf"|(?:^|[/_.-]){code}\.(?:po|xlf|xliff|resx|arb)$",
        re.IGNORECASE,
    )
