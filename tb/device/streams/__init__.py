# SPDX-License-Identifier: Apache-2.0
"""Streams and task lists on the whole device."""
