  // For proofs: a word of the memory that the module around it looks at, without a port. The names are
  // joined when Yosys flattens the design (attribute hierconn).
  wire [   AW-1:0] f_look;
  wire [WIDTH-1:0] f_seen = mem[f_look];
  // ... and all words of a memory of four
  generate
    if (DEPTH == 4) begin : g_four
      wire [4*WIDTH-1:0] f_all = {mem[3], mem[2], mem[1], mem[0]};
    end
  endgenerate
