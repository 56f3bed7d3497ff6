# SPDX-License-Identifier: Apache-2.0
"""Other people's tools: the vendor's simulator as a judge, training of the digits, a peer."""
