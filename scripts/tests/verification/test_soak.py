# SPDX-License-Identifier: Apache-2.0
"""`make soak`: some seconds of it, and that it finds a leak and a wrong byte."""

import pytest

from openkpu_tools.verification import soak

pytestmark = [pytest.mark.check, pytest.mark.tool("regress")]

SHORT = ["--minutes=0.1", "--seed=3", "--config=nano"]


@pytest.mark.nightly
def test_soak(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Exact, with constant memory; progress is reported."""
    monkeypatch.setattr(soak, "EVERY", 0.0)
    assert soak.main(SHORT) == 0, capsys.readouterr().out
    out = capsys.readouterr().out
    assert "SEED=3" in out and "every byte is exact" in out and "MiB resident" in out
    assert "MiB since the warm-up" in out


@pytest.mark.nightly
def test_wrong_byte(capsys: pytest.CaptureFixture[str]) -> None:
    """The first item with it is named, with the command that repeats it alone."""
    assert soak.main([*SHORT, "--plant=byte"]) == 1
    out = capsys.readouterr().out
    assert "FAIL item 3: differs from the golden model" in out
    assert "make soak MINUTES=1 SEED=3 CONFIG=nano ITEM=3" in out
    assert soak.main([*SHORT, "--plant=byte", "--item=3"]) == 1
    assert "FAIL item 3: differs from the golden model" in capsys.readouterr().out
    assert soak.main([*SHORT, "--item=3"]) == 0


@pytest.mark.nightly
def test_leak(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.main([*SHORT, "--plant=leak"]) == 1
    assert "FAIL memory: +" in capsys.readouterr().out
