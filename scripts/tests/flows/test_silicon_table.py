# SPDX-License-Identifier: Apache-2.0
"""Tables of area and clock are the recorded figures, each of a named configuration."""

import re
from pathlib import Path

import pytest

from openkpu import configs
from openkpu.checkout import ROOT
from openkpu_tools import variants
from openkpu_tools.documents import silicon_table
from openkpu_tools.flows import eda, fpga, gates, silicon_record

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RECORDED = silicon_record.load_figures(fpga.BASELINE)


@pytest.mark.parametrize("flow", [fpga, gates])
@pytest.mark.parametrize("name", [name for name, to in fpga.TARGETS.items() if to.part])
def test_what_is_mapped_is_what_is_simulated(name: str, flow, monkeypatch) -> None:
    """No size of its own: cycles and LUTs are of one device."""
    asked = []

    def mapped(device: configs.Config | variants.Variant, *_rest: object) -> None:
        asked.append((device.name, device.parameters))
        raise eda.ToolError("enough")

    monkeypatch.setattr(fpga, "mapped", mapped)
    assert flow.main([f"--config={name}"]) == 1
    assert asked == [(name, configs.load_config(name).parameters)]


def test_xilinx_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A row for each variant, with the smallest part that has room for it."""
    file = tmp_path / "xc7.json"
    monkeypatch.setattr(fpga, "XC7_RECORD", file)
    assert silicon_table.xc7_table() == ["Not measured."]
    figures = {"LUT": 40_000, "flip-flops": 20_000, "DSP": 183, "block RAM": 127.5}
    silicon_record.keep_figures(file, "small_fpga POST_SHARE=4", figures)
    silicon_record.keep_figures(file, "small_fpga", figures | {"DSP": 241})
    silicon_record.keep_figures(file, "k210", figures | {"DSP": 741})
    assert silicon_table.xc7_table()[2:] == [
        "| `k210` | 576 | 40,000 | 20,000 | 741 | 127.5 | none |",
        "| `small_fpga` | 144 | 40,000 | 20,000 | 241 | 127.5 | XC7A200T |",
        "| `small_fpga`, `POST_SHARE=4` | 144 | 40,000 | 20,000 | 183 | 127.5 | XC7A100T |",
    ]


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_figures_name_their_configuration(page) -> None:
    """LUTs and MHz that are recorded are beside the name of what has them."""
    assert set(RECORDED) <= set(configs.names()) & set(fpga.TARGETS)
    paragraphs = re.split(r"\n(?=\n|\| |- )", page.read_text(encoding="utf-8"))
    for name, figures in RECORDED.items():
        shown = [f"{figures['LUT']:,}", f"{figures['flip-flops']:,}"]
        shown += [str(figures[clock]) for clock in fpga.CLOCKS if clock in figures]
        for paragraph in paragraphs:
            if any(re.search(rf"(?<![\d.,]){figure}(?![\d,]| %)", paragraph) for figure in shown):
                assert re.search(rf"(`|CONFIG=){name}\b", paragraph), paragraph
