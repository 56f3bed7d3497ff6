# SPDX-License-Identifier: Apache-2.0
"""Quotients and multiples of whole numbers, rounded up; divisors."""

from __future__ import annotations


def ceil_div(value: int, by: int) -> int:
    """value / by, rounded up; ``by`` is 1 or more.  ZeroDivisionError for 0."""
    return -(-value // by)


def round_up(value: int, to: int) -> int:
    """The least multiple of ``to`` that is not below ``value``; ``to`` is 1 or more."""
    return ceil_div(value, to) * to


def largest_divisor(value: int, most: int) -> int:
    """The largest divisor of ``value`` that is not above ``most``; both are 1 or more."""
    return next(n for n in range(min(value, most), 0, -1) if value % n == 0)
