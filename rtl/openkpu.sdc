# SPDX-License-Identifier: Apache-2.0
# Constraints of openkpu_top, openkpu_axi or openkpu_apb as the top of a design: one clock, no exceptions. A
# flow may set KPU_PERIOD (ns) before it reads this file. Both buses belong to the clock of the device; half
# of the period is for what is outside. No port is named besides the clock, and no property is compared: a
# pattern or a filter that matches nothing would leave ports without constraints, silently in some readers.
if {![info exists KPU_PERIOD]} { set KPU_PERIOD 10.0 }
create_clock -name clk -period $KPU_PERIOD [get_ports clk]
set_clock_uncertainty 0.1 [get_clocks clk]
# readers with collections have a command for the difference; in others (OpenSTA) a collection is a list
if {[llength [info commands remove_from_collection]]} {
  set KPU_INPUTS [remove_from_collection [all_inputs] [get_ports clk]]
} else {
  set KPU_INPUTS [lsearch -inline -all -not -exact [all_inputs] [get_ports clk]]
}
set_input_delay [expr {$KPU_PERIOD / 2}] -clock clk $KPU_INPUTS
set_output_delay [expr {$KPU_PERIOD / 2}] -clock clk [all_outputs]
