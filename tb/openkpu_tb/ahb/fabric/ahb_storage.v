// SPDX-License-Identifier: Apache-2.0
//
// The storage module: an STT-MRAM behind an AMBA 2.0 slave, 64 K x 32 bit in the patent's embodiment.
// Non-volatile: reset does not touch mem, which the bench loads and reads through a back door.
// Timing by configuration: wait states of the first beat, of a burst's later beats, and of a write
// (slower than a read, as in the real cell), plus random ones. Can answer ERROR in an address window,
// RETRY and SPLIT at random; a transfer so answered has no effect.
//
// A transfer is taken with HSEL & HREADY & HTRANS[1]. HRDATA is unknown except in the last cycle of
// an OKAY read, so that a master that looks at another time is found on a 4-state simulator.
`resetall
`timescale 1ns/1ps
`default_nettype none

module ahb_storage #(
  // width of the data bus, and 32-bit words of storage
  parameter AHB_W = 32,
  parameter DEPTH = 65536
) (
  input  wire             clk,
  input  wire             rst,
  input  wire [31:0]      rnd,
  // wait states: first read beat, later read beats, writes; chance in 256 of another one
  input  wire [4:0]       cfg_rd_wait,
  input  wire [4:0]       cfg_seq_wait,
  input  wire [4:0]       cfg_wr_wait,
  input  wire [7:0]       cfg_wait_prob,
  // chances in 256 of RETRY and SPLIT for transfers of the device; ERROR for addresses lo <= a < hi of
  // any of three windows
  input  wire [7:0]       cfg_retry_prob,
  input  wire [7:0]       cfg_split_prob,
  input  wire [31:0]      cfg_err_lo,
  input  wire [31:0]      cfg_err_hi,
  input  wire [31:0]      cfg_err1_lo,
  input  wire [31:0]      cfg_err1_hi,
  input  wire [31:0]      cfg_err2_lo,
  input  wire [31:0]      cfg_err2_hi,
  // the device's next transfer gets no answer; or SPLIT, and is not called back; until this is 0
  input  wire             cfg_mute,
  input  wire             cfg_forget,
  // the transfer in the address phase is the device's
  input  wire             from_dut,
  // AHB slave
  input  wire             hsel,
  input  wire [31:0]      haddr,
  input  wire [1:0]       htrans,
  input  wire             hwrite,
  input  wire [2:0]       hsize,
  input  wire [AHB_W-1:0] hwdata,
  input  wire             hready_in,
  output reg              hready_out,
  output reg  [1:0]       hresp,
  output wire [AHB_W-1:0] hrdata,
  // the device may try a SPLIT transfer again (one cycle)
  output reg              hsplit
);
  localparam LANES = AHB_W / 32;
  localparam LANE_BITS = (LANES == 4) ? 2 : (LANES == 2) ? 1 : 0;
  localparam [1:0] OKAY = 2'b00, ERROR = 2'b01, RETRY = 2'b10, SPLIT = 2'b11;
  localparam [1:0] IDLE = 2'd0, BUSY = 2'd1, LAST = 2'd2, REFUSE = 2'd3;

  reg [31:0] mem [0:DEPTH-1];

  reg  [1:0]  state;
  reg  [5:0]  waits;
  reg  [31:0] addr;
  reg         write;
  reg  [2:0]  size;
  reg  [1:0]  answer;
  reg  [5:0]  split_time;
  reg         muted;

  wire take     = hsel & hready_in & htrans[1];
  wire in_error = ((haddr >= cfg_err_lo) & (haddr < cfg_err_hi)) | ((haddr >= cfg_err1_lo) & (haddr < cfg_err1_hi)) |
                  ((haddr >= cfg_err2_lo) & (haddr < cfg_err2_hi));
  wire retry    = from_dut & (rnd[7:0] < cfg_retry_prob);
  wire split    = from_dut & (cfg_forget | (rnd[15:8] < cfg_split_prob));
  wire [5:0] more   = (rnd[23:16] < cfg_wait_prob) ? {4'd0, rnd[25:24]} + 6'd1 : 6'd0;
  wire [4:0] base   = hwrite ? cfg_wr_wait : htrans[0] ? cfg_seq_wait : cfg_rd_wait;
  wire       mute   = from_dut & cfg_mute;
  wire [5:0] n_wait = {1'b0, base} + more + {5'd0, mute};
  wire [1:0] plan   = in_error ? ERROR : split ? SPLIT : retry ? RETRY : OKAY;

  wire        done  = (state == LAST) & (answer == OKAY);
  wire [31:0] index = addr >> (2 + LANE_BITS) << LANE_BITS;

  genvar lane;
  generate
    for (lane = 0; lane < LANES; lane = lane + 1) begin : g_lane
      wire [31:0] word = index + lane;
      assign hrdata[32*lane +: 32] = (done & ~write) ? mem[word] : 32'hxxxx_xxxx;
      integer b;
      always @(posedge clk) begin
        if (done & write) begin
          for (b = 0; b < 4; b = b + 1) begin
            // byte lane 4*lane+b of the bus is written when the transfer covers it
            if (((4 * lane + b) >> size) == ((addr & (AHB_W / 8 - 1)) >> size))
              mem[word][8*b +: 8] <= hwdata[32*lane + 8*b +: 8];
          end
        end
      end
    end
  endgenerate

  always @(posedge clk) begin
    if (rst) begin
      state      <= IDLE;
      hready_out <= 1'b1;
      hresp      <= OKAY;
      waits      <= 6'd0;
      addr       <= 32'd0;
      write      <= 1'b0;
      size       <= 3'd0;
      answer     <= OKAY;
      split_time <= 6'd0;
      muted      <= 1'b0;
      hsplit     <= 1'b0;
    end else begin
      hsplit     <= (split_time == 6'd1) & ~cfg_forget;
      muted      <= cfg_mute & (take ? from_dut : muted);
      split_time <= ((state == REFUSE) & (answer == SPLIT)) ? {1'b0, rnd[31:27]} + 6'd2
                  : (split_time == 6'd0) ? 6'd0
                  : (split_time == 6'd1 & cfg_forget) ? 6'd1 : split_time - 6'd1;
      if (take) begin
        addr   <= haddr;
        write  <= hwrite;
        size   <= hsize;
        answer <= plan;
        waits  <= n_wait;
        if (n_wait != 6'd0)    begin state <= BUSY;   hready_out <= 1'b0; hresp <= OKAY; end
        else if (plan == OKAY) begin state <= LAST;   hready_out <= 1'b1; hresp <= OKAY; end
        else                   begin state <= REFUSE; hready_out <= 1'b0; hresp <= plan; end
      end else begin
        case (state)
          BUSY: begin
            waits <= muted ? waits : waits - 6'd1;
            if (muted | waits != 6'd1) state <= BUSY;
            else if (answer == OKAY) begin state <= LAST; hready_out <= 1'b1; end
            else                     begin state <= REFUSE; hresp <= answer; end
          end
          REFUSE:  begin state <= LAST; hready_out <= 1'b1; end
          default: begin state <= IDLE; hready_out <= 1'b1; hresp <= OKAY; end
        endcase
      end
    end
  end
endmodule

`resetall
