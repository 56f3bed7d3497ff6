# SPDX-License-Identifier: Apache-2.0
"""The test plan as data, what tests gave, and the page that joins them."""
