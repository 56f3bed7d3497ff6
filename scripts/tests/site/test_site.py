# SPDX-License-Identifier: Apache-2.0
"""Parts of the site that need no builder: navigation, links of pictures, charts, built pages."""

import re
from pathlib import Path

import pytest

from openkpu import __version__
from openkpu.checkout import ROOT
from openkpu_tools.documents import check_links
from openkpu_tools.site import api, bars, built, charts, navigation, pictures, releases, sources

pytestmark = pytest.mark.fixed  # the same with every seed


# ---------------------------------------------------------- navigation
def leaves(nav: object) -> list[str]:
    """Paths of a navigation, in its order."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    assert not isinstance(parts, str) and parts is not None
    return [leaf for part in parts for leaf in leaves(part)]  # pyright: ignore[reportGeneralTypeIssues]


def test_every_document_is_in_the_navigation_once() -> None:
    found = leaves(navigation.navigation(ROOT))
    assert len(found) == len(set(found))
    texts = {p.as_posix() for p in check_links.texts(ROOT) if p.suffix == ".md"}
    # of data that the tests read, which nobody reads from the start to the end
    assert texts - set(found) == set()
    assert {path for path in found if not (ROOT / path).is_file()} == {
        navigation.RELEASES, sources.INDEX, *(path for path in found if path.startswith(api.FOLDER))
    }  # fmt: skip


def test_documents_stand_in_the_order_of_their_readers() -> None:
    """Written down here as docs/README.md has it, each document below its first reader."""
    found = leaves(navigation.navigation(ROOT))
    order = ["models", "command-line", "benchmarks", "kpu", "networks", "compiler", "performance"]
    order += ["programming", "integration", "driver", "silicon", "tour"]
    order += ["architecture", "verification", "glossary", "registers"]
    assert [path for path in found if Path(path).stem in order and path.startswith("docs/")] == [
        f"docs/{name}.md" for name in order
    ]


# ---------------------------------------------------------- pictures
def test_every_box_leads_to_its_section() -> None:
    """Sections that a reader would look for; every module of a picture has one that is there."""
    found = pictures.module_anchors()
    wanted = {"host_port": "2-host-port", "fetch_ctrl": "3-control", "dmac": "4-storage-port"}
    wanted |= {"fill_stripe": "6-tile-buffer", "mac_unit": "9-mac-stage"}
    wanted |= {"openkpu_top": "1-the-device", "pool_pick": "14-pooling-tasks"}
    assert {name: found[name] for name in wanted} == wanted
    text = (ROOT / pictures.ARCHITECTURE).read_text(encoding="utf-8")
    boxes = set(re.findall(r'^\s+(\w+)\["', text, re.MULTILINE))
    anchors = check_links.anchors(ROOT / pictures.ARCHITECTURE)
    assert len(boxes) > 60
    for name in boxes:
        section, source = pictures.links(name, "docs/architecture.md") or ("", "")
        assert section == f"../docs/architecture.html#{found[name]}" and found[name] in anchors
        assert (ROOT / "docs" / source.removesuffix(".html")).resolve().stem == name


def test_device_picture_has_links() -> None:
    """Both links of each box of docs/images/device.svg, from the page that contains it."""
    svg = pictures.device_svg("README.md")
    links = re.findall(r'<a href="([^"]+)"', svg)
    names = re.findall(r"<text x=\"\d+\" y=\"\d+\">(\w+)</text>", svg)
    boxes = [name for name in names if name in pictures.modules()]
    assert len(boxes) == 14 and len(links) == 2 * len(boxes)
    assert "./docs/architecture.html#5-data-cache" in links
    assert "./rtl/cache/data_cache.v.html" in links


# ---------------------------------------------------------- charts
def test_bars_are_as_long_as_their_values() -> None:
    svg = bars.bars("Cycles", {"a": {"x": 50, "y": 200}, "b": {"x": None, "y": 100}}, " %")
    assert re.findall(r'width="([\d.]+)%" height', svg) == ["15.50", "62.00", "31.00"]
    assert re.findall(r">([\d,]+ %)</text>", svg) == ["50 %", "200 %", "100 %"]
    logarithmic = bars.bars("Rates", {"a": {"": 10}, "b": {"": 10_000}}, least=1)
    assert re.findall(r'width="([\d.]+)%" height', logarithmic) == ["15.50", "62.00"]
    with pytest.raises(ValueError, match="Nothing: no values, expected some"):
        bars.bars("Nothing", {"a": {"x": None}})


@pytest.mark.parametrize(
    ("draw", "page", "least"),
    [
        (charts.measured_chart, "benchmarks", 10),
        (charts.predicted_chart, "benchmarks", 100),
        (charts.quantised_chart, "benchmarks", 12),
        (charts.boxes_chart, "silicon", 8),
        (charts.lut_chart, "silicon", 4),
        (charts.cells_chart, "silicon", 6),
        (charts.layers_chart, "benchmarks", 18),
    ],
)
def test_charts_have_the_figures_of_the_pages(draw, page: str, least: int) -> None:
    """Every figure at a bar is in a table of the page that the chart is beside."""
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    tables = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    shown = re.findall(r">([\d,.]+)(?: %| MHz)?</text>", "".join(draw()))
    assert len(shown) >= least
    assert not [
        figure for figure in shown if not re.search(rf"(?<![\d,.]){figure}(?![\d,])", tables)
    ]


def test_a_chart_whose_place_is_gone() -> None:
    with pytest.raises(ValueError, match=r"silicon\.md: '<!-- fpga -->' 0 times, expected once"):
        charts.with_charts("docs/silicon.md", "# Silicon\n")


# ---------------------------------------------------------- Python, releases
def test_citations_of_docstrings_are_links() -> None:
    kpu, gone = "docs/kpu" + ".md", "docs/gone" + ".md"  # so that none of this file is broken
    page, broken = api.with_citations(f"<p>{kpu} 2.2, {kpu} section 99, {gone}</p>")
    assert page.startswith(f'<p><a href="../docs/kpu.html#22-ai-ram">{kpu} 2.2</a>, {kpu} sec')
    assert broken == [f"{kpu}: no section 99", f"{gone}: no such document"]


def test_rooms_are_those_of_the_package() -> None:
    rooms = api.rooms()
    assert "openkpu.layer.golden" in rooms["layer"]
    assert rooms["kmodel"][0] == "openkpu.kmodel"  # its functions are in the package itself
    assert "openkpu.layer" not in rooms["layer"]  # which has none
    assert not any("__" in module for modules in rooms.values() for module in modules)


def test_releases_are_what_their_commits_record() -> None:
    known = releases.load_releases()
    assert list(known)[-1] == __version__
    assert known["0.3.0"]["figures"]["LUT of nano_fpga"] == 38542
    for version, release in known.items():
        found = releases.figures_of(release["commit"])
        if releases.TESTS in found:  # this clone has the commit
            assert found == release["figures"], version
    row = dict(zip(*releases.trend_table()[:1], releases.trend_table()[1], strict=True))
    assert row["figure"] == releases.TESTS and row["0.2.0"] == "284"


# ---------------------------------------------------------- the built site
PAGE = """<html><head><link rel="canonical" href="https://example.org/"><link rel=stylesheet
href=look.css></head><body style="background: url(data:image/png;base64,AA)"><h1 id="top">x</h1>
<a href="https://example.org">out</a> <a href="other.html#part">in</a> <a href="#top">up</a>
<script>var text = '<img src="https://example.org/a.png">'</script></body></html>"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text(PAGE)
    (tmp_path / "other.html").write_text('<p id="part">x</p><a href="index.html#top">back</a>')
    (tmp_path / "look.css").write_text("p { background: url(look.css) }")
    return tmp_path


def test_a_good_site_has_no_faults(site: Path) -> None:
    assert built.faults(site) == []


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ('<a href="gone.html">x</a>', "link to gone.html: no such file"),
        ('<a href="index.html#gone">x</a>', "link to index.html#gone: no such heading"),
        ('<a href="#gone">x</a>', "link to #gone: no such heading"),
        ('<a data-anchor="a" data-page="gone">x</a>', "link to docs/gone.html#a: no such file"),
        ('<img alt="" src="gone.png">', "link to gone.png: no such file"),
        ("<svg><a xlink:href='gone.html'></a></svg>", "link to gone.html: no such file"),
        *(
            (text, f"loads {url} from another host")
            for text, url in (
                ('<script async src="https://e.org/x.js"></script>', "https://e.org/x.js"),
                ("<link rel=stylesheet href=//e.org/x.css>", "//e.org/x.css"),
                ('<link rel="preconnect" href="https://e.org">', "https://e.org"),
                ('<p style="background: url(http://e.org/a)">', "http://e.org/a"),
                ("<style>@import 'https://e.org/a.css';</style>", "https://e.org/a.css"),
                ('<style>i { src: url("https://e.org/f") }</style>', "https://e.org/f"),
                ('<IMG SRC="https://e.org/a.png">', "https://e.org/a.png"),
                ('<img srcset="https://e.org/b.png 2x">', "https://e.org/b.png"),
                ('<svg><use xlink:href="https://e.org/s#a"/></svg>', "https://e.org/s#a"),
                ('<pre class="mermaid">flowchart</pre>', "https://unpkg.com/mermaid"),
            )
        ),
    ],
)
def test_planted_in_a_page(site: Path, text: str, want: str) -> None:
    (site / "other.html").write_text(f'<p id="part">{text}</p>')
    assert built.faults(site) == [f"other.html: {want}"]


def test_planted_in_a_style(site: Path) -> None:
    (site / "look.css").write_text("@font-face { src: url(https://e.org/f.woff) }")
    assert built.faults(site) == ["look.css: loads https://e.org/f.woff from another host"]
