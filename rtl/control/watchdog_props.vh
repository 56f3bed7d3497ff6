  // Properties of watchdog: work that stands still is ended, and so is the flush that follows.
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
  wire [32:0] f_most = limit < 256 ? 33'd256 : {1'b0, limit};

  always @(posedge clk) begin
    //: The limit stands.
    if (!f_reset) limit_stands : assume (limit == f_limit);
    if (!rst) begin
      //: A flush follows a stuck, at once.
      if (f_stuck) flush_follows : assume (flush);
      //: A flush leaves no work behind.
      if (flushed && !flush) nothing_left : assume (!works);
      //: Work that stands still is ended: at most three cycles more than the limit, 256 at least, without progress.
      if (limit != 0) ends : assert (f_still <= f_most + 33'd3);
      //: It is not ended before: only after so many cycles without progress, and never with a limit of 0.
      if (stuck) not_before : assert (limit != 0 && f_before >= f_most);
      //: A flush that stands still gives up the bus: at most three cycles more than the limit, 65536 for a limit of 0.
      if (f_flush > (limit == 0 ? 33'd65536 : f_most) + 3) flush_ends : assert (give_up);
      //: The bus is given up in a flush only, or as one begins.
      if (give_up) in_flush : assert (stuck || f_stuck || flushed || flush);
      //: (invariant) The registers in front of the counter: the limit in effect, and whether it is reached.
      reached : assert (full == (still >= most) && most >= 256 && (!f_reset || still == 0) &&
          (f_reset || most == (limit == 0 ? 32'd65536 : limit < 256 ? 32'd256 : limit)));
      //: (invariant) What is counted.
      counted : assert (still <= most && (limit == 0 || stuck || f_still <= still + 33'd1) &&
          (give_up || f_flush <= still + 33'd2) && (flushed || f_stuck || f_still >= still || limit == 0) &&
          (f_flush == 0 || flushed) && (f_still == 0 || !flushed || !f_stuck));
    end
    //: Work stands still.
    stands : cover (!rst && !flush && f_still == 3 && f_flush == 0);
  end
