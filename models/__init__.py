# SPDX-License-Identifier: Apache-2.0
"""Reference models of OpenKPU: exact arithmetic, codecs, networks, roofline.

The package is pure numpy and imports no simulator, so it is usable alone.  Who follows a layer
reads ``layer`` (the 12 words), ``params`` (weights, batch norm, activation table), ``airam``
(where maps lie), ``golden`` with ``conv``, ``activation`` and ``pooling`` (what is computed),
``network`` (a whole network image), ``vectors`` (recorded layers), ``configs`` and ``roofline``
(how fast it could be).
"""
