  // For proofs: a word of the memory that the module around it looks at, without a port. The names are
  // joined when Yosys flattens the design (attribute hierconn).
  wire [   AW-1:0] f_look;
  wire [WIDTH-1:0] f_seen = mem[f_look];
