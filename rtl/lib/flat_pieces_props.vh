  // Properties of flat_pieces.
  reg f_began = 1'b0;  // a stripe is active
  reg [4:0] f_width;  // pixels per line
  reg [6:0] f_size;  // pixels of the stripe
  reg [3:0] f_x_0;
  reg [6:0] f_pos;  // expected start of the piece
  reg [6:0] f_x;
  wire f_line_end = f_x + count == f_width;
  wire [6:0] f_here = f_pos & (WORD - 1);  // offset in its word
  always @(posedge clk) begin
    f_began <= load || f_began;
    if (load) {f_width, f_size, f_x_0} <= {width, pixels, x_0};
    if (load || again || next) begin
      f_pos <= (load || again) ? 7'd0 : f_pos + count;
      f_x   <= load ? x_0 : again ? f_x_0 : f_line_end ? 7'd0 : f_x + count;
    end
  end

  always @(posedge clk) begin
    //: A line has 1 to 16 pixels; a stripe begins in one and has 1 to 64.
    stripe_legal : assume (width != 0 && width <= 16 && (!load || (x_0 < width && pixels != 0 && pixels <= 64)));
    //: The line width is constant from one stripe to the next.
    if (f_began && (again || next) && !load) line_stands : assume (width == f_width);
    //: Only a first piece follows the last piece.
    if (f_began && next && !load && !again) not_beyond : assume (!last);
    if (f_began) begin
      //: The piece begins where the previous one ended: in the stripe, and in the line or at the start of the next.
      in_order : assert (pos == f_pos && x == f_x);
      //: It has at least one pixel, all within the line and the stripe.
      inside : assert (count != 0 && f_x + count <= f_width && f_pos + count <= f_size);
      //: It does not continue in the next word, unless lines are joined.
      if (JOIN == 0) one_word : assert (f_here + count <= WORD);
      //: Joined, the last line of the stripe does not continue in the next word.
      if (last) last_word : assert (f_here + count <= WORD);
      //: It ends with the line, the stripe or the word; joined, with the word in the last line only.
      ends : assert (f_line_end || f_pos + count == f_size ||
          (f_here + count == WORD && (JOIN == 0 || f_pos + f_width - f_x >= f_size)));
      //: The end of the line and of the stripe are reported.
      told : assert (line_end == f_line_end && last == (f_pos + count == f_size));
      //: (invariant) The registered values match the stripe.
      kept : assert (size == f_size && x_first == f_x_0 && f_size != 0 && f_size <= 64 && f_x_0 < f_width &&
          f_width <= 16);
    end
    //: A stripe that begins within a line ends within the fourth line after it.
    four_lines : cover (f_began && last && !line_end && f_size == 64 && f_x_0 != 0 && f_width == 15);
  end
