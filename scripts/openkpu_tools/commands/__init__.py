# SPDX-License-Identifier: Apache-2.0
"""Commands for users: run, predict, draw."""
