# SPDX-License-Identifier: Apache-2.0
"""What the benches of the compute blocks share: pipelines, descriptors, streams."""
