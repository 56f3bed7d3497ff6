# SPDX-License-Identifier: Apache-2.0
"""AHB rule checkers and the proof that each of their rules can fail."""
