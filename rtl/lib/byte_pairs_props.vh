  // Properties of byte_pairs. One arbitrary input byte is tracked.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  localparam FW = $clog2(4 * IN_BYTES + 1) + 1;
  (* anyseq *) reg f_pick;
  (* anyseq *) reg [CNT_W-1:0] f_which;
  reg f_held = 1'b0;
  reg [7:0] f_byte;
  reg [FW-1:0] f_ahead;  // bytes ahead of it
  wire [FW-1:0] f_level = (have ? 2 * IN_BYTES : 0) + (half ? IN_BYTES : 0) + left;
  wire [FW-1:0] f_take = take ? 2 * IN_BYTES : 0;
  wire f_enters = push && f_pick && !f_held && f_which < in_cnt;
  wire [8*IN_BYTES-1:0] f_rest;
  // all bytes held, oldest first
  wire [FW-1:0] f_behind = f_ahead - (have ? 2 * IN_BYTES : 0);
  wire [7:0] f_there = (have && f_ahead < 2 * IN_BYTES) ? out_data[8*f_ahead+:8] :
      (half && f_behind < IN_BYTES) ? first[8*f_behind+:8] :
      f_rest[8*(f_behind-(half?IN_BYTES : 0))+:8];

  genvar f;
  generate
    for (f = 0; f < IN_BYTES; f = f + 1) begin : g_f
      assign f_rest[8*f+:8] = g_lane[f].rest;
    end
  endgenerate
  always @(posedge clk) begin
    if (rst || flush) f_held <= 1'b0;
    else f_held <= f_enters || (f_held && f_ahead >= f_take);
    if (f_enters) f_byte <= in_data[8*(in_off+f_which)+:8];
    f_ahead <= f_enters ? f_level - f_take + f_which : f_ahead - f_take;
  end

  reg f_ran = 1'b0;
  always @(posedge clk) f_ran <= 1'b1;
  // bytes accepted and not yet output
  reg [FW-1:0] f_total = 0;
  always @(posedge clk) f_total <= (rst || flush) ? 0 : f_total + (push ? in_cnt : 0) - f_take;

  always @(posedge clk) begin
    if (!rst) begin
      //: The valid bytes lie within the input word.
      in_word : assume (in_off + in_cnt <= IN_BYTES);
      //: The consumer takes a window only when one is available.
      take_there : assume (!take || have);
      //: A byte is in the window at the position given by the bytes ahead of it.
      if (f_held && have && f_ahead < 2 * IN_BYTES) in_order : assert (out_data[8*f_ahead+:8] == f_byte);
      //: A byte is counted from entry to exit: none is lost.
      if (f_held) none_lost : assert (f_ahead < f_level);
      //: The level equals the bytes accepted and not yet output: none is duplicated.
      if (f_ran) none_doubled : assert (f_total == f_level);
      //: (invariant) The tracked byte is stored where the bytes ahead of it end.
      if (f_held) stored : assert (f_there == f_byte);
      //: The window is zero while none is available.
      if (!have) zero_when_empty : assert (f_first || out_data == 0);
      //: A word is accepted unless a window and a word are pending.
      flags : assert (in_ready == (f_level < 3 * IN_BYTES));
      //: The tracked byte leaves, and was not the first.
      tracked_leaves : cover (f_held && take && f_ahead == 3);
      //: All registers are full.
      becomes_full : cover (f_level == 4 * IN_BYTES - 1);
    end
  end
  reg f_first = 1'b1;
  always @(posedge clk) f_first <= 1'b0;
