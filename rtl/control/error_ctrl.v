// SPDX-License-Identifier: Apache-2.0
//
// error_ctrl: decides when an error takes effect, and describes it.
//
// How it works: each failed transfer belongs to an inference. A failure of the current inference's data
// takes effect at once (trouble). For prefetched data the first failure is held until their inference
// begins; the current inference ends first, and if no other one follows, the failure is dropped with the
// prefetched data. At most one inference is prefetched (list_reader), so its parity identifies the owner of
// a transfer, and one register for the failure is enough; a deeper prefetch would need one each.
// A failed read of the list is held separately, so it neither hides nor is hidden by a failure of the data
// of earlier layers: it takes effect when the words received before it are consumed, including those in
// flight when a later burst of the list is refused. It, a layer that the decoder refuses and a changed
// layer are reported in order, when all earlier layers are done (refuse); until then nothing more is
// decoded (refused). An error of the watchdog takes effect at once. The error that takes effect first is
// described: in one cycle a transfer has priority over a refusal, and that over the watchdog. The flush
// drops all others, and no later run reports them.
// Handshake: faults and decoder errors are pulses; error is a pulse, one cycle after trouble or refuse,
// with err. flush responds to trouble and refuse and clears pending failures. No transfer is in flight in
// the cycle of start.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module error_ctrl (
    // clock, synchronous reset, flush, start of a run
    input  wire                     clk,
    input  wire                     rst,
    input  wire                     flush,
    input  wire                     start,
    // an inference is over, another one follows
    input  wire                     inf_over,
    input  wire                     go_on,
    // failed transfers; all list words received are consumed and none is in flight; layer whose words are
    // awaited; the decoder waits for words
    input  wire                     bus_err,
    input  wire [  `FAULT_BITS-1:0] bus_fault,
    input  wire                     list_empty,
    input  wire [              9:0] list_index,
    input  wire                     dec_waits,
    // decoder: refused layer; changed layer
    input  wire                     dec_err,
    input  wire [              7:0] dec_err_code,
    input  wire [              9:0] dec_err_index,
    input  wire                     list_changed,
    input  wire [              9:0] list_changed_index,
    // watchdog: no progress; reason for the stall, stalled transfer and layer
    input  wire                     stuck,
    input  wire [              2:0] stuck_waits,
    input  wire [`WAITING_BITS-1:0] waiting,
    input  wire [              9:0] layer,
    // all layers before a refused one are done
    input  wire                     drained,
    // a refusal ends the run; a failure ends it; a refused layer is pending
    output wire                     refuse,
    output wire                     trouble,
    output reg                      refused,
    // to the host: event with its description
    output reg                      error,
    output reg  [    `ERR_BITS-1:0] err
);

  localparam [2:0] LIST = 3'd0, NO_STREAM = 3'd7;

  // ---- failed transfers of data: the first one of prefetched data is held
  reg                    late;
  reg  [`FAULT_BITS-1:0] late_fault;
  reg                    inf_now;  // parity of the current inference

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

  // ---- refused layers, including those missing from a failed list: code, layer, address
  reg         list_failed;  // bad_code and bad_addr describe the list until a layer is refused
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

  // ---- description for the host
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
