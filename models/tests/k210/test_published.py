# SPDX-License-Identifier: Apache-2.0
"""docs/models.md: published models have the digests of its table."""

import hashlib
import re
from pathlib import Path

import pytest

from models.tests.kmodel.test_kmodel_real import shared
from openkpu.judges import mlperf

pytestmark = pytest.mark.fixed  # the same with every seed

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "models.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([\w.]+)` \| `([0-9a-f]{64})` \| [\w-]+/[\w-]+, .+ \| .+ \|$", PAGE, re.M)
TINY = re.findall(r"^\| `([\w.]+)` \| `([0-9a-f]{64})` \| `(?:training|reference_sub)", PAGE, re.M)


def test_the_table_is_there() -> None:
    assert set(mlperf.MODELS) < {name for name, _ in TINY} and len(TINY) == 8
    assert len(ROWS) == 7 and len({digest for _, digest in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("name", "digest"), ROWS, ids=[name for name, _ in ROWS])
def test_published_model_is_the_one_of_the_page(name: str, digest: str) -> None:
    assert hashlib.sha256(shared(f"real/{name}").read_bytes()).hexdigest() == digest


@pytest.mark.parametrize(("name", "digest"), TINY, ids=[name for name, _ in TINY])
def test_model_of_mlperf_tiny_is_the_one_of_the_page(name: str, digest: str) -> None:
    assert hashlib.sha256(shared(f"{mlperf.FOLDER}/{name}").read_bytes()).hexdigest() == digest
