"""Measure how hard pages are to read: `python docs/readability.py` prints each page's grade and number of long
sentences.

The grade is the Flesch-Kincaid grade: the years of school that a reader needs. Code blocks, tables, headings and
comments don't count, and inline code counts as one short word. `python docs/readability.py docs/laws.md` also lists the
page's long sentences. The program exits 1 if a page misses a target.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "examples/README.md")),
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "api"),
    *sorted((ROOT / "specs").glob("*.md")),
]
LONG_WORDS = 25
"""The largest number of words of a sentence that isn't long."""
LONG_SHARE = 0.05
"""The share of long sentences that every page must stay below."""
EASY_GRADE = 9.0
"""The largest allowed grade of the pages in `EASY`."""
EASY = {"README.md", "docs/start.md", "docs/verdicts.md", "docs/laws.md"}

_NO_PROSE = re.compile(r"^```(?s:.*?)^```$|<!--(?s:.*?)-->|^#+ .*$|^\|.*$", re.MULTILINE)
_ITEM = re.compile(r"^\s*(?:[-*] |\d+\. |:   )")
_END = re.compile(r"(?<=[.!?])[)*\"]*\s+")


def paragraphs(markdown: str) -> list[str]:
    """Return the paragraphs and list items of a page, each in one line."""
    found, open_ = [], False
    for line in _NO_PROSE.sub("", markdown).splitlines():
        if not line.strip():
            open_ = False
        elif open_ and not _ITEM.match(line):
            found[-1] += " " + line.strip()
        else:
            found.append(_ITEM.sub("", line).strip())
            open_ = True
    return found


def sentences(markdown: str) -> list[str]:
    """Return the sentences of a page, with each piece of code, number and link as one word."""
    found = []
    for text in paragraphs(markdown):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"``.+?``|`[^`]+`", "code", text))
        plain = re.sub(r"\d+(?:[.,:]\d+)+", "9", plain).replace("*", "")
        found += [sentence.strip() for sentence in _END.split(plain) if re.search(r"\w", sentence)]
    return found


def long_sentences(markdown: str) -> list[str]:
    """Return the sentences of a page that have more than `LONG_WORDS` words."""
    return [sentence for sentence in sentences(markdown) if len(re.findall(r"\S*\w\S*", sentence)) > LONG_WORDS]


def grade(markdown: str) -> float:
    """Return the Flesch-Kincaid grade of a page's prose."""
    import textstat  # comes with the extra readability

    ended = (re.sub(r"[.!?]+", "", sentence) + "." for sentence in sentences(markdown))
    return float(textstat.flesch_kincaid_grade("\n".join(ended)))


def main(arguments: list[str]) -> int:
    """Print one line for each page, and the long sentences of the named pages; return the exit code."""
    missed = False
    print(f"grade  over {LONG_WORDS} words  page")
    for path in [Path(name).resolve() for name in arguments] or PAGES:
        text, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
        found, count = long_sentences(text), len(sentences(text))
        hard = grade(text) > EASY_GRADE and name in EASY
        share = len(found) / max(count, 1)
        missed |= hard or share >= LONG_SHARE
        marks = " ".join([f"grade above {EASY_GRADE:.0f}"] * hard + ["too many long sentences"] * (share >= LONG_SHARE))
        print(f"{grade(text):5.1f}  {len(found):3} of {count:3}, {share:3.0%}  {name}  {marks}".rstrip())
        for sentence in found if arguments else []:
            print(f"         {sentence}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
