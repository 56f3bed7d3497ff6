# SPDX-License-Identifier: Apache-2.0
"""The intermediate form of a network: what a graph holds, must be and computes."""
