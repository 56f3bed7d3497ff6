// SPDX-License-Identifier: Apache-2.0
//
// ahb_slave: AMBA 2.0 AHB slave of the device, 32 bits wide.
//
// Address map (haddr[21:0]; the decoder uses the bits above): 0x000000..0x000FFF registers,
// 0x200000..0x3FFFFF AI RAM (as far as it is implemented). How it works: the address phase is registered;
// the data phase drives one of the two sides with it. Registers: words only, no wait states; they receive
// the address in the address phase and register its decode. A command has the longest path and is decoded
// here. AI RAM: bytes, half-words, words; the bus is stalled until window_ack.
// An access outside the map, a register access that is not a word, a misaligned access, one wider than 32
// bits, or one rejected by reg_err receives the two-cycle ERROR response and has no side effect; so does a
// user write (HPROT[1] = 0) if only privileged writes are accepted. IDLE and BUSY receive a zero-wait OKAY
// and have no side effect either.
// Handshake: reg_wr and reg_rd are one-cycle strobes; reg_next carries their word address one cycle
// earlier; reg_rdata and reg_err are valid in the same cycle. window_req is high up to and including the
// cycle of window_ack; if it is high in the next cycle, that is a new access.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_regs.vh"

module ahb_slave #(
    // 64-byte rows of the AI RAM, 1..32768
    parameter AI_RAM_ROWS = 32768,
    // 1: only privileged writes are accepted
    parameter PRIVILEGED  = 0
) (
    // clock, synchronous reset
    input  wire        clk,
    input  wire        rst,
    // AHB slave port
    input  wire        s_ahb_hsel,
    input  wire [31:0] s_ahb_haddr,
    input  wire [ 1:0] s_ahb_htrans,
    input  wire        s_ahb_hwrite,
    input  wire [ 2:0] s_ahb_hsize,
    input  wire [ 2:0] s_ahb_hburst,
    input  wire [ 3:0] s_ahb_hprot,
    input  wire [31:0] s_ahb_hwdata,
    input  wire        s_ahb_hready_in,
    output wire        s_ahb_hready_out,
    output wire [ 1:0] s_ahb_hresp,
    output wire [31:0] s_ahb_hrdata,
    // register side; word address of the next cycle's access; the access is a write to AI_CTRL
    output wire        reg_wr,
    output wire        reg_rd,
    output wire [ 9:0] reg_next,
    output wire        reg_command,
    output wire [31:0] reg_wdata,
    input  wire [31:0] reg_rdata,
    input  wire        reg_err,
    // AI RAM side, byte address inside the window
    output wire        window_req,
    output wire        window_we,
    output wire [20:0] window_addr,
    output wire [ 3:0] window_wstrb,
    output wire [31:0] window_wdata,
    input  wire        window_ack,
    input  wire [31:0] window_rdata
);

  localparam [1:0] RESP_OKAY = 2'b00;
  localparam [1:0] RESP_ERROR = 2'b01;
  localparam [15:0] ROWS = AI_RAM_ROWS[15:0];

  localparam [2:0] IDLE = 3'd0;
  localparam [2:0] REGS = 3'd1;
  localparam [2:0] RAM = 3'd2;
  localparam [2:0] FAULT = 3'd3;
  localparam [2:0] FAULT2 = 3'd4;

  reg [2:0] state;
  reg write;
  reg [20:0] addr;
  reg [2:0] size;

  // classification of the address phase
  wire start = s_ahb_hsel && s_ahb_hready_in && s_ahb_htrans[1];
  wire         aligned = (s_ahb_hsize == 3'd0) ||
                         (s_ahb_hsize == 3'd1 && !s_ahb_haddr[0]) ||
                         (s_ahb_hsize == 3'd2 && s_ahb_haddr[1:0] == 2'd0);
  wire in_ram = s_ahb_haddr[21] && ({1'b0, s_ahb_haddr[20:6]} < ROWS);
  wire in_regs = (s_ahb_haddr[21:12] == 10'd0) && (s_ahb_hsize == 3'd2);
  wire forbidden = (PRIVILEGED != 0) && s_ahb_hwrite && !s_ahb_hprot[1];
  wire [2:0] kind = (!aligned || forbidden) ? FAULT : in_ram ? RAM : in_regs ? REGS : FAULT;

  wire refused = (state == REGS) && reg_err;
  // the current data phase ends in this cycle
  wire         ends = (state == IDLE) || (state == REGS && !reg_err) ||
                      (state == RAM && window_ack) || (state == FAULT2);

  always @(posedge clk) begin
    if (rst) begin
      state <= IDLE;
    end else begin
      case (state)
        IDLE:    state <= start ? kind : IDLE;
        REGS:    state <= refused ? FAULT2 : start ? kind : IDLE;
        RAM:     state <= !window_ack ? RAM : start ? kind : IDLE;
        FAULT:   state <= FAULT2;
        FAULT2:  state <= start ? kind : IDLE;
        default: state <= IDLE;
      endcase
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      write <= 1'b0;
      addr  <= 21'd0;
      size  <= 3'd0;
    end else if (state != RAM || window_ack) begin
      write <= s_ahb_hwrite;
      addr  <= s_ahb_haddr[20:0];
      size  <= s_ahb_hsize;
    end
  end
  reg command;
  // the data phase of a register is the cycle after its address phase
  assign reg_next = s_ahb_haddr[11:2];
  always @(posedge clk) command <= s_ahb_hwrite && reg_next == `REG_AI_CTRL;

  // byte lanes of a RAM write
  reg [3:0] strobes;
  always @* begin
    case (size)
      3'd0:    strobes = 4'b0001 << addr[1:0];
      3'd1:    strobes = addr[1] ? 4'b1100 : 4'b0011;
      default: strobes = 4'b1111;
    endcase
  end

  assign s_ahb_hready_out = ends;
  assign s_ahb_hresp = (state == FAULT || state == FAULT2 || refused) ? RESP_ERROR : RESP_OKAY;
  assign s_ahb_hrdata = (state == REGS && !write) ? reg_rdata :
                        (state == RAM && !write && window_ack) ? window_rdata : 32'd0;

  assign reg_wr = (state == REGS) && write;
  assign reg_rd = (state == REGS) && !write;
  assign reg_command = (state == REGS) && command;
  assign reg_wdata = s_ahb_hwdata;

  assign window_req = (state == RAM);
  assign window_we = write;
  assign window_addr = addr;
  assign window_wstrb = write ? strobes : 4'b0000;
  assign window_wdata = s_ahb_hwdata;

  // the burst type and the other protection bits have no effect here; the decoder has used the top bits
  wire _unused_ok = &{1'b0, s_ahb_hburst, s_ahb_hprot, s_ahb_haddr[31:22], s_ahb_htrans[0]};

`ifdef FORMAL_ahb_slave
  `include "ahb_slave_props.vh"
`endif

endmodule

`resetall
