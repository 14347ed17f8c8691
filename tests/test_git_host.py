"""README and documentation read as a Git host shows them: plain Markdown and committed files."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^( *)(```+|~~~+)(.*?)^\1\2\s*$", re.MULTILINE | re.DOTALL)
#: Targets of `[text](target)`, `![alt](target)`, `[name]: target` and of HTML attributes.
LINKS = (
    re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)"),
    re.compile(r"^\[[^\]]+\]:\s*(\S+)", re.MULTILINE),
    re.compile(r"\b(?:src|href|srcset)=\"([^\"]+)\""),
)


@cache
def committed():
    """Every file in the repository, and every folder that holds one."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    files = {Path(name) for name in listed.splitlines() if (ROOT / name).exists()}
    return files | {parent for file in files for parent in file.parents}


def pages():
    return sorted(
        path for path in committed()
        if path.suffix == ".md" and "results" not in path.parts
        and (path.parts[0] == "docs" or len(path.parts) == 1 or path.parts[0] == "benchmarks")
    )  # fmt: skip


def anchors(page):
    """The fragments that GitHub gives to the headings of a page."""
    text = FENCE.sub("", (ROOT / page).read_text())
    found, seen = set(), {}
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.add(slug if slug not in seen else f"{slug}-{seen[slug]}")
        seen[slug] = seen.get(slug, 0) + 1
    return found | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))


def broken_links(page):
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", (ROOT / page).read_text()))
    for target in {target for pattern in LINKS for target in pattern.findall(text)}:
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = unquote(target).partition("#")
        path = Path(*_normal((page.parent / name).parts)) if name else page
        if path not in committed():
            yield f"{target}: there is no such file in the repository"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            yield f"{target}: {path} has no such heading"


def _normal(parts):
    out = []
    for part in parts:
        if part == "..":
            out.pop()
        elif part != ".":
            out.append(part)
    return out


def test_links_of_a_broken_page_are_found(tmp_path, monkeypatch):
    (tmp_path / "page.md").write_text(
        "# A b: c\n[there](page.md#a-b-c) [gone](gone.md) ![x](x.svg) <img src=\"y.svg\">\n"
        "[not so](#a-b) `[code](code.md)`\n```text\n[fenced](f.md)\n```\n"
    )  # fmt: skip
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "committed", lambda: {Path("page.md")})
    found = sorted(line.partition(":")[0] for line in broken_links(Path("page.md")))
    assert found == ["#a-b", "gone.md", "x.svg", "y.svg"]


@pytest.mark.parametrize("page", pages(), ids=str)
def test_every_relative_link_and_image_is_in_the_repository(page):
    assert list(broken_links(page)) == []


@pytest.mark.parametrize("page", pages(), ids=str)
def test_nothing_is_left_to_a_build_that_a_git_host_does_not_do(page):
    """A Git host prints a Sphinx directive or role as it stands, instead of what it stands for."""
    text = (ROOT / page).read_text()
    if page.parts[:2] == ("docs", "reference"):
        return  # made of docstrings by Sphinx; its first page says so and links to the sources
    outside = FENCE.sub("", text)
    directives = re.findall(r"^ *(?:```+|:::+|~~~+)\{([\w-]+)\}", text, re.MULTILINE)
    assert set(directives) <= {"toctree"}, directives
    assert re.findall(r"\{[a-z:]+\}`[^`]+`", outside) == []
    assert re.findall(r"^\([\w-]+\)=$", outside, re.MULTILINE) == []


def test_the_pages_say_nothing_of_an_installation_from_a_package_index():
    for page in pages():
        assert not re.search(r"pip install ['\"]?slimfl\b", (ROOT / page).read_text()), page


@pytest.mark.slow
def test_generated_parts_and_pictures_are_fresh():
    done = subprocess.run(
        [sys.executable, ROOT / "docs/fragments.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_letter_has_one_meaning():
    rows = re.findall(r"^\| (\$.+?\$) \|", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    letters = [re.sub(r"_\w|\$", "", cell) for row in rows for cell in row.split(", ")]
    assert len(letters) > 20
    repeated = {letter for letter in letters if letters.count(letter) > 1}
    assert repeated <= {"P"}  # the power of a device, and of one of its segments
    # widths are v, weights w
    assert "w_S = 1" not in (ROOT / "docs/method.md").read_text()
