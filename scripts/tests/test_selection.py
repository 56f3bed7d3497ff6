# SPDX-License-Identifier: Apache-2.0
"""Which tests run: further sizes at night or when named; the part that a flow is given."""

import subprocess
import sys
import tomllib

import pytest
from openkpu.scripts import eda, fpga
from openkpu.tb.simrun import ROOT

PATHS = "tb/device/test_paths.py"


@pytest.mark.parametrize(
    ("words", "there"),
    [
        ((PATHS,), False),
        ((PATHS, "--all"), True),
        ((f"{PATHS}::test_two_rows",), True),
        ((PATHS, "--all", "--icarus-tenth=3"), True),
    ],
)
def test_further_sizes(words: tuple[str, ...], there: bool) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *words]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    assert ("::test_two_rows" in found.stdout) == there


def test_the_list_of_the_night_names_tests() -> None:
    """Each is there with --all and only then; none of its files is without a test otherwise."""
    listed = tomllib.loads((ROOT / "tb" / "nightly.toml").read_text(encoding="utf-8"))
    given = {f"{file}::{test}" for file, tests in listed.items() for test in tests}
    usual, everything = (
        set(
            subprocess.run(
                [sys.executable, "-m", "pytest", "--collect-only", "-q", *words, *listed],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            ).stdout.splitlines()
        )
        for words in ((), ("--all",))
    )
    assert given <= everything and not given & usual
    assert {test.partition("::")[0] for test in usual} >= set(listed)


def test_part(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[fpga.Target] = []

    def measure(config: object, target: fpga.Target, *rest: object) -> dict:
        asked.append(target)
        raise eda.ToolError("enough")

    monkeypatch.setattr(fpga, "measure", measure)
    for words in (["--config=nano_fpga"], ["--config=nano_fpga", "--part=45k"]):
        assert fpga.main(words) == 1
    assert [target.part for target in asked] == ["85k", "45k"]
    assert {target.mhz for target in asked} == {80}
    assert "nano_fpga on LFE5U-45F" in capsys.readouterr().out
