  // Properties of command. The controller responds to a soft reset with flushing from the next cycle on.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  reg f_soft = 1'b0;  // soft_reset in the previous cycle
  reg [3:0] f_drops = 4'd0;  // cycles of flushing
  reg f_due = 1'b0;  // a start was accepted and not yet issued
  reg [4:0] f_waits = 5'd0;  // cycles for which it is pending
  reg f_muted = 1'b0;
  reg f_begins = 1'b0;  // work or a start in the previous cycle
  always @(posedge clk) begin
    f_soft <= !rst && soft_reset;
    f_drops <= (rst || !flushing || soft_reset || reset_now) ? 4'd0 : f_drops + 4'd1;
    f_due <= !rst && (accept || (f_due && !start && !reset_now));
    f_waits <= (rst || accept || reset_now || !f_due) ? 5'd0 : f_waits + 5'd1;
    f_muted <= !rst && muted;
    f_begins <= !rst && (start || (work && !dropping));
  end

  always @(posedge clk) begin
    if (!rst) begin
      //: The controller flushes in the cycle after a soft reset.
      if (f_soft) flush_follows : assume (flushing);
      //: A flush ends within ten cycles (fairness; the watchdog bounds it in the device).
      flush_ends : assume (f_drops < 10);
      //: Work begins in the cycle after a start, or while a layer word is pending; work dropped by a reset does
      //: not count.
      if (work && !dropping && !(words && !hold)) begins : assume (f_begins);
      //: Layer words are held until they are popped, which is work.
      if (words && !hold && !dropping) words_work : assume (work);
      //: A start is accepted, refused because the device is occupied, or refused for its configuration.
      one_answer : assert (accept + start_busy + bad_config == (wr && wdata[0]));
      //: A start is accepted only when no work is in progress, or the same write drops that work.
      if (accept) only_when_free : assert (possible && (reset_now || !(start_due || (words && !hold) ||
          (work && !muted))));
      //: Each accepted start is issued once, and no other one.
      given_once : assert (!start || f_due);
      //: (invariant) A start is due from its acceptance until it is issued.
      due : assert (f_due == start_due);
      //: (invariant) A start is issued as soon as it is due and no reset is pending.
      given : assert (start == (start_due && !muted));
      //: An accepted start reaches the controller when the flush has ended, at most 15 cycles later.
      no_deadlock : assert (f_waits < 16);
      //: (invariant) The flush bounds the latency of a start.
      bound : assert (!f_due || f_waits <= 2 + f_drops || !muted);
      //: No start reaches the controller while a reset is pending.
      not_while_reset : assert (!(start && muted));
      //: A soft reset mutes earlier events until the controller has flushed.
      if (soft_reset) reset_mutes : assert (muted);
      //: The device is occupied while a start or a reset is pending.
      if (pending) pending_occupies : assert (occupied);
      //: at_work, which refuses writes, is high in each cycle in which the device is occupied.
      if (occupied) occupied_at_work : assert (at_work);
      //: A start waits for a flush and is issued.
      waits_for_flush : cover (start && f_muted && f_waits > 3);
    end
  end
