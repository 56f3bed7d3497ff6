# SPDX-License-Identifier: Apache-2.0
"""What the documents say of ports, parameters, fields, modules and numbers is what the code has."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from openkpu import configs
from openkpu.arithmetic.activation import ROUNDINGS, carry_shift
from openkpu.checkout import ROOT
from openkpu.layer.argument import FIELDS
from openkpu.layer.regmap import AI_RAM, ERROR_CODES, OFFSETS
from openkpu.network.kept import SPARE_MOST

DOCS = ROOT / "docs"
TOP = ROOT / "rtl" / "openkpu_top.v"
RTL = sorted(ROOT.glob("rtl/**/*.v"))
DIRECTIONS = {"input": "in", "output": "out"}


def section(page: Path, title: str) -> str:
    """Text of a page from a heading up to the next one."""
    text = page.read_text(encoding="utf-8")
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"{page.name} has no section {title!r}"
    return found[1]


def table(text: str) -> list[list[str]]:
    """Rows of the first table of a text, without head and rule; back quotes taken off."""
    lines = itertools.dropwhile(lambda line: not line.startswith("|"), text.splitlines())
    rows = list(itertools.takewhile(lambda line: line.startswith("|"), lines))[2:]
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in rows]


def blocks(text: str, language: str) -> list[str]:
    """Code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def modules() -> set[str]:
    """Names of all modules of the device."""
    found = {m for f in RTL for m in re.findall(r"^module (\w+)", f.read_text(), re.MULTILINE)}
    assert len(found) > 50
    return found


# ---------------------------------------------------------------- docs/integration.md
def header(module: str = "openkpu_top") -> str:
    """Head of a top, without comments and attributes."""
    text = re.sub(r"//.*", "", (ROOT / "rtl" / f"{module}.v").read_text())
    return text[text.index(f"module {module}") : text.index(");")]


def ports(module: str) -> list[list[str]]:
    """Name, direction and width of each."""
    found = []
    for direction, width, name in re.findall(
        r"(input|output)\s+(?:wire|reg)\s+(?:\[([^\]]*)\]\s*)?(\w+)", header(module)
    ):
        high = re.sub(r"\s", "", width).removesuffix(":0")
        bits = "1" if not width else high.removesuffix("-1") if "-" in high else str(int(high) + 1)
        found.append([name, DIRECTIONS[direction], bits.strip("`")])
    assert len(found) > 20
    return found


def port_rows(title: str) -> list[list[str]]:
    """The table of ports of a section of the page of integration."""
    return [row[:3] for row in table(section(DOCS / "integration.md", title))]


def test_port_table() -> None:
    assert port_rows("4 Ports") == ports("openkpu_top")


def test_ports_of_other_buses() -> None:
    """Those of AXI are all there, those of APB besides the ones of AHB; at most 60."""
    assert port_rows("AXI4") == ports("openkpu_axi") and len(ports("openkpu_axi")) <= 60
    of_ahb = [row for row in port_rows("4 Ports") if row[0].startswith("m_ahb") or row[0] == "irq"]
    assert port_rows("APB") + of_ahb == ports("openkpu_apb")


@pytest.mark.parametrize("module", ["openkpu_axi", "openkpu_apb"])
def test_parameters_of_other_buses(module: str) -> None:
    """They are those of the device, with its defaults, and reach it."""
    own = re.findall(r"parameter\s+(\w+)\s*=\s*(\w+)", header())
    found = re.findall(r"parameter\s+(\w+)\s*=\s*(\w+)", header(module))
    more = [("OUTSTANDING", "4")] if module == "openkpu_axi" else []
    assert found == own + more
    text = (ROOT / "rtl" / f"{module}.v").read_text()
    for name, _ in own:
        assert re.search(rf"\.{name}\s*\({name}\)", text), name


def test_parameter_table() -> None:
    found = [list(pair) for pair in re.findall(r"parameter\s+(\w+)\s*=\s*(\w+)", header())]
    listed = table(section(DOCS / "integration.md", "3 Parameters"))
    assert [row[:2] for row in listed] == found


def test_file_list() -> None:
    """The list names every file of the device, and nothing else."""
    listed = (ROOT / "rtl" / "openkpu.f").read_text()
    first, *files = listed.split()
    assert first == "+incdir+rtl/include" and (ROOT / "rtl/include").is_dir()
    assert files == sorted(files) and {ROOT / f for f in files} == set(RTL)


def test_memory_table() -> None:
    """Every module that holds a memory is in the table of memories, by its name or its parent's."""
    text = section(DOCS / "integration.md", "7 Memories")
    wrappers = {row[0].split("`")[1].strip("[]`") for row in table(text)}
    holders = {
        f.stem for f in RTL if re.search(r"^\s*reg\b[^;]*\bmem\s*\[", f.read_text(), re.MULTILINE)
    }
    assert holders == wrappers
    uses = {
        (f.stem, m)
        for f in RTL
        for m in re.findall(rf"^\s+({'|'.join(wrappers)}) (?:#|u_)", f.read_text(), re.MULTILINE)
    }
    named = text.replace(" ", "_").lower()
    missing = [u for u, _ in uses if u not in named and u not in ("data_cache", "fifo_ram")]
    assert not missing


# ----------------------------------------------------------------------- docs/kpu.md
def test_layer_argument_table() -> None:
    """Word, bits and name of every field, as the codec has them."""
    listed = []
    for word, bits, name, *_ in table(section(DOCS / "kpu.md", "2 Layer argument")):
        high, _, low = bits.rpartition(":")
        listed.append((name, int(word), int(low), int(high or low) - int(low) + 1))
    found = [(name, word, low, width) for name, (word, low, width, *_) in FIELDS.items()]
    assert sorted(listed) == sorted(found)
    minus_one = {r[2] for r in table(section(DOCS / "kpu.md", "2 Layer argument")) if "-1" in r[3]}
    assert minus_one == {name for name, field in FIELDS.items() if field[4] == 1}


def test_worked_values() -> None:
    """The table of the three roundings is what the golden model computes."""
    text = section(DOCS / "kpu.md", "1.3 Three roundings")
    lines = [line for line in text.splitlines() if line.startswith(("| value", "| `"))]
    rows = [[c.strip().strip("`") for c in line.strip("|").split("|")] for line in lines]
    values = np.array([int(c) for c in next(r for r in rows if r[0] == "value")[1:]])
    assert list(values) == list(range(-8, 9))
    worked = {r[0]: r[1:] for r in rows if len(r) == len(values) + 1 and r[0] != "value"}
    assert set(worked) == set(ROUNDINGS)
    for name, cells in worked.items():
        found = carry_shift(values.astype(np.int64), 2, name)
        assert [int(c) for c in cells] == found.tolist(), name


# ---------------------------------------------------------------- configurations
STATEMENTS = {
    "docs/performance.md": (
        (r"own\. ([^.]*?) decode 16 layers ahead", "look_ahead", 16),
        (r"not\. ([^.]*?) have 64 bits for that reason", "ahb_width", 64),
    ),
    "docs/decisions/area-and-clock.md": ((r"; only ([^,]*?) shares lanes", "post_share", 2),),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_about_configurations(name: str) -> None:
    """Sentences that say which configurations have a value name the ones that have it."""
    text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
    for pattern, key, value in STATEMENTS[name]:
        (named,) = re.findall(pattern, text)
        every = map(configs.load_config, configs.names())
        expected = {config.name for config in every if getattr(config, key) == value}
        assert set(re.findall(r"`(\w+)`", named)) == expected, pattern


def test_engines_of_configurations() -> None:
    """The table of pooling engines names configurations with their lanes and path, if any."""
    text = (DOCS / "silicon.md").read_text(encoding="utf-8")
    rows = table(text.partition("`POOL_LANES` = 0 leaves it out:")[2])
    for lanes, path, *_, named in rows:
        for name in re.findall(r"\w+", named):
            config = configs.load_config(name)
            assert (config.pool_lanes, config.path_bytes) == (int(lanes), int(path)), name
    assert len(rows) == 4


# ---------------------------------------------------------------- docs/programming.md
def test_memory_map() -> None:
    """Every register lies in a range of the table, and the ranges end with the last one."""
    rows = table(section(DOCS / "programming.md", "1 Memory map"))
    ranges = [(int(low, 16), int(high, 16)) for low, high, *_ in rows]
    assert ranges == sorted(ranges) and ranges[-1] == (AI_RAM, 2 * AI_RAM - 1)
    wide = [name for name in OFFSETS if name.startswith("PERF_") or name.islower()]
    ends = {}
    for name, offset in OFFSETS.items():
        places = [r for r in ranges if r[0] <= offset <= r[1]]
        assert len(places) == 1, f"{name} at {offset:#x} is in {len(places)} ranges of the table"
        (place,) = places
        last = offset + (7 if name in wide else 3)
        assert last <= place[1], name
        ends[place] = max(ends.get(place, 0), last)
    assert list(ends) == ranges[:-1] and list(ends.values()) == [high for _, high in ranges[:-1]]


def test_builds_whose_reads_wait() -> None:
    """The table of wait states names the configurations whose AI RAM has registers on both sides;
    tb/device/buses/apb_tests.py measures its figures."""
    text = section(DOCS / "programming.md", "1 Memory map")
    (named,) = re.findall(r"^\| (`nano`[^|]*) \| 3 \|", text, re.MULTILINE)
    narrow = "NARROW = (LEGAL_AHB_W == 32 && LEGAL_PATH == 16 && LANES < 16) ? 1 : 0"
    assert narrow in TOP.read_text() and "READ = 1 + 2 * NARROW" in TOP.read_text()
    expected = {
        config.name
        for config in map(configs.load_config, configs.names())
        if config.n_y * config.n_z < 16 and config.ahb_width == 32 and config.path_bytes == 16
    }
    assert set(re.findall(r"`(\w+)`", named)) == expected


def test_most_spare_rows() -> None:
    """What the register holds is the same in its description and in the effects of a write."""
    said = f"more than {SPARE_MOST:,}"
    assert said in section(DOCS / "registers.md", "AI_SPARE_ROWS")
    assert said in " ".join(
        section(DOCS / "programming.md", "9 Host writes in every state").split()
    )


def test_error_table() -> None:
    """Codes and names of the errors."""
    listed = {}
    for codes, names, *_ in table(section(DOCS / "programming.md", "3 Errors and recovery")):
        first, _, last = codes.partition(" to ")
        numbers = range(int(first), int(last or first) + 1)
        listed |= dict(zip(names.split(", "), numbers, strict=True))
    assert listed == {name: code for name, code in ERROR_CODES.items() if code}


def test_ai_registers_of_the_patent_page() -> None:
    """All of them, and no other."""
    rows = table(section(DOCS / "patent.md", "3 The AI registers"))
    named = [name for row in rows for name in row[0].split(", ")]
    assert sorted(named) == sorted(name for name in OFFSETS if name.startswith("AI_"))


# ------------------------------------------------------------------ docs/glossary.md
def test_prefixes_are_in_use() -> None:
    """Every prefix of the glossary begins a port of some module."""
    ports = {
        name
        for f in RTL
        for name in re.findall(
            r"^\s+(?:input|output)\s+(?:wire|reg)\s+(?:signed\s+)?(?:\[[^\]]*\]\s*)?(\w+)",
            f.read_text(),
            re.MULTILINE,
        )
    }
    prefixes = [
        row[0] for row in table(section(DOCS / "glossary.md", "Prefixes of ports and nets"))
    ]
    assert len(prefixes) > 30
    idle = [p for p in prefixes if not any(port.startswith(p) for port in ports)]
    assert not idle


# ---------------------------------------------------------- docs/architecture.md
def instances(module: str) -> set[str]:
    """Circuits of the device that a module instantiates, those of rtl/lib left out."""
    (file,) = (f for f in RTL if f.stem == module)
    text = re.sub(r"//.*", "", file.read_text())
    lib = {f.stem for f in RTL if f.parent.name == "lib"}
    known = modules() - lib
    return {
        m for m in re.findall(r"^\s*(\w+)\s+(?:#\(|u_\w+ \()", text, re.MULTILINE) if m in known
    }


PICTURES = blocks((DOCS / "architecture.md").read_text(), "mermaid")


@pytest.mark.parametrize("number", range(len(PICTURES)))
def test_pictures_show_the_hierarchy(number: int) -> None:
    """Each subgraph is a module, and its boxes are what that module instantiates."""
    boxes, shown = None, {}
    for line in PICTURES[number].splitlines():
        if opened := re.match(r"\s*subgraph (\w+?)(?:_inside)?(?: \[inside \w+\])?$", line):
            boxes = shown.setdefault(opened[1], set())
        elif line.strip() == "end":
            boxes = None
        elif box := re.match(r'\s*(\w+)\["(\w+)', line):
            assert boxes is not None and box[1] == box[2], line
            boxes.add(box[1])
    assert shown and all(boxes == instances(module) for module, boxes in shown.items()), {
        module: (boxes, instances(module)) for module, boxes in shown.items()
    }


def test_pictures_are_all_boxes() -> None:
    """Every box of the device with boxes inside has a picture, but for walkers and memories."""
    drawn = {m for p in PICTURES for m in re.findall(r"subgraph (\w+?)(?:_inside)?\b", p)}
    inner = {m for m in modules() if len(instances(m)) > 1}
    assert inner <= drawn, inner - drawn


def test_folders_of_the_stages() -> None:
    """The table of folders names each folder of rtl/ and the module of its stage."""
    rows = table(section(DOCS / "architecture.md", "1 The device"))
    assert {row[0] for row in rows} == {d.name for d in (ROOT / "rtl").iterdir() if d.is_dir()}
    for folder, module, _ in rows:
        assert not module or (ROOT / "rtl" / folder / f"{module}.v").exists(), folder


def test_picture_of_the_readme() -> None:
    """Every box is a module; those of the top and of the core are all there, and it is text."""
    assert "](docs/images/device.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
    text = (DOCS / "images" / "device.svg").read_text(encoding="utf-8")
    names = set(re.findall(r"<text [^>]*>([a-z]+_[a-z_]+|control|sequencer)</text>", text))
    assert names <= modules(), names - modules()
    assert names == {"openkpu_top"} | instances("openkpu_top") | instances("openkpu_core")
    assert text.count("<rect") == len(names) + 1  # a box each, and the page behind them
    assert "prefers-color-scheme: dark" in text
