  // Properties of row_sequencer, for maps of up to six channels and two lines of any width.
  //: Nothing is said before the first map.
  initial begin
    before_start : assume (!next && !start);
  end

  reg f_on = 1'b0;  // a map is walked through
  reg [14:0] f_base;
  reg [9:0] f_chans_m1, f_width_m1;
  reg [8:0] f_height_m1;
  // channels of a group, rows of a line, of a group and of the map
  wire [1:0] f_share = f_width_m1 < 16 ? 2'd2 : f_width_m1 < 32 ? 2'd1 : 2'd0;  // log2
  wire [4:0] f_line = f_width_m1[9:6] + 5'd1;
  wire [6:0] f_group = f_height_m1[0] ? {f_line, 1'b0} : f_line;
  wire [10:0] f_rows = f_group * ((f_chans_m1[2:0] >> f_share) + 4'd1);
  // where the present step is: counters of its own
  reg [9:0] f_chan, f_x;
  reg [8:0] f_y;
  wire [14:0] f_row = f_base + f_group * (f_chan[2:0] >> f_share) + (f_y[0] ? f_line : 5'd0) + f_x[9:6];
  wire [5:0] f_byte = ((f_chan[1:0] & ((2'd1 << f_share) - 2'd1)) << (6 - f_share)) + f_x[5:0];
  wire [PB:0] f_size = (f_x[9:PB] == f_width_m1[9:PB]) ? f_width_m1[PB-1:0] - f_x[PB-1:0] + 1 : PATH - f_x[PB-1:0];
  wire f_line_end = {1'b0, f_x} + f_size > f_width_m1;
  wire f_chan_end = f_line_end && f_y == f_height_m1;
  always @(posedge clk) begin
    if (start) begin
      f_on <= 1'b1;
      f_base <= base_row;
      f_chans_m1 <= chans_m1;
      f_height_m1 <= height_m1;
      f_width_m1 <= width_m1;
      f_chan <= 10'd0;
      f_x <= 10'd0;
      f_y <= 9'd0;
    end else if (next) begin
      f_on <= f_on && !last;
      f_x <= f_line_end ? 10'd0 : f_x + f_size;
      if (f_line_end) f_y <= f_chan_end ? 9'd0 : f_y + 9'd1;
      if (f_chan_end) f_chan <= f_chan + 10'd1;
    end
  end

  always @(posedge clk) begin
    //: Maps have up to six channels and two lines here; the layer decoder lets none end behind the AI RAM.
    if (f_on) small_map : assume (f_chans_m1 < 6 && f_height_m1 < 2 && f_base + f_rows <= 32768);
    //: Steps are asked for only while there is one.
    if (next) next_there : assume (f_on || start);
    if (f_on) begin
      //: Each step is the next piece of the map, in c, y, x order, at its place in the AI RAM.
      place_of_step : assert (word == {f_row, f_byte} >> PB && {lane, 4'd0} == (f_byte & (PATH - 1)) - (f_x & 15));
      //: No step leaves the rows of the map.
      inside : assert (word >> (6 - PB) >= f_base && word >> (6 - PB) < f_base + f_rows);
      //: A step has the bytes up to the end of the word or of the line.
      size : assert (size_m1 == f_size - 1);
      //: The last step is the last of the last line of the last channel.
      last_step : assert (last == (f_chan_end && f_chan == f_chans_m1));
      //: (invariant) The counters are those of the step.
      counters : assert (f_chan <= f_chans_m1 && f_y <= f_height_m1 && f_x <= f_width_m1 && f_x[PB-1:0] == 0 &&
          row == f_row && block == f_byte[5:4] && width == f_width_m1 && height == f_height_m1 &&
          chan_left == f_chans_m1 - f_chan && line_left == f_height_m1 - f_y && rest == f_width_m1 - f_x &&
          line_end == (rest[9:PB] == 0) && line_block == f_byte[5:4] - f_x[5:4] &&
          group_row == f_base + f_group * (f_chan[2:0] >> f_share));
      //: A map with more than a group of channels ends.
      ends : cover (next && last && f_chan == 4 && f_y == 1);
    end
  end
