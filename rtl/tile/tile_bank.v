// SPDX-License-Identifier: Apache-2.0
//
// tile_bank: one of the nine banks of the tile buffer, the operands of one unit of the cascade.
//
// How it works: an entry is one reduction step. Bank t of an entry holds, for each of the 64 pixels
// of a stripe, the operand of multiply-add unit t: tap t of a 3x3 window, or channel t of nine, or
// (fully connected) element t of nine of 64 steps. The bank takes its bytes from the views of
// tile_scatter: taps by tap column and tap row, channels by their number modulo nine,
// depthwise rows for the output line above, at or below the row.
// Handshake: none; the fill and the sequencer of the array count entries.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module tile_bank #(
    // entries
    parameter ROWS = 32,
    // width of an entry counter and of an entry address
    parameter TW   = $clog2(ROWS) + 2,
    parameter AW   = $clog2(ROWS)
) (
    // clock
    input  wire          clk,
    // which bank (0..8), its tap row and tap column
    input  wire [   3:0] bank,
    input  wire [   1:0] ky,
    input  wire [   1:0] kx,
    // layer: mode, log2 of the stripe's line width, rows a line
    input  wire [   1:0] mode,
    input  wire [   2:0] swl,
    input  wire [   4:0] irl,
    // views of a row, see tile_scatter
    input  wire          f_valid,
    input  wire [ 511:0] view0,
    input  wire [ 511:0] view1,
    input  wire [ 511:0] view2,
    input  wire [ 511:0] view3,
    input  wire [  63:0] mask0,
    input  wire [  63:0] mask1,
    input  wire [  63:0] mask2,
    input  wire [TW-1:0] f_entry,
    input  wire [   2:0] f_ky_on,
    input  wire [   5:0] f_ky_slot,
    input  wire [   3:0] f_chmod,
    input  wire [   2:0] f_chans,
    // a byte of the flattener
    input  wire          fc_we,
    input  wire [AW-1:0] fc_entry,
    input  wire [   5:0] fc_at,
    input  wire [   7:0] fc_byte,
    // read port: enable, entry, row one cycle later
    input  wire          re,
    input  wire [AW-1:0] raddr,
    output wire [ 511:0] rdata
);

  wire chan_mode = mode == `MODE_CHAN;
  wire dwrow_mode = mode == `MODE_DWROW;

  // bytes of a line of the stripe
  function [63:0] slot_mask(input [1:0] slot, input [2:0] log2w);
    slot_mask = (log2w == 3'd4) ? 64'h0000_0000_0000_ffff << {slot, 4'd0} :
        (log2w == 3'd5) ? 64'h0000_0000_ffff_ffff << {slot[0], 5'd0} : {64{1'b1}};
  endfunction

  // taps and depthwise rows: the view of the tap column, if the line feeds the tap row
  wire ky_on = (ky == 2'd0) ? f_ky_on[0] : (ky == 2'd1) ? f_ky_on[1] : f_ky_on[2];
  wire [  1:0] ky_slot = (ky == 2'd0) ? f_ky_slot[1:0] : (ky == 2'd1) ? f_ky_slot[3:2] :
             f_ky_slot[5:4];
  wire [63:0] kx_mask = (kx == 2'd0) ? mask0 : (kx == 2'd1) ? mask1 : mask2;
  wire [TW-1:0] rows = {{(TW - 5) {1'b0}}, irl};
  wire [TW-1:0] dw_entry = (ky == 2'd0) ? f_entry + rows : (ky == 2'd2) ? f_entry - rows : f_entry;

  // channels: this bank holds channel number nth of the row, perhaps in the next entry
  wire [4:0] gap = {1'b0, bank} + 5'd9 - {1'b0, f_chmod};
  wire wraps = gap < 5'd9;
  wire [4:0] nth = wraps ? gap : gap - 5'd9;
  wire [63:0] ch_mask = (nth[1:0] == 2'd0) ? mask0 : mask1;

  wire [1:0] pick = chan_mode ? nth[1:0] : kx;
  wire on = f_valid && (chan_mode ? nth < {2'd0, f_chans} : ky_on);
  wire [63:0] lanes = chan_mode ? ch_mask & slot_mask(
      f_ky_slot[3:2], swl
  ) : dwrow_mode ? kx_mask : kx_mask & slot_mask(
      ky_slot, swl
  );
  wire [TW-1:0] at = chan_mode ? f_entry + {{(TW - 1) {1'b0}}, wraps} : dwrow_mode ? dw_entry : f_entry;

  reg we;
  reg [63:0] wlane;
  reg [AW-1:0] waddr;
  reg [511:0] wdata;
  always @* begin
    we    = on || fc_we;
    wlane = 64'd0;
    waddr = at[AW-1:0];
    wdata = view0;
    if (fc_we) begin
      wlane = 64'd1 << fc_at;
      waddr = fc_entry;
      wdata = {64{fc_byte}};
    end else if (on) begin
      wlane = lanes;
      case (pick)
        2'd0: wdata = view0;
        2'd1: wdata = view1;
        2'd2: wdata = view2;
        default: wdata = view3;
      endcase
    end
  end

  ram_1r1w #(
      .WIDTH(512),
      .DEPTH(ROWS),
      .LANE (8)
  ) u_ram (
      .clk  (clk),
      .we   (we),
      .wlane(wlane),
      .waddr(waddr),
      .wdata(wdata),
      .re   (re),
      .raddr(raddr),
      .rdata(rdata)
  );

  wire unused = &{1'b0, at, nth};

endmodule

`resetall
