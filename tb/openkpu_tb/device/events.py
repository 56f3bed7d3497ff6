# SPDX-License-Identifier: Apache-2.0
"""Reports of a run to the process that started it, and how its figures are collected."""

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from openkpu.compare import First, difference
from openkpu_tb.core.registers import COUNTERS

Say = Callable[..., None]  # an event's name, and its fields by keyword


class Events:
    """Sends events as JSON lines to the file that OKPU_EVENTS names."""

    def __init__(self) -> None:
        self.stream = open(os.environ["OKPU_EVENTS"], "w", buffering=1)  # noqa: SIM115

    def __call__(self, event: str, **fields: Any) -> None:
        self.stream.write(json.dumps({"event": event, **fields}) + "\n")
        self.stream.flush()


def mismatches(
    y: np.ndarray, unknown: np.ndarray, *expected: np.ndarray
) -> tuple[int, First | None]:
    """(bytes that differ from any of the expected maps or are unknown, the first one)."""
    return difference(y, *expected, unknown=unknown)


def counts(row: np.ndarray, before: np.ndarray) -> dict[str, int]:
    """Counters of one layer from two cumulative records; a smaller total means a fresh start."""
    before = before if row[0] >= before[0] else np.zeros_like(before)
    return {name: int(row[i]) - int(before[i]) for i, name in enumerate(COUNTERS)}
