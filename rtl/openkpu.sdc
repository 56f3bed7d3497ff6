# SPDX-License-Identifier: Apache-2.0
# Constraints of openkpu_top, openkpu_axi and openkpu_apb: one clock, no exceptions. A flow may set
# KPU_PERIOD (ns) before it reads this file. Both buses belong to the clock of the device; half of the
# period is for what is outside.
if {![info exists KPU_PERIOD]} { set KPU_PERIOD 10.0 }
create_clock -name clk -period $KPU_PERIOD [get_ports clk]
set_clock_uncertainty 0.1 [get_clocks clk]
set_input_delay [expr {$KPU_PERIOD / 2}] -clock clk [get_ports {rst s_* m_*} -filter {direction == in}]
set_output_delay [expr {$KPU_PERIOD / 2}] -clock clk [get_ports {irq s_* m_*} -filter {direction == out}]
