// SPDX-License-Identifier: Apache-2.0
//
// Rules that AMBA 2.0 puts on a master, checked at its port in every cycle. Numbers are those of the
// list in tb/openkpu_tb/ahb/checkers/README.md; rule[n] is sticky, errors counts every violation.
//
// The checker follows ownership by itself: own is HGRANT at the last edge with HREADY high, and the
// data phase belongs to whoever owned the address phase before it. Passive: it drives nothing.
`resetall
`timescale 1ns/1ps
`default_nettype none

module ahb_master_checker #(
  // width of the data bus; cycles within which a wait and a request must end
  parameter DATA_W = 32,
  parameter LIMIT  = 4096
) (
  input  wire              clk,
  input  wire              rst,
  input  wire              hbusreq,
  input  wire              hlock,
  input  wire              hgrant,
  input  wire [31:0]       haddr,
  input  wire [1:0]        htrans,
  input  wire              hwrite,
  input  wire [2:0]        hsize,
  input  wire [2:0]        hburst,
  input  wire [3:0]        hprot,
  input  wire [DATA_W-1:0] hwdata,
  input  wire              hready,
  input  wire [1:0]        hresp,
  output reg  [36:0]       rule,
  output reg  [31:0]       errors
);
  localparam [1:0] IDLE = 2'b00, BUSY = 2'b01, NONSEQ = 2'b10, SEQ = 2'b11;
  localparam [1:0] OKAY = 2'b00, ERROR = 2'b01;
  localparam BYTES    = DATA_W / 8;
  localparam MAX_SIZE = (DATA_W == 128) ? 4 : (DATA_W == 64) ? 3 : 2;

  wire [44:0] control = {haddr, htrans, hwrite, hsize, hburst, hprot};

  // previous cycle
  reg              seen_reset = 1'b0;
  reg              prev_rst, prev_own, prev_hready, prev_hbusreq, prev_hlock;
  reg [1:0]        prev_hresp;
  reg [44:0]       prev_control;
  reg [DATA_W-1:0] prev_hwdata;
  wire [1:0]       prev_htrans = prev_control[12:11];

  // ownership and the data phase
  reg        own, dp_valid, dp_write;
  reg [31:0] dp_addr;
  reg [2:0]  dp_size;

  // the burst in progress
  reg        b_active, b_free, b_lock;
  reg [31:0] b_base, b_next;
  reg [4:0]  b_left;          // beats still to come; 31 for INCR
  reg        b_write;
  reg [2:0]  b_size, b_burst;
  reg [3:0]  b_prot;

  // what must come next: the rest of a broken fixed burst, or a retried transfer
  reg              rest_pending, retry_pending, retry_data_check;
  reg [31:0]       rest_addr, retry_addr;
  reg              rest_write, retry_write;
  reg [2:0]        retry_size;
  reg [DATA_W-1:0] retry_data;
  reg [15:0]       wait_time, grant_time;

  function [4:0] beats;
    input [2:0] burst;
    case (burst)
      3'd0:       beats = 5'd1;
      3'd2, 3'd3: beats = 5'd4;
      3'd4, 3'd5: beats = 5'd8;
      3'd6, 3'd7: beats = 5'd16;
      default:    beats = 5'd31;
    endcase
  endfunction

  function [31:0] next_address;
    input [31:0] addr;
    input [2:0]  size;
    input [2:0]  burst;
    reg   [31:0] step, span;
    begin
      step = 32'd1 << size;
      span = {27'd0, beats(burst)} << size;
      if (burst[0] | (burst == 3'd0)) next_address = addr + step;
      else next_address = (addr & ~(span - 32'd1)) | ((addr + step) & (span - 32'd1));
    end
  endfunction

  // the transfer covers this byte of the bus
  function covered;
    input [31:0] lane;
    input [31:0] addr;
    input [2:0]  size;
    covered = ((lane >> size) == ((addr & (BYTES - 1)) >> size));
  endfunction

  wire fixed   = b_active & (b_burst > 3'd1);
  wire first   = own & (htrans == NONSEQ);
  wire later   = own & htrans[0];
  wire refused = dp_valid & (hresp > ERROR);
  wire held    = prev_own & ~prev_hready & (prev_hresp == OKAY);

  // one bit per rule, this cycle
  reg [36:0] hit;
  reg        known;
  integer    i;
  always @(posedge clk) begin : check // once per cycle, on the values before the edge
    hit   = 37'd0;
    known = (^{htrans, hbusreq} !== 1'bx);
    if (rst) begin
      hit[1] = prev_rst & (htrans !== IDLE);
    end else if (seen_reset) begin
      hit[1]  = prev_rst & (htrans !== IDLE);
      hit[23] = ~known | (own & (htrans != IDLE) & (^control === 1'bx));
      // stability: IDLE may become NONSEQ, BUSY may become SEQ
      if (held & (prev_htrans == BUSY))
        hit[2] = (control[44:13] != prev_control[44:13]) | ~htrans[0]
               | (control[10:0] != prev_control[10:0]);
      else if (held & (prev_htrans != IDLE)) hit[2] = (control != prev_control);
      else                                   hit[2] = held & htrans[0];
      hit[3] = dp_valid & dp_write & ~prev_hready & (prev_hresp == OKAY) & (hwdata !== prev_hwdata);
      // bursts
      hit[4]  = later & ~b_active;
      hit[5]  = later & b_active & (b_burst == 3'd0);
      hit[6]  = own & (htrans == BUSY) & (~b_active | (b_left == 5'd0));
      hit[7]  = later & b_active & ~(~b_burst[0] & (b_burst != 3'd0)) & (b_left != 5'd0)
              & (haddr != b_next);
      hit[8]  = later & b_active & ~b_burst[0] & (b_burst != 3'd0) & (b_left != 5'd0)
              & (haddr != b_next);
      hit[9]  = later & b_active & ({hwrite, hsize, hburst, hprot} != {b_write, b_size, b_burst, b_prot});
      hit[10] = (fixed & (b_left != 5'd0) & ~b_free & own & ~htrans[0] & ~refused)
              | (own & (htrans == SEQ) & fixed & (b_left == 5'd0));
      hit[11] = later & b_active & (haddr[31:10] != b_base[31:10]);
      hit[12] = own & htrans[1] & ((haddr & ((32'd1 << hsize) - 32'd1)) != 32'd0);
      hit[13] = own & htrans[1] & (hsize > MAX_SIZE);
      for (i = 0; i < BYTES; i = i + 1)
        if (dp_valid & dp_write & hready & (hresp == OKAY) & covered(i, dp_addr, dp_size))
          hit[14] = hit[14] | (^hwdata[8*i +: 8] === 1'bx);
      hit[15] = ~own & (htrans != IDLE);
      hit[17] = own & (htrans == SEQ) & b_active & (b_burst == 3'd1) & ~prev_hbusreq;
      hit[18] = first & rest_pending & ~retry_pending
              & ((haddr != rest_addr) | (hwrite != rest_write));
      hit[19] = dp_valid & ~prev_hready & (prev_hresp > ERROR) & (htrans != IDLE);
      hit[20] = (first & retry_pending
                 & ((haddr != retry_addr) | (hwrite != retry_write) | (hsize != retry_size)))
              | (retry_data_check & dp_valid & hready & (hresp == OKAY) & (hwdata !== retry_data));
      hit[22] = (first & hlock & ~prev_hlock) | (own & (htrans == SEQ) & b_lock & ~hlock);
      hit[36] = (wait_time > LIMIT) | (grant_time > LIMIT);
    end
    rule   <= seen_reset ? rule | hit : 37'd0;
    errors <= seen_reset ? errors + {31'd0, hit !== 37'd0} : 32'd0;
  end

  always @(posedge clk) begin
    if (rst) begin
      seen_reset <= 1'b1;
      {own, dp_valid, dp_write, b_active, b_free, b_lock} <= 6'd0;
      {rest_pending, retry_pending, retry_data_check} <= 3'd0;
      wait_time  <= 16'd0;
      grant_time <= 16'd0;
      b_left     <= 5'd0;
    end else begin
      wait_time  <= (hready | ~dp_valid) ? 16'd0 : wait_time + 16'd1;
      grant_time <= (hgrant | ~hbusreq) ? 16'd0 : grant_time + 16'd1;
      // a refused transfer must come again; an error frees the master from the rest of its burst
      if (refused & ~hready) begin
        retry_pending      <= 1'b1;
        retry_addr         <= dp_addr;
        retry_write        <= dp_write;
        retry_size         <= dp_size;
        retry_data         <= hwdata;
        b_active           <= 1'b0;
        rest_pending       <= 1'b0;
      end
      if (dp_valid & (hresp == ERROR) & ~hready) begin
        b_free       <= 1'b1;
        rest_pending <= 1'b0;
      end
      if (hready) begin
        own      <= hgrant;
        dp_valid <= own & htrans[1];
        dp_write <= hwrite;
        dp_addr  <= haddr;
        dp_size  <= hsize;
        retry_data_check <= first & retry_pending & retry_write;
        if (first) begin
          b_base       <= haddr;
          b_next       <= next_address(haddr, hsize, hburst);
          b_left       <= beats(hburst) - ((hburst == 3'd1) ? 5'd0 : 5'd1);
          {b_write, b_size, b_burst, b_prot} <= {hwrite, hsize, hburst, hprot};
          b_active     <= hgrant;
          b_free       <= 1'b0;
          b_lock       <= hlock;
          retry_pending <= 1'b0;
          rest_pending <= ~hgrant & (hburst > 3'd1);
          rest_addr    <= next_address(haddr, hsize, hburst);
          rest_write   <= hwrite;
        end else if (own & (htrans == SEQ)) begin
          b_next       <= next_address(haddr, hsize, hburst);
          b_left       <= (b_burst == 3'd1 || b_left == 5'd0) ? b_left : b_left - 5'd1;
          b_active     <= b_active & hgrant;
          rest_pending <= fixed & ~hgrant & (b_left > 5'd1) & ~b_free;
          rest_addr    <= next_address(haddr, hsize, hburst);
          rest_write   <= b_write;
        end else if (own & (htrans == IDLE)) begin
          b_active     <= 1'b0;
        end else if (own & (htrans == BUSY)) begin
          b_active     <= b_active & hgrant;
          rest_pending <= fixed & ~hgrant & (b_left != 5'd0) & ~b_free;
          rest_addr    <= haddr;
          rest_write   <= b_write;
        end
      end
    end
    prev_rst     <= rst;
    prev_own     <= own & ~rst;
    prev_hready  <= hready;
    prev_hresp   <= hresp;
    prev_control <= control;
    prev_hwdata  <= hwdata;
    prev_hbusreq <= hbusreq;
    prev_hlock   <= hlock;
  end


endmodule

`resetall
