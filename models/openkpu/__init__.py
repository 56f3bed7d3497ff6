# SPDX-License-Identifier: Apache-2.0
"""OpenKPU's core: golden model, networks, readers of K210 models, prediction of cycles.

It needs numpy alone. The package openkpu_tb is the kit of the benches, openkpu_tools the commands.
"""

__version__ = "0.2.0"
