# SPDX-License-Identifier: Apache-2.0
"""Networks as bytes in a chip's memory, for firmware: images that the driver in sw/ opens."""
