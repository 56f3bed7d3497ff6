  // For proofs: gives the enclosing module access to a word of the memory, without a port. Yosys joins
  // the names when it flattens the design (attribute hierconn).
  wire [   AW-1:0] f_look;
  wire [WIDTH-1:0] f_seen = mem[f_look];
  // ... and all words of a memory of four
  generate
    if (DEPTH == 4) begin : g_four
      wire [4*WIDTH-1:0] f_all = {mem[3], mem[2], mem[1], mem[0]};
    end
  endgenerate
