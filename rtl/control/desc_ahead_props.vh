  // Properties of desc_ahead: every descriptor leaves once and in order. One arbitrary descriptor is tracked.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  (* anyconst *) reg [4:0] f_place;  // of a descriptor since the reset
  reg f_began = 1'b0;
  reg [4:0] f_in, f_out;  // descriptors that entered, left
  reg [WIDTH-1:0] f_kept;
  reg [1:0] f_waits;  // cycles in which one waited and none was offered
  wire f_push = in_valid && in_ready, f_pop = out_valid && out_ready;
  always @(posedge clk) begin
    f_began <= f_began || rst;
    f_in <= rst ? 5'd0 : f_in + f_push;
    f_out <= rst ? 5'd0 : f_out + f_pop;
    if (f_push && f_in == f_place) f_kept <= in_data;
    f_waits <= (rst || out_valid || f_in == f_out) ? 2'd0 : f_waits + 2'd1;
  end

  always @(posedge clk) begin
    if (f_began && !rst) begin
      //: Few descriptors: their counts do not overflow.
      few : assume (f_in < 5'd31);
      //: A descriptor leaves unchanged and in order.
      if (f_pop && f_out == f_place) in_order : assert (out_data == (f_in == f_place ? in_data : f_kept));
      //: None leaves that has not entered.
      entered : assert (!f_pop || f_out != f_in || f_push);
      //: It is empty when all have left, and at no other time: the dispatcher's waits rests on it.
      empty_is_so : assert (empty == (f_in == f_out));
      //: As many as there are layers find room.
      if (LAYERS != 0 && f_in - f_out < LAYERS) room : assert (in_ready);
      //: No deadlock: a descriptor that waits is offered in the next cycle.
      no_deadlock : assert (f_waits < 2);
      //: All places are taken, or none is there.
      fills : cover (LAYERS == 0 ? f_pop : (f_in - f_out >= LAYERS && f_out != 0));
    end
  end
