# SPDX-License-Identifier: Apache-2.0
"""python -m openkpu COMMAND ...: the program openkpu_tools, named as the installed command is."""

import importlib.util
import runpy
import sys

if __name__ == "__main__":
    if importlib.util.find_spec("openkpu_tools") is None:
        print("error: no package openkpu_tools, expected it beside openkpu", file=sys.stderr)
        sys.exit(2)
    runpy.run_module("openkpu_tools", run_name="__main__", alter_sys=True)
