# SPDX-License-Identifier: Apache-2.0
"""OpenKPU's Python: golden model and readers (openkpu.models), benches (openkpu.tb), commands.

In a checkout the packages lie beside this folder, under the names that the repository gives them;
installed, they lie inside it. Their names are the same in both.
"""

from pathlib import Path

__version__ = "0.2.0"

_HERE = Path(__file__).resolve().parent
if (_HERE.parent / "configs.toml").is_file():
    __path__ = [str(_HERE), str(_HERE.parent)]
