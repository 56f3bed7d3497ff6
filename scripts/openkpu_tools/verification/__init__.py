# SPDX-License-Identifier: Apache-2.0
"""Verification beyond single tests: regressions, coverage, claims, the nightly run."""
