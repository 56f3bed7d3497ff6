# SPDX-License-Identifier: Apache-2.0
"""Tests of the models; none of them needs a simulator."""
