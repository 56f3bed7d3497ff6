# SPDX-License-Identifier: Apache-2.0
"""What every command does with a model that is compiled: read it, measure what quantising costs.

Unrolled loops and large models need minutes; until then a line shows that they are at work.
"""

import argparse
from pathlib import Path

from openkpu.compiler.build import Program
from openkpu.compiler.calibration.calibrate import Calibrated
from openkpu.compiler.calibration.precision import Precision, measure_precision
from openkpu.compiler.calibration.samples import Request
from openkpu.compiler.source import read_model_program
from openkpu_tools.rtl import Ticker


def read_program(
    args: argparse.Namespace, request: Request | None, *, one_list: bool = False
) -> tuple[Program, Calibrated | None]:
    """The program of ``args.model`` for ``args.config``, and how it was quantised, if it was.

    Raises CompileError and its relatives, each with one line.
    """
    ends = args.ends or ()
    with Ticker(f"compiling {Path(args.model).name}"):
        return read_model_program(args.model, args.config, args.shape, request, one_list, ends)


def measured_precision(found: Calibrated) -> Precision:
    """What quantising costs each layer and the results."""
    with Ticker("measuring the precision"):
        return measure_precision(found)
