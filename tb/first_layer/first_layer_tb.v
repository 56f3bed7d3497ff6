// SPDX-License-Identifier: Apache-2.0
//
// First use of the device by an integrator, with any Verilog simulator and nothing else: AI_ID is
// read, a layer is computed, its output is compared. Prints PASS or FAIL and ends.
//
// host_writes.hex holds what the host writes, in order: {address, data}. It pushes a layer with an
// interrupt, and its input map through the window. When the interrupt comes, the words of
// host_reads.hex are read and compared: {address, mask, data}. storage.hex is the storage, with the
// weights and tables of the layer. `openkpu integration` writes the three files from the golden model, and
// first_layer_sizes.vh with their lengths.
`resetall
`timescale 1ns/1ps
`default_nettype none
`include "first_layer_sizes.vh"

module first_layer_tb #(
  // array of the device
  parameter N_Y = 2,
  parameter N_Z = 2
);
  localparam LIMIT = 100000;  // cycles until the interrupt

  reg clk = 1'b0, rst = 1'b1;
  always #5 clk = ~clk;

  reg [63:0] writes [0:511];
  reg [95:0] reads [0:511];
  reg [31:0] storage [0:1023];
  integer n, bad, count;

  // host
  reg [31:0] haddr = 32'd0, hwdata = 32'd0;
  reg [1:0]  htrans = 2'b00;
  reg        hwrite = 1'b0;
  wire       hready;
  wire [1:0] hresp;
  wire [31:0] hrdata;
  wire       irq;

  // storage: no wait states
  wire [31:0] m_haddr, m_hwdata;
  wire [1:0]  m_htrans;
  wire        m_hwrite;
  reg  [31:0] m_hrdata;
  always @(posedge clk) if (m_htrans[1] && !m_hwrite) m_hrdata <= storage[m_haddr[11:2]];

  openkpu_top #(.N_Y(N_Y), .N_Z(N_Z)) dut (
    .clk(clk), .rst(rst),
    .s_ahb_hsel(1'b1), .s_ahb_haddr(haddr), .s_ahb_htrans(htrans), .s_ahb_hwrite(hwrite),
    .s_ahb_hsize(3'd2), .s_ahb_hburst(3'd0), .s_ahb_hprot(4'b0011), .s_ahb_hwdata(hwdata),
    .s_ahb_hready_in(hready), .s_ahb_hready_out(hready), .s_ahb_hresp(hresp), .s_ahb_hrdata(hrdata),
    .m_ahb_hbusreq(), .m_ahb_hlock(), .m_ahb_hgrant(1'b1), .m_ahb_haddr(m_haddr),
    .m_ahb_htrans(m_htrans), .m_ahb_hwrite(m_hwrite), .m_ahb_hsize(), .m_ahb_hburst(),
    .m_ahb_hprot(), .m_ahb_hwdata(m_hwdata), .m_ahb_hready(1'b1), .m_ahb_hresp(2'b00),
    .m_ahb_hrdata(m_hrdata), .m_ahb_ahead(), .irq(irq)
  );

  // one access; pins change on the falling edge
  task access(input write, input [31:0] addr, input [31:0] data);
    begin
      @(negedge clk);
      {htrans, hwrite, haddr} = {2'b10, write, addr};
      @(negedge clk);
      htrans = 2'b00;
      hwdata = data;
      #1;
      while (!hready) begin
        @(negedge clk);
        #1;
      end
      if (hresp != 2'b00) begin
        $display("address %h: refused", addr);
        bad = bad + 1;
      end
    end
  endtask

  initial begin
    $readmemh("host_writes.hex", writes, 0, `FIRST_LAYER_WRITES - 1);
    $readmemh("host_reads.hex", reads, 0, `FIRST_LAYER_READS - 1);
    $readmemh("storage.hex", storage, 0, `FIRST_LAYER_STORAGE - 1);
    bad = 0;
    repeat (4) @(negedge clk);
    rst = 1'b0;
    for (n = 0; n < `FIRST_LAYER_WRITES; n = n + 1) access(1'b1, writes[n][63:32], writes[n][31:0]);
    for (count = 0; !irq && count < LIMIT; count = count + 1) @(negedge clk);
    if (!irq) $display("no interrupt after %0d cycles", LIMIT);
    for (n = 0; irq && n < `FIRST_LAYER_READS; n = n + 1) begin
      access(1'b0, reads[n][95:64], 32'd0);
      if ((hrdata & reads[n][63:32]) !== (reads[n][31:0] & reads[n][63:32])) begin
        $display("address %h: %h, expected %h", reads[n][95:64], hrdata, reads[n][31:0]);
        bad = bad + 1;
      end
    end
    if (irq && bad == 0) $display("PASS: a layer, %0d words compared", `FIRST_LAYER_READS);
    else $display("FAIL: %0d words", bad);
    $finish;
  end
endmodule

`resetall
