"""The panel in other languages: every text is translated, and nothing in it breaks a page."""

from __future__ import annotations

import ast
import gettext
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.template import Node, engines
from django.templatetags.i18n import BlockTranslateNode, TranslateNode
from django.test import Client
from django.utils import translation

import admin_panel
from tests.panel.paths import page_path

PACKAGE = Path(admin_panel.__file__).parent
LANGUAGES = ("de", "fr", "es")
_MARKERS = {"_", "gettext", "gettext_lazy"}
_PLURAL_MARKERS = {"ngettext", "ngettext_lazy"}
_PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%%?[a-z]")

Text = tuple[str, ...]
"""A text, or its singular and plural."""


def texts_of_modules() -> Iterator[Text]:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            count = 1 if node.func.id in _MARKERS else 2 if node.func.id in _PLURAL_MARKERS else 0
            texts = [text.value for text in node.args[:count] if isinstance(text, ast.Constant)]
            if texts:  # others are marked where they are written
                yield tuple(map(str, texts))


def texts_of_templates() -> Iterator[Text]:
    for path in (PACKAGE / "templates").rglob("*.html"):
        name = str(path.relative_to(PACKAGE / "templates"))
        for text in re.findall(r'\b_\("([^"]+)"\)', path.read_text()):  # arguments of tags
            yield (text,)
        template: Any = engines["django"].get_template(name)
        nodes = template.template.nodelist
        for node in nodes.get_nodes_by_type(Node):
            if isinstance(node, TranslateNode):
                yield (
                    node.filter_expression.var.literal.replace("%", "%%"),
                )  # as the node looks for it
            elif isinstance(node, BlockTranslateNode):
                forms = (node.singular, node.plural) if node.plural else (node.singular,)
                yield tuple(node.render_token_list(tokens)[0] for tokens in forms)


def catalog(language: str) -> dict[str | tuple[str, int], str]:
    """What the compiled catalog has: text, or text and number of the plural form → translation."""
    path = PACKAGE / "locale" / language / "LC_MESSAGES" / "django.mo"
    with path.open("rb") as file:
        translations: Any = gettext.GNUTranslations(file)
    return dict(translations._catalog)


def pairs(language: str) -> Iterator[tuple[str, str]]:
    """Each form of each text, and its translation; "" if there is none."""
    translations = catalog(language)
    for text in {*texts_of_modules(), *texts_of_templates()}:
        if len(text) == 1:
            yield text[0], translations.get(text[0], "")
        else:
            for number, form in enumerate(text):
                yield form, translations.get((text[0], number), "")


def test_texts_are_found() -> None:
    assert ("Try again",) in set(texts_of_templates())
    assert ("%d day", "%d days") in set(texts_of_modules())


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_translated(language: str) -> None:
    assert [text for text, translated in pairs(language) if not translated] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_translations_have_the_placeholders_of_their_texts(language: str) -> None:
    wrong = [
        (text, translated)
        for text, translated in pairs(language)
        if Counter(_PLACEHOLDER.findall(text)) != Counter(_PLACEHOLDER.findall(translated))
    ]
    assert wrong == []


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, object]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_endtag(self, tag: str) -> None:
        self.tags.append((tag, None))


@pytest.mark.parametrize("language", LANGUAGES)
def test_translations_keep_the_markup_and_end_no_attribute(language: str) -> None:
    """Translated texts are not escaped, and many of them are in attributes of tags."""
    wrong = [
        (text, translated)
        for text, translated in pairs(language)
        if Tags(text).tags != Tags(translated).tags
        or text.count('"') != translated.count('"')
        or ("<" in translated or "&" in translated) > ("<" in text or "&" in text)
    ]

    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_catalogs_hold_no_text_that_the_panel_has_not(language: str) -> None:
    texts = {text[0] for text in {*texts_of_modules(), *texts_of_templates()}}
    translated = {key if isinstance(key, str) else key[0] for key in catalog(language)}
    assert translated - texts == {""}


@pytest.mark.parametrize("language", LANGUAGES)
def test_compiled_catalog_is_that_of_the_source(language: str) -> None:
    """`make translations` compiles them."""
    source = (PACKAGE / "locale" / language / "LC_MESSAGES" / "django.po").read_text()
    joined = re.sub(r'"\n"', "", source)
    written = re.findall(r'^msgstr(?:\[\d\])? (".*")$', joined, re.M)[1:]
    compiled = [value for key, value in catalog(language).items() if key]
    assert sorted(map(ast.literal_eval, written)) == sorted(compiled)


@pytest.mark.parametrize(
    ("language", "heading"),
    [("de", "Namensräume"), ("fr", "Espaces de noms"), ("es", "Espacios de nombres")],
)
def test_pages_are_in_the_language_of_the_request(
    admin_client: Client, language: str, heading: str
) -> None:
    with translation.override(language):
        # the frame of the page is Django's, in the same language
        content = admin_client.get(page_path("namespaces")).content.decode()
    assert f"<h1>{heading}" in content
    assert f'lang="{language}"' in content
