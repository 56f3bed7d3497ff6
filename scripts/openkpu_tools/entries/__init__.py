# SPDX-License-Identifier: Apache-2.0
"""The commands with their options, by what they are for; standard library alone."""
