# SPDX-License-Identifier: Apache-2.0
"""What benches share: pipelines, descriptors, streams, packed ports, registers, memories."""
