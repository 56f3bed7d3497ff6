# SPDX-License-Identifier: Apache-2.0
"""What runs twice in CI: tests that its share of the coverage runs as `make test` does.

Same build but for the counters, same seed. `make test REST=1`, which CI runs beside
`make coverage SHARE=1`, leaves them out. Tests whose seed follows the commit are not among them:
for coverage they have another.
"""

UVM = "tb/uvm/test_uvm.py::test_uvm[verilator-device_tests-{}]"
LAYERS = ("Layers", "Networks", "Errors", "SoftReset", "Disturbed", "Window", "Stream")
ALIKE = frozenset(
    (
        *(UVM.format(f"{name}Test") for name in LAYERS),
        "tb/device/test_cycles.py::test_stream[nano]",
        "tb/device/test_driver.py::test_driver[verilator]",
        "tb/device/test_hostile.py::test_every_access[verilator]",
        "tb/device/test_hostile.py::test_every_error[verilator]",
        "tb/device/test_hostile.py::test_hostile[verilator-guard_tests]",
        "tb/device/test_hostile.py::test_hostile[verilator-watchdog_tests]",
        "tb/device/test_lists.py::test_maps_of_host_layers[verilator-nano]",
        "tb/device/test_products.py::test_product[verilator-nano-4x36x16-uint8]",
        "tb/device/test_products.py::test_product[verilator-nano-5x9216x17-int8]",
        "tb/device/test_products.py::test_product[verilator-nano-9x30x70-int8]",
        "tb/device/test_random_layers.py::test_vector_of_a_hundred_thousand",
        "tb/device/test_stream.py::test_kept_weights[verilator-nano]",
    )
)
