// SPDX-License-Identifier: Apache-2.0
//
// error_ctrl: decides when an error takes effect, and describes it.
//
// How it works: each failed transfer belongs to an inference. Data of the inference at work: it takes
// effect at once (trouble). Data that are fetched ahead: the first failure waits in a place of its own
// until its inference begins; the inference at work ends first, and if no other one follows, the
// failure goes with what was fetched ahead. One inference is fetched ahead at most (list_reader), so
// its parity tells whose a transfer is, and one place is enough; more of them would need a place each.
// A failed read of the list has another place, so it neither hides nor is hidden by a failure of the
// data that the layers before it need: it counts when the words that came before it are used up, those
// that are still on the bus when a later burst of the list is refused among them. It, a layer that the
// decoder refuses and one that has changed are reported in order, when all layers before are done
// (refuse); until then nothing more is decoded (refused). An error of the watchdog takes effect at
// once. The error that takes effect first is described: in one cycle a transfer goes before a
// refusal, and that before the watchdog. The flush drops all others, and no later run reports them.
// Handshake: faults and decoder errors are pulses; error is a pulse, a cycle after trouble or
// refuse, with err. flush answers trouble and refuse and clears what waits. No transfer is under way
// in the cycle of start.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module error_ctrl (
    // clock, synchronous reset, everything is being dropped, a run begins
    input  wire                     clk,
    input  wire                     rst,
    input  wire                     flush,
    input  wire                     start,
    // an inference is over, another one follows
    input  wire                     inf_over,
    input  wire                     go_on,
    // failed transfers; the list's words that came are used up and no others are on their way, layer
    // whose words are wanted; the decoder waits for words
    input  wire                     bus_err,
    input  wire [  `FAULT_BITS-1:0] bus_fault,
    input  wire                     list_empty,
    input  wire [              9:0] list_index,
    input  wire                     dec_waits,
    // decoder: refused layer; a layer that has changed
    input  wire                     dec_err,
    input  wire [              7:0] dec_err_code,
    input  wire [              9:0] dec_err_index,
    input  wire                     list_changed,
    input  wire [              9:0] list_changed_index,
    // watchdog: nothing moves; what is waited for, transfer and layer that wait
    input  wire                     stuck,
    input  wire [              2:0] stuck_waits,
    input  wire [`WAITING_BITS-1:0] waiting,
    input  wire [              9:0] layer,
    // all layers before a refused one are done
    input  wire                     drained,
    // an error ends what is going on; a refused layer waits to be reported
    output wire                     refuse,
    output wire                     trouble,
    output reg                      refused,
    // to the host: event with its description
    output reg                      error,
    output reg  [    `ERR_BITS-1:0] err
);

  localparam [2:0] LIST = 3'd0, NO_STREAM = 3'd7;

  // ---- failed transfers of data: the first one that has to wait is kept
  reg                    late;
  reg  [`FAULT_BITS-1:0] late_fault;
  reg                    inf_now;  // parity of the inference at work

  wire                   of_list = bus_fault[`FAULT_CHAN] == LIST;
  wire [`OWNER_BITS-1:0] fresh_owner = bus_fault[`FAULT_OWNER];
  wire [`OWNER_BITS-1:0] late_owner = late_fault[`FAULT_OWNER];
  wire                   fresh_now = bus_err && !of_list && fresh_owner[`OWNER_INF] == inf_now;
  wire                   fresh_late = bus_err && !of_list && fresh_owner[`OWNER_INF] != inf_now;
  wire                   late_now = late && late_owner[`OWNER_INF] == inf_now;
  wire [`FAULT_BITS-1:0] fault = late_now ? late_fault : bus_fault;
  wire [`OWNER_BITS-1:0] owner = fault[`FAULT_OWNER];

  assign trouble = (fresh_now || late_now || stuck) && !flush;
  assign refuse  = refused && drained && !flush;

  function [7:0] code_of(input not_allowed);
    code_of = not_allowed ? `ERROR_BAD_ACCESS : `ERROR_BUS_ERROR;
  endfunction

  always @(posedge clk) begin
    if (rst || flush || start) begin
      late    <= 1'b0;
      inf_now <= 1'b0;
    end else begin
      late    <= fresh_late ? 1'b1 : late;
      inf_now <= inf_over ? go_on && !inf_now : inf_now;
    end
  end
  always @(posedge clk) begin
    late_fault <= (fresh_late && !late) ? bus_fault : late_fault;
  end

  // ---- refused layers, the missing ones of a list that failed among them: code, layer, address
  reg         list_failed;  // bad_code and bad_addr are those of the list until a layer is refused
  reg  [ 7:0] bad_code;
  reg  [ 9:0] bad_index;
  reg  [31:0] bad_addr;
  wire        fresh_list = bus_err && of_list && !list_failed;
  wire        list_now = list_failed && list_empty && dec_waits;

  always @(posedge clk) begin
    if (rst || flush || start) begin
      list_failed <= 1'b0;
      refused     <= 1'b0;
    end else begin
      list_failed <= fresh_list ? 1'b1 : list_failed;
      refused     <= (dec_err || list_changed || list_now) ? 1'b1 : refused;
    end
  end
  always @(posedge clk) begin
    if (refused) begin
      {bad_code, bad_index, bad_addr} <= {bad_code, bad_index, bad_addr};
    end else if (list_changed) begin
      {bad_code, bad_index, bad_addr} <= {`ERROR_LIST_CHANGED, list_changed_index, 32'd0};
    end else if (dec_err) begin
      {bad_code, bad_index, bad_addr} <= {dec_err_code, dec_err_index, 32'd0};
    end else if (fresh_list) begin
      {bad_code, bad_index, bad_addr} <= {
        code_of(bus_fault[`FAULT_REFUSED]), list_index, bus_fault[`FAULT_ADDR]
      };
    end else begin
      {bad_code, bad_index, bad_addr} <= {bad_code, list_index, bad_addr};
    end
  end

  // ---- what the host reads
  wire [`OWNER_BITS-1:0] waiting_owner = waiting[`WAITING_OWNER];
  wire                   on_bus = waiting[`WAITING_WHY] != 2'd0;
  always @(posedge clk) begin
    if (rst) error <= 1'b0;
    else error <= trouble || refuse;
  end
  always @(posedge clk) begin
    if (!flush && (fresh_now || late_now)) begin
      err[`ERR_CODE]   <= code_of(fault[`FAULT_REFUSED]);
      err[`ERR_LAYER]  <= owner[`OWNER_LAYER];
      err[`ERR_STREAM] <= fault[`FAULT_CHAN];
      err[`ERR_WAITS]  <= 3'd0;
      err[`ERR_ADDR]   <= fault[`FAULT_ADDR];
    end else if (refuse) begin
      err[`ERR_CODE]   <= bad_code;
      err[`ERR_LAYER]  <= bad_index;
      err[`ERR_STREAM] <= LIST;
      err[`ERR_WAITS]  <= 3'd0;
      err[`ERR_ADDR]   <= bad_addr;
    end else if (trouble) begin
      err[`ERR_CODE]   <= `ERROR_WATCHDOG;
      err[`ERR_LAYER]  <= on_bus ? waiting_owner[`OWNER_LAYER] : layer;
      err[`ERR_STREAM] <= on_bus ? waiting[`WAITING_CHAN] : NO_STREAM;
      err[`ERR_WAITS]  <= stuck_waits;
      err[`ERR_ADDR]   <= on_bus ? waiting[`WAITING_ADDR] : 32'd0;
    end else begin
      err <= err;
    end
  end

  wire unused = &{1'b0, owner, waiting_owner, late_owner, fresh_owner};

`ifdef FORMAL_error_ctrl
  `include "error_ctrl_props.vh"
`endif

endmodule

`resetall
