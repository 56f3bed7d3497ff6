# SPDX-License-Identifier: Apache-2.0
"""Files of kmodel v0 to v4, and what all readers share."""
