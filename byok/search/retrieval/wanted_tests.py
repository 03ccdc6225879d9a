"""Tell whether tests are what a question wants: "tests of the connector".

"A client for unit tests" wants a client.
"""

import re

_ENGLISH = (
    r"\A\W*(?:(?:which|what|where|find|show|list|are|is|the|all|me|our|any) +){0,6}"
    r"(?:(?:unit|integration|e2e|regression|functional) +)?"
    r"(?:tests?|specs?|test +(?:cases?|files?|suites?)) +"
    r"(?:of|for|that|which|covers?|covering|checks?|checking|exercises?|verif(?:y|ies))\b",
    r"\A\W*(?:where|how|is|are)\b.{0,200}\btested\b",
)
_CHINESE = (
    r"(?:的(?:单元|集成|回归)?|单元|集成|回归)测试(?:用例|代码|文件)?"
    r"(?:都?在哪里?|在哪儿|有哪些)?\W*\Z",
    r"(?:哪些|哪个|哪里的?|有没有)(?:单元|集成|回归)?测试|在?哪里被?测试",
)
_JAPANESE = (
    r"の(?:単体)?テスト(?:ケース|コード)?(?:[はを].{0,20})?\W*\Z",
    r"どの(?:単体)?テスト|どこでテスト",
)
_KOREAN = (
    r"의 ?(?:단위 ?)?테스트(?:[는를].{0,20})?\W*\Z",
    r"어떤 ?테스트|어디서 ?테스트",
)
_GERMAN = (
    r"\A\W*(?:(?:welche|wo|zeige?|finde?|sind|gibt|es|die|alle|mir) +){0,6}"
    r"(?:unit-?|integrations-?)?test(?:s|f[aä]e?lle)? +"
    r"(?:f[uü]e?r|von|vom|zum|zur|der|des|pr[uü]e?fen|decken)\b",
    r"\A\W*(?:wo|wie|wird|werden)\b.{0,200}\bgetestet\b",
)
_SPANISH_AND_PORTUGUESE = (
    r"\A\W*(?:(?:qu[eé]|quais|d?[oó]nde|muestra|mostre|busca|est[aáã]on?|[lo]?[ao]s"
    r"|tod[ao]s) +){0,6}(?:pruebas?|tests?|testes?)(?: unit[aá]ri[ao]s)? +"
    r"(?:del?|d[ao]s?|para|que|cubren|cobrem)\b",
    r"\A\W*d?[oó]nde\b.{0,200}\b(?:se prueban?|(?:test|prob)ad[ao]s?)\b",
)
_FRENCH = (
    r"\A\W*(?:(?:quels?|o[uù]|sont|montre|trouve|les|tous) +){0,6}"
    r"tests?(?: unitaires?)? +(?:de|du|des|d'\w+|pour|qui|couvrent)\b",
    r"\A\W*o[uù]\b.{0,200}\btest[eé]e?s?\b",
)
_RUSSIAN = (
    r"\A\W*(?:(?:какие|где|покажи|найди|все) +){0,6}(?:юнит-?|модульные +)?тесты +\w",
    r"\A\W*где\b.{0,200}\bтестиру[её]тся\b",
)
_WANTED = re.compile(
    "|".join(
        (
            *(*_ENGLISH, *_CHINESE, *_JAPANESE, *_KOREAN, *_GERMAN),
            *(*_SPANISH_AND_PORTUGUESE, *_FRENCH, *_RUSSIAN),
        )
    )
)


def wants_tests(question: str) -> bool:
    """Tell whether tests are what a question wants, in any language."""
    return bool(_WANTED.search(question.lower()))
