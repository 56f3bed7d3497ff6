# SPDX-License-Identifier: Apache-2.0
"""Reference models of OpenKPU: exact arithmetic, codecs, networks, roofline.

``openkpu`` is the package, ``tests`` has its tests; docs/tour.md follows a layer through both.
"""
