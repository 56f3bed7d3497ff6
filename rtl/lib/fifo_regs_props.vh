  // Properties of fifo_regs. One arbitrary input word is tracked, with its register.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  localparam FW = $clog2(DEPTH + 1) + 1;
  wire f_pop = out_valid && out_ready;
  wire [DEPTH*WIDTH-1:0] f_all;
  reg [FW-1:0] f_count;  // words held
  reg [FW-1:0] f_before;  // words in registers ahead of the tracked one
  (* anyseq *) reg f_pick;
  reg f_held = 1'b0;
  reg [WIDTH-1:0] f_word;
  reg [FW-1:0] f_ahead;  // words that entered before it and have not left
  reg [FW-1:0] f_place;
  wire f_enters = push && f_pick && !f_held;
  wire f_leaves = f_held && f_pop && f_place == 0;

  genvar f;
  generate
    for (f = 0; f < DEPTH; f = f + 1) begin : g_f
      assign f_all[f*WIDTH+:WIDTH] = g_place[f].data;
    end
  endgenerate
  integer f_i;
  always @* begin
    f_count  = 0;
    f_before = 0;
    for (f_i = 0; f_i < DEPTH; f_i = f_i + 1) begin
      f_count = f_count + held[f_i];
      if (f_i < f_place) f_before = f_before + held[f_i];
    end
  end
  always @(posedge clk) begin
    if (rst || flush) f_held <= 1'b0;
    else f_held <= f_enters || (f_held && !f_leaves);
    if (f_enters) begin
      f_word  <= in_data;
      f_ahead <= f_count - f_pop;
      f_place <= BYPASS ? f_count - f_pop : DEPTH - 1;
    end else if (f_held) begin
      f_ahead <= f_ahead - f_pop;
      f_place <= f_place - moves[f_place];
    end
  end

  reg f_flushed;
  reg [WIDTH-1:0] f_next;
  always @(posedge clk) {f_flushed, f_next} <= {rst || flush, next_data};
  reg f_ran = 1'b0;
  always @(posedge clk) f_ran <= 1'b1;
  // words accepted and not yet output
  reg [FW-1:0] f_total = 0;
  always @(posedge clk) f_total <= (rst || flush) ? 0 : f_total + push - f_pop;

  always @(posedge clk) begin
    if (!rst) begin
      //: A word leaves unchanged and in FIFO order.
      if (f_held && f_ahead == 0 && out_valid) in_order : assert (out_data == f_word);
      //: No newer word is offered before the tracked one.
      if (f_held && f_ahead != 0 && out_valid) not_early : assert (f_place != 0);
      //: A word stays from entry to exit: none is lost.
      if (f_held) none_lost : assert (f_place < DEPTH && held[f_place]);
      //: The registers hold the words accepted and not yet output: none is duplicated.
      if (f_ran) none_doubled : assert (f_total == f_count);
      //: (invariant) The tracked word is in its register.
      if (f_held) stored : assert (f_all[f_place*WIDTH+:WIDTH] == f_word);
      //: (invariant) The words ahead of the tracked one are those that entered before it.
      if (f_held) ahead : assert (f_before == f_ahead);
      //: A word is accepted unless all registers are full.
      flags : assert (in_ready == (f_count != DEPTH));
      //: The FIFO is empty when it holds no word, not even one moving to the head.
      tells_empty : assert (empty == (f_count == 0));
      //: The output is zero while it is not valid.
      if (!out_valid && !f_first) zero_when_empty : assert (out_data == 0);
      //: The next head is known one cycle ahead.
      if (f_ran && !f_flushed) next_head : assert (out_data == f_next);
      //: With BYPASS the words are contiguous, so that one is visible in the next cycle.
      if (BYPASS != 0) no_gap : assert ((held & (held + 1'b1)) == 0);
      //: The FIFO becomes full.
      becomes_full : cover (f_count == DEPTH);
      //: The tracked word leaves a FIFO that filled behind it.
      tracked_leaves : cover (f_leaves && f_count == DEPTH);
    end
  end
  reg f_first = 1'b1;
  always @(posedge clk) f_first <= 1'b0;
