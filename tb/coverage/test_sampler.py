# SPDX-License-Identifier: Apache-2.0
"""The sampler on the running device: exactly the bins of what happened; and its files."""

from pathlib import Path

import pytest

from openkpu import configs
from openkpu_tb.coverage import sampler
from openkpu_tb.coverage.instrument import BINS
from openkpu_tb.coverage.model import crosses
from openkpu_tb.runs import launch

LAYERS = {
    ("3x3", "max 2/2", "17-32", "8", "2"): 1,
    ("3x3", "right top 2/2", "17-32", "8", "3 or more"): 1,
    ("1x1", "max 2/1", "1", "16", "1"): 1,
    ("1x1 dw", "left top 4/4", "65-960", "8", "1"): 1,
    ("fc", "none", "33-64", "8", "1"): 1,
    ("3x3", "mean 2/1", "2-16", "8", "1"): 4,
    ("1x1", "none", "2-16", "8", "2"): 4,
}
RUNS = {
    ("host", "immediate", "NONE"): 3,
    ("host", "wait states", "NONE"): 1,
    ("host", "lost or refused", "NONE"): 1,
    ("host", "immediate", "BAD_POOL"): 1,
    ("list", "immediate", "NONE"): 2,
    ("stream", "immediate", "NONE"): 6,
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bins of tb.coverage.sampler_tests, on an ordinary build."""
    path = tmp_path_factory.mktemp("bins") / "bins.xml"
    launch.run_device(
        "verilator",
        "tb.coverage.sampler_tests",
        launch.parameters(configs.load_config("nano")),
        env={BINS: str(path)},
    )
    return path


def hit(path: Path, cross: str) -> dict:
    return {bin: count for bin, count in sampler.read_bins(path)[cross].items() if count}


@pytest.mark.check
def test_layers_that_ran_and_were_read_back(found: Path) -> None:
    """Not the layer that a soft reset hid, nor the refused one."""
    assert hit(found, "layer") == LAYERS


@pytest.mark.check
def test_modes_bus_and_errors(found: Path) -> None:
    assert hit(found, "run") == RUNS


@pytest.mark.check
def test_register_accesses(found: Path) -> None:
    bins = hit(found, "register")

    def accesses(name: str) -> set[str]:
        return {access for word, access in bins if word == name}

    assert accesses("AI_PIX_ADR") >= {"read", "read reset value", "write"}
    assert accesses("AI_WGT_ADR") >= {"read", "write"}
    assert "read reset value" not in accesses("AI_WGT_ADR"), "it was written first"
    assert accesses("AI_BIAS_ADR") >= {"write while busy"}
    assert accesses("AI_TAKEN_ADR") == set(), "its one access was refused"
    assert accesses("fifo_threshold") == set()
    assert accesses("AI_CONFIG") == set() == accesses("fifo_data_out")
    assert accesses("PERF_INFERENCES") >= {"read"} <= accesses("PERF_INFERENCES_hi")


@pytest.mark.check
def test_merge_adds(found: Path, tmp_path: Path) -> None:
    twice = sampler.merge([found, found], tmp_path / "sum.xml")
    for cross in crosses():
        once = sampler.read_bins(found)[cross.name]
        assert twice[cross.name] == {bin: 2 * count for bin, count in once.items()}
        missing = set(sampler.missing(once))
        assert missing and missing == {bin for bin, count in once.items() if count == 0}


@pytest.mark.check
def test_bins_of_another_model_are_refused(found: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.xml"
    other.write_text(found.read_text().replace("'fc', 'none', '1', '8', '1'", "'fc'", 1))
    with pytest.raises(sampler.BinsError, match="its bins of layer are not those of the model"):
        sampler.merge([found, other], tmp_path / "sum.xml")
    other.write_text("nothing")
    with pytest.raises(sampler.BinsError, match="not a file of bins"):
        sampler.merge([other], tmp_path / "sum.xml")
    with pytest.raises(sampler.BinsError, match="no simulation"):
        sampler.merge([], tmp_path / "sum.xml")
