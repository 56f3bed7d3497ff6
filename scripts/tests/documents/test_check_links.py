# SPDX-License-Identifier: Apache-2.0
"""check_links: links that resolve pass; each kind of broken link or citation is reported."""

from pathlib import Path

import pytest

from openkpu_tools.documents import check_links

SPEC = """# Spec

## 1 Sums

### 1.2 The formula

## 2 Words & bits

## Twice

## Twice
"""
# names are concatenated, so that the checker does not look for them in this repository
SPEC_MD = "spec" + ".md"
CITED = "docs/" + SPEC_MD
MORE = "docs/more" + ".md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small repository whose texts all resolve."""
    for folder in ("docs", "rtl/mac", "scripts"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / CITED).write_text(SPEC)
    (tmp_path / "rtl/mac/unit.v").write_text(
        f"// sums: {CITED} 1.2, and words: {CITED} section 2\n// see {CITED}\n// section 1 too\n"
    )
    (tmp_path / "scripts/run.py").write_text(
        f'"""Follows {CITED} 1.2 and 2; 3 times."""\nPAGE = "{SPEC_MD}"\n# rtl/mac/*.v\n'
        f"# reports/{SPEC_MD}\n"
    )
    (tmp_path / MORE).write_text(
        f"# More\n[spec]({SPEC_MD}#12-the-formula) [twice]({SPEC_MD}#twice-1) [me](#more)\n"
        f"![unit](../rtl/mac/unit.v) [site](https://example.org/{SPEC_MD}#x) {SPEC_MD} 1.2\n"
        f"[bits]({SPEC_MD}#2-words--bits) `[a](nothing)`\n```\n[b](nothing)\n```\n"
    )
    return tmp_path


def findings(root: Path) -> list[str]:
    """The findings of the checker, by file and line."""
    check_links.titles.cache_clear()
    check_links.anchors.cache_clear()
    check_links.sections.cache_clear()
    return [str(b) for f in check_links.texts(root) for b in check_links.check_citations(root, f)]


def test_everything_resolves(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert findings(root) == []
    assert check_links.main(root) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("file", "line", "want"),
    [
        (MORE, "[x](gone.html)", "link to gone.html: no such file"),
        (MORE, "![x](images/gone.png)", "link to images/gone.png: no such file"),
        (MORE, f"[x]({SPEC_MD}#gone)", f"link to {SPEC_MD}#gone: no such heading"),
        (MORE, "[x](#gone)", "link to #gone: no such heading"),
        (MORE, f"[x]({SPEC_MD}#twice-2)", f"link to {SPEC_MD}#twice-2: no such heading"),
        (MORE, "[x](../../..)", "link to ../../..: outside of the repository"),
        (MORE, '<img alt="" src="gone.png">', "link to gone.png: no such file"),
        (MORE, f"{SPEC_MD} 1.3", f"{SPEC_MD}: no section 1.3"),
        (MORE, "run `rtl/mac/gone" + ".v`", "rtl/mac/gone" + ".v: no such file"),
        ("rtl/mac/unit.v", f"// {SPEC_MD} 1.2", f"{SPEC_MD}: no such document"),
        ("rtl/mac/unit.v", f"// {CITED} 1.3", f"{CITED}: no section 1.3"),
        ("rtl/mac/unit.v", f"// {CITED} sections 1.2 to 4", f"{CITED}: no section 4"),
        ("rtl/mac/unit.v", f"// {CITED}\n// section 3.1", f"{CITED}: no section 3.1"),
        ("scripts/run.py", f"# {CITED} 1, 2 and 7", f"{CITED}: no section 7"),
        ("scripts/run.py", f"# docs/gone-{SPEC_MD}", f"docs/gone-{SPEC_MD}: no such document"),
        ("scripts/run.py", f'print("see {SPEC_MD}")', f"{SPEC_MD}: no such document"),
        ("scripts/run.py", "# rtl/pool/*" + ".v", "rtl/pool/*" + ".v: no such file"),
        ("scripts/run.py", "  x", "is not Python: unexpected indent"),
    ],
)
def test_planted(
    root: Path, file: str, line: str, want: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One planted fault: one line with file, line number and fault; exit status 1."""
    path = root / file
    number = path.read_text().count("\n") + 1
    path.write_text(path.read_text() + line + "\n")
    assert findings(root) == [f"{file}:{number}: {want}"]
    assert check_links.main(root) == 1
    assert capsys.readouterr().out == f"{file}:{number}: {want}\n"


def test_nothing_to_check(tmp_path: Path) -> None:
    assert check_links.main(tmp_path) == 1
