// SPDX-License-Identifier: Apache-2.0
//
// ai_ram_arb: arbitrates the read and the write port of the AI RAM.
//
// How it works: readers by priority: the tile fill, the result reader, the reader of kept weights and the
// host; writers by priority: the write-back, the pixel writer and the host. A lower-priority requester
// that has waited PATIENCE cycles goes first once, because a depthwise layer may use every cycle and
// would starve it; kept weights wait half as long, so that a map read in every cycle does not throttle
// the loader. The timeout is registered, and the fill and the write-back are held off by these registers
// alone: a late one still waits. Otherwise every request would be in the path of their grants. Words have
// PATH bytes; host accesses are 32-bit words inside one of them.
// Handshake: a requester holds req until gnt (same cycle); read data are valid READ cycles after gnt. The
// host holds window_req until the one-cycle window_ack, which carries the read data.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module ai_ram_arb #(
    // number of 64-byte rows
    parameter ROWS     = 32768,
    // maximum wait of a lower-priority requester in cycles
    parameter PATIENCE = 8,
    // bytes of a word: 16, 32, 64 or 128
    parameter PATH     = 64,
    // bytes per write of the pixel writer, replicated over the word: 4 or PATH
    parameter PIECE    = PATH,
    // cycles from a grant to the data of the read, see ai_ram
    parameter READ     = 1,
    // derived, not to be set: bits of a byte index in a word, of a word address inside the memory
    parameter PB       = $clog2(PATH),
    parameter AW       = $clog2(ROWS) + 6 - PB
) (
    // clock and synchronous reset
    input  wire              clk,
    input  wire              rst,
    // tile fill, read
    input  wire              fill_req,
    input  wire [   20-PB:0] fill_word,
    output wire              fill_gnt,
    // result reader, read
    input  wire              unload_req,
    input  wire [   20-PB:0] unload_word,
    output wire              unload_gnt,
    // reader of kept weights
    input  wire              kept_req,
    input  wire [   20-PB:0] kept_word,
    output wire              kept_gnt,
    // write-back of the output stage
    input  wire              writeback_req,
    input  wire [   20-PB:0] writeback_word,
    input  wire [  PATH-1:0] writeback_be,
    input  wire [8*PATH-1:0] writeback_data,
    output wire              writeback_gnt,
    // pixel writer
    input  wire              load_req,
    input  wire [   20-PB:0] load_word,
    input  wire [  PATH-1:0] load_be,
    input  wire [8*PATH-1:0] load_data,
    output wire              load_gnt,
    // host window, byte address
    input  wire              window_req,
    input  wire              window_we,
    input  wire [      20:0] window_addr,
    input  wire [       3:0] window_wstrb,
    input  wire [      31:0] window_wdata,
    output reg               window_ack,
    output wire [      31:0] window_rdata,
    // memory
    output wire              re,
    output wire [    AW-1:0] raddr,
    input  wire [8*PATH-1:0] rdata,
    output wire              we,
    output wire [    AW-1:0] waddr,
    output wire [  PATH-1:0] wbe,
    output wire [8*PATH-1:0] wdata
);

  // host words per word
  localparam PARTS = PATH / 4;
  localparam [3:0] LAST_WAIT = PATIENCE[3:0] - 4'd1;
  localparam [3:0] KEPT_LAST = {1'b0, PATIENCE[3:1]} - 4'd1;

  // cycles waited, and timeout; for the host as a reader and as a writer
  reg [3:0] unload_wait;
  reg [3:0] kept_wait;
  reg [3:0] load_wait;
  reg [3:0] window_wait;
  reg unload_urgent;
  reg kept_urgent;
  reg load_urgent;
  reg window_rfirst;
  reg window_wfirst;
  // one of the latter holds off the fill, the write-back
  reg fill_held;
  reg writeback_held;

  // host reads in flight; a request being read or acknowledged is not a new one
  reg [READ-1:0] reading;
  wire window_rgnt;
  wire [READ:0] reads = {reading, window_rgnt};
  wire host_new = window_req && !window_ack && (READ == 1 || reading == {READ{1'b0}});
  wire host_rd = host_new && !window_we;
  wire host_wr = host_new && window_we;

  // read port
  assign fill_gnt    = fill_req && !fill_held;
  assign unload_gnt  = unload_req && !window_rfirst && !kept_urgent && (unload_urgent || !fill_req);
  assign kept_gnt    = kept_req && !window_rfirst && (kept_urgent || !(fill_req || unload_req));
  assign window_rgnt = host_rd && (window_rfirst || !(fill_req || unload_req || kept_req));
  assign re = fill_req || unload_req || kept_req || host_rd;
  wire [AW-1:0] window_word = window_addr[PB+:AW];
  assign raddr = fill_gnt ? fill_word[AW-1:0] : unload_gnt ? unload_word[AW-1:0] :
      kept_gnt ? kept_word[AW-1:0] : window_word;

  // write port
  assign writeback_gnt = writeback_req && !writeback_held;
  assign load_gnt = load_req && !window_wfirst && (load_urgent || !writeback_req);
  wire window_wgnt = host_wr && (window_wfirst || !(writeback_req || load_req));
  assign we = writeback_gnt || load_gnt || window_wgnt;
  assign waddr = writeback_gnt ? writeback_word[AW-1:0] : load_gnt ? load_word[AW-1:0] : window_word;
  wire [PATH-1:0] window_be;
  assign wbe = writeback_gnt ? writeback_be : load_gnt ? load_be : window_be;
  wire [8*PIECE-1:0] piece = load_gnt ? load_data[8*PIECE-1:0] : {(PIECE / 4) {window_wdata}};
  assign wdata = writeback_gnt ? writeback_data : {(PATH / PIECE) {piece}};

  // host word within the word, one bit for each; those being read
  wire [PARTS-1:0] part = {{(PARTS - 1) {1'b0}}, 1'b1} << window_addr[PB-1:2];
  reg  [PARTS-1:0] part_read;
  genvar g;
  generate
    for (g = 0; g < PARTS; g = g + 1) begin : g_part
      assign window_be[4*g+:4] = window_wstrb & {4{part[g]}};
    end
  endgenerate

  reg [31:0] read_part;
  integer i;
  always @* begin
    read_part = 32'd0;
    for (i = 0; i < PARTS; i = i + 1) begin
      read_part = read_part | ({32{part_read[i]}} & rdata[32*i+:32]);
    end
  end
  assign window_rdata = read_part;

  // stalled in this cycle; the last cycle of the wait
  wire unload_waits = unload_req && !unload_gnt;
  wire kept_waits = kept_req && !kept_gnt;
  wire load_waits = load_req && !load_gnt;
  wire window_waits = host_new && !window_rgnt && !window_wgnt;
  wire unload_last = unload_wait == LAST_WAIT;
  wire kept_last = kept_wait == KEPT_LAST;
  wire load_last = load_wait == LAST_WAIT;
  wire window_last = window_wait == LAST_WAIT;
  wire unload_next = unload_waits && unload_last;
  wire kept_next = kept_waits && kept_last;
  wire load_next = load_waits && load_last;
  wire window_rnext = window_waits && window_last && !window_we;
  wire window_wnext = window_waits && window_last && window_we;

  always @(posedge clk) begin
    if (rst) begin
      unload_wait <= 4'd0;
      kept_wait <= 4'd0;
      load_wait <= 4'd0;
      window_wait <= 4'd0;
      unload_urgent <= 1'b0;
      kept_urgent <= 1'b0;
      load_urgent <= 1'b0;
      window_rfirst <= 1'b0;
      window_wfirst <= 1'b0;
      fill_held <= 1'b0;
      writeback_held <= 1'b0;
      window_ack <= 1'b0;
      reading <= {READ{1'b0}};
    end else begin
      unload_wait <= unload_waits ? unload_wait + {3'd0, !unload_last} : 4'd0;
      unload_urgent <= unload_next;
      kept_wait <= kept_waits ? kept_wait + {3'd0, !kept_last} : 4'd0;
      kept_urgent <= kept_next;
      load_wait <= load_waits ? load_wait + {3'd0, !load_last} : 4'd0;
      load_urgent <= load_next;
      window_wait <= window_waits ? window_wait + {3'd0, !window_last} : 4'd0;
      window_rfirst <= window_rnext;
      window_wfirst <= window_wnext;
      fill_held <= unload_next || kept_next || window_rnext;
      writeback_held <= load_next || window_wnext;
      window_ack <= reads[READ-1] || window_wgnt;
      reading <= reads[READ-1:0];
    end
  end

  always @(posedge clk) begin
    if (window_rgnt) part_read <= part;
  end

  generate
    if (ROWS < 16 || ROWS > 32768) begin : g_illegal
      ILLEGAL_AI_RAM_ROWS_16_TO_32768 u_illegal ();
    end
    if (PATH != 16 && PATH != 32 && PATH != 64 && PATH != 128) begin : g_illegal_path
      ILLEGAL_PATH_16_32_64_OR_128 u_illegal ();
    end
  endgenerate

  // byte enables are in window_wstrb; a piece is replicated by its writer
  wire unused = &{1'b0, load_data, window_addr, fill_word, unload_word, kept_word, writeback_word, load_word};
  wire unused_read = &{1'b0, reads, reading};

endmodule

`resetall
