"""`docs/readability.py`: what it takes for a sentence, and that few sentences of a page are long."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from paths import ROOT


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("readability", ROOT / "docs/readability.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


READABILITY = load()

PAGE = """# A heading. Not read.

A job is a function
of `a.b(c). D`. It reads [two inputs](page.md), 1.5 s apart.

| a table | is left out. |
|---|---|

```text
So is code.
```

- An item;
  its second line.
- **Another** item

<!-- a comment. -->
"""


def test_sentences_are_those_of_paragraphs_and_items() -> None:
    assert READABILITY.sentences(PAGE) == [
        "A job is a function of code.",
        "It reads two inputs, 9 s apart.",
        "An item; its second line.",
        "Another item",
    ]


def test_a_sentence_is_long_with_more_than_25_words() -> None:
    short, long = " ".join(["word"] * 25) + ".", " ".join(["word"] * 26) + "."
    assert READABILITY.long_sentences(f"{short} {long}") == [long]


def test_long_words_raise_the_grade() -> None:
    pytest.importorskip("textstat", reason="comes with the extra readability")
    easy, hard = "The job reads rows and sums them.", "Implementation characteristics differ substantially everywhere."
    assert READABILITY.grade(easy) < 5 < READABILITY.grade(hard)


def test_few_sentences_of_a_page_are_long() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in READABILITY.PAGES}
    long = {path: len(READABILITY.long_sentences(text)) for path, text in texts.items()}
    allowed = {path: READABILITY.LONG_SHARE * len(READABILITY.sentences(text)) for path, text in texts.items()}
    assert [path for path in texts if long[path] >= allowed[path]] == [], "docs/readability.py PAGE lists them"


def test_pages_for_everyone_are_easy() -> None:
    pytest.importorskip("textstat", reason="comes with the extra readability")
    grades = {page: READABILITY.grade((ROOT / page).read_text(encoding="utf-8")) for page in READABILITY.EASY}
    assert [page for page, grade in grades.items() if grade > READABILITY.EASY_GRADE] == []
