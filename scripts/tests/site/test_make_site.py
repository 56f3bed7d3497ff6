# SPDX-License-Identifier: Apache-2.0
"""`make site` as a whole: the contents of the built site, and planted faults; each fails it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from openkpu.checkout import ROOT, python_path

pytestmark = [pytest.mark.check, pytest.mark.tool("site"), pytest.mark.fixed]
LEFT = (".git", ".venv*", "sim_build", "waves", "reports", "build", "__pycache__", "*.npz")
KPU = "kpu" + ".md"  # put together, so that no citation of this file is broken
DEVICE = "<!doctype html><html><body class='x'><h1>The device</h1>{}</body></html>"


def script(links: str) -> str:
    """Where the page of the device finds documents: beside itself in a checkout."""
    return f'<script>data = {{"links":"{links}"}}</script>'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A site with a page of the device as its front, and what the command said."""
    out, page = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("page")
    (page / "index.html").write_text(DEVICE.format(script("../../docs/{page}.md#{anchor}")))
    words = ["make", "site", f"OUT={out}", f"PAGE={page}"]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if "could not be installed" in run.stderr:
        pytest.skip(run.stderr.strip().splitlines()[-1])
    assert run.returncode == 0, run.stdout + run.stderr
    return out, run.stdout


def test_says_time_and_size(site: tuple[Path, str]) -> None:
    out, said = site
    pages = len(list(out.rglob("*.html")))
    line = rf"^{out}: {pages} pages, \d+ files, [\d.]+ MB, after [\d.]+ s \([\d.]+ s of the proc"
    assert re.search(line, said, re.MULTILINE), said
    assert pages > 250


def test_nothing_loads_from_another_host(site: tuple[Path, str]) -> None:
    """By patterns of this test's own; links that a reader may follow are none of them."""
    elsewhere = re.compile(
        r"""<(?!a\b)[^<>]+\b(?:src|href|data|srcset)\s*=\s*["']?(?:https?:)?//[^\s>]*"""
        r"""|(?:url\(|@import)\s*["']?(?:https?:)?//[^\s)]*"""
    )
    found = {}
    for path in (p for p in site[0].rglob("*") if p.suffix in (".html", ".css", ".svg")):
        text = re.sub(r"(<script\b[^>]*>).*?</script>", r"\1", path.read_text(), flags=re.DOTALL)
        if names := elsewhere.findall(text):
            found[path.relative_to(site[0]).as_posix()] = names
    assert not found


def test_front_is_the_device(site: tuple[Path, str]) -> None:
    front = (site[0] / "index.html").read_text()
    assert front.startswith("<!doctype html><html><body class='x'><nav ")
    assert script("docs/{page}.html#{anchor}") in front
    targets = re.findall(r'href="([^"]+)"', front)
    assert "docs/README.html" in targets and all((site[0] / name).is_file() for name in targets)
    readme = (site[0] / "README.html").read_text()
    assert re.search(r'href="?index\.html"?>The device computes in your browser<', readme)


def test_boxes_lead_to_section_and_source(site: tuple[Path, str]) -> None:
    for name, up in (("README.html", "."), ("docs/architecture.html", "..")):
        text = (site[0] / name).read_text()
        assert f'href="{up}/docs/architecture.html#3-control"' in text
        assert f'href="{up}/rtl/control/control.v.html"' in text
    assert "module" in (site[0] / "rtl" / "control" / "control.v.html").read_text()


def test_documents_python_registers_charts(site: tuple[Path, str]) -> None:
    golden = (site[0] / "python" / "layer.html").read_text()
    assert 'id="openkpu.layer.golden.run_layer"' in golden
    assert '<a href="../docs/kpu.html#22-ai-ram">docs/kpu.md 2.2</a>' in golden
    assert (site[0] / "registers" / "index.html").is_file()
    assert "AI_CNN_MODE" in "".join(p.read_text() for p in site[0].glob("registers/data/*.js*"))
    assert (site[0] / "docs" / "benchmarks.html").read_text().count('<figure class="chart"') >= 6
    index = json.loads((site[0] / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"docs/kpu.html", "python/layer.html"} <= found
    assert "rtl/control/control.v.html" not in found  # sources would hide the documents


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """This checkout, to plant faults in it."""
    left = shutil.ignore_patterns(*LEFT)
    return Path(shutil.copytree(ROOT, tmp_path / "copy", ignore=left, symlinks=True))


def build(checkout: Path, *words: str) -> tuple[int, str, str]:
    """Status, output and errors of the command in a checkout."""
    line = [sys.executable, "-m", "openkpu_tools", "site", *words]
    env = {**os.environ, "PYTHONPATH": python_path(checkout)}
    run = subprocess.run(line, cwd=checkout, env=env, capture_output=True, text=True)
    return run.returncode, run.stdout, run.stderr


def plant(path: Path, old: str, new: str) -> None:
    """Replace a text that is there once."""
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_planted_links_and_citations(site: tuple[Path, str], copy: Path) -> None:
    """In a document: a file, a heading, a section; in a docstring: a name, a section."""
    tour = copy / "docs" / "tour.md"
    lines = tour.read_text().count("\n")
    tour.write_text(f"{tour.read_text()}\n[a](gone.html) [b]({KPU}#gone) {KPU} 99.1\n")
    golden = copy / "models" / "openkpu" / "layer" / "golden.py"
    plant(golden, '"""What a layer gives."""', f'"""[It][openkpu.gone], docs/{KPU} 99.1."""')
    status, *both = build(copy, "--out", str(copy / "out"))
    said = "".join(both)
    assert status == 1
    for want in (
        f"docs/tour.md:{lines + 2}: link to gone.html: no such file",
        f"contains a link '{KPU}#gone', but",
        f"docs/tour.md:{lines + 2}: {KPU}: no section 99.1",
        "Could not find cross-reference target 'openkpu.gone'",
        f": docs/{KPU}: no section 99.1",
    ):
        assert want in said, said


def test_planted_docstring_target(site: tuple[Path, str], copy: Path) -> None:
    plant(copy / "README.md", "## For whom\n", "## For whom\n\n::: openkpu.layer.gone\n")
    status, *both = build(copy, "--out", str(copy / "out"))
    said = "".join(both)
    assert status == 1 and "openkpu.layer.gone could not be found" in said, said
    assert not (copy / "out" / "search").exists()


def test_folders_that_are_no_site(site: tuple[Path, str], tmp_path: Path) -> None:
    """Files that are there are not lost, and a front that is asked for is there."""
    (tmp_path / "letter.txt").write_text("Dear")
    for words, want in (
        (["--out", str(tmp_path)], f"{tmp_path}: has files that are no site, expected an empty"),
        (["--page", str(tmp_path)], f"{tmp_path / 'index.html'}: no such file, expected the page"),
    ):
        status, _, said = build(ROOT, *words)
        assert status == 2 and said.startswith(f"error: {want}") and said.count("\n") == 1, said
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
