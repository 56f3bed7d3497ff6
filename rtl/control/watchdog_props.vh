  // Properties of watchdog: stalled work ends, and so does the flush that follows.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  reg [32:0] f_still = 33'd0, f_before = 33'd0;  // cycles of work without progress, outside a flush
  reg [32:0] f_flush = 33'd0;  // cycles of a flush without progress
  reg [31:0] f_limit;
  reg f_stuck = 1'b0, f_waits_flush = 1'b0;
  reg f_reset = 1'b1;
  always @(posedge clk) begin
    f_still <= (rst || flush || stuck || !works || progress || limit == 0) ? 33'd0 : f_still + 33'd1;
    f_flush <= (rst || !flush || progress) ? 33'd0 : f_flush + !(&f_flush);
    f_before <= f_still;
    f_limit <= limit;
    f_stuck <= !rst && stuck;
    f_reset <= rst;
  end
  wire [32:0] f_most = f_limit < 256 ? 33'd256 : {1'b0, f_limit};  // of the previous cycle

  always @(posedge clk) begin
    //: The limit is stable, but may be switched on and off outside a flush.
    if (!f_reset) limit_stands : assume (limit == f_limit ||
        ((limit == 0 || f_limit == 0) && !flush && !flushed && !stuck));
    if (!rst) begin
      //: A flush follows stuck at once.
      if (f_stuck) flush_follows : assume (flush);
      //: A flush leaves no work behind.
      if (flushed && !flush) nothing_left : assume (!works);
      //: Stalled work ends at most three cycles after the limit, at least 256, of cycles without progress.
      if (f_limit != 0) ends : assert (f_still <= f_most + 33'd3);
      //: It does not end before: only after that number of cycles without progress, and never with a limit of 0.
      if (stuck) not_before : assert (f_limit != 0 && f_before >= f_most);
      //: A stalled flush abandons the bus: at most three cycles after the limit, 65536 for a limit of 0.
      if (f_flush > (f_limit == 0 ? 33'd65536 : f_most) + 3) flush_ends : assert (give_up);
      //: The bus is abandoned only in a flush, or as one begins.
      if (give_up) in_flush : assert (stuck || f_stuck || flushed || flush);
      //: (invariant) The registers before the counter: the limit in effect, and whether it is reached.
      reached : assert (full == (still >= most) && most >= 256 && (!f_reset || still == 0) &&
          (f_reset || flushed || f_limit != 0 || still == 0) &&
          (f_reset || most == (f_limit == 0 ? 32'd65536 : f_limit < 256 ? 32'd256 : f_limit)));
      //: (invariant) The counter matches the model.
      counted : assert (still <= most && (stuck || f_still <= still + 33'd1) &&
          (give_up || f_flush <= still + 33'd2) && (flushed || f_stuck || f_still >= still) &&
          (f_flush == 0 || flushed) && (f_still == 0 || !flushed || !f_stuck));
    end
    //: Work stalls.
    stands : cover (!rst && !flush && f_still == 3 && f_flush == 0);
  end
