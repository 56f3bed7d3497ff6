# SPDX-License-Identifier: Apache-2.0
"""Words that the kit accepts, for code that runs before there is any package."""

SIMS = ("icarus", "verilator")
# of random items
ITEM_KINDS = ("layer", "product", "elementwise", "pool", "float16", "network", "list", "graph")
