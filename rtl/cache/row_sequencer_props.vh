  // Properties of row_sequencer, against a second count of channels, lines and bytes.
  localparam [10:0] F_PATH = PATH;
  (* anyconst *) reg [15:0] f_depth;  // rows of the AI RAM
  (* anyseq *) reg [13:0] f_any;
  reg [13:0] f_rows;  // rows of a group of channels
  reg [15:0] f_above;  // rows of the lines above this one
  reg [3:0] f_band;  // lines of a band; 0: all
  reg [9:0] f_top;  // first line of the band
  reg [15:0] f_top_above;  // rows of the lines above it
  reg [15:0] f_behind;  // row behind the band's lines of the first group of channels
  reg f_on = 1'b0;  // a map is in progress
  reg [14:0] f_base;
  reg [10:0] f_width;
  reg [14:0] f_chans;
  reg [9:0] f_height;
  reg [14:0] f_c;  // channel
  reg [10:0] f_x;  // byte of the line
  reg [9:0] f_y;
  reg [25:0] f_group;  // rows of the groups of channels before this one
  wire [2:0] f_share = f_width <= 16 ? 3'd4 : f_width <= 32 ? 3'd2 : 3'd1;  // channels in a row
  wire [6:0] f_pitch = f_width <= 16 ? 7'd16 : f_width <= 32 ? 7'd32 : 7'd64;
  wire [3:0] f_line = (f_width + 11'd63) >> 6;  // rows of a line
  wire [1:0] f_sub = f_c[1:0] & (f_share - 3'd1);
  wire [10:0] f_off = f_sub * f_pitch + f_x;  // byte from the beginning of the line's first row on
  wire [25:0] f_row = f_base + f_group + f_above + (f_off >> 6);
  wire [10:0] f_left = f_width - f_x;
  wire f_line_end = f_left <= F_PATH;
  wire [9:0] f_in_band = f_y - f_top;
  wire f_bottom = f_y == f_height - 10'd1;
  wire f_chan_end = f_line_end && (f_bottom || (f_band != 0 && f_in_band == f_band - 10'd1));
  wire f_chan_last = f_c == f_chans - 15'd1;
  wire f_first = f_c < f_share;  // the first group of channels
  // lines of the band
  wire [9:0] f_below = f_height - f_top;
  wire [9:0] f_lines = (f_band == 0 || f_below < f_band) ? f_below : f_band;
  function [15:0] f_times;  // rows of up to eight lines
    input [3:0] lines;
    f_times = (lines[0] ? f_line : 0) + (lines[1] ? f_line << 1 : 0) + (lines[2] ? f_line << 2 : 0) +
        (lines[3] ? f_line << 3 : 0);
  endfunction
  always @(posedge clk) begin
    if (start) begin
      f_on <= 1'b1;
      f_base <= base_row;
      f_chans <= chans_m1 + 15'd1;
      f_height <= height_m1 + 10'd1;
      f_width <= width_m1 + 11'd1;
      f_c <= 15'd0;
      f_y <= 10'd0;
      f_x <= 11'd0;
      f_group <= 26'd0;
      f_rows <= f_any;
      f_above <= 16'd0;
      f_band <= BANDS != 0 ? band : 4'd0;
      f_top <= 10'd0;
      f_top_above <= 16'd0;
    end else if (next) begin
      f_on <= f_on && !last;
      f_x  <= f_line_end ? 11'd0 : f_x + F_PATH;
      f_y  <= (f_chan_end && !f_chan_last) ? f_top : f_line_end ? f_y + 10'd1 : f_y;
      f_above <= (f_chan_end && !f_chan_last) ? f_top_above : f_line_end ? f_above + f_line : f_above;
      f_c  <= !f_chan_end ? f_c : f_chan_last ? 15'd0 : f_c + 15'd1;
      if (f_chan_end && f_chan_last) begin
        f_group <= 26'd0;
        f_top <= f_y + 10'd1;
        f_top_above <= f_above + f_line;
      end else if (f_chan_end && f_sub == f_share - 3'd1) f_group <= f_group + f_rows;
      if (f_chan_end && f_first) f_behind <= f_base + f_above + f_line;
    end
  end

  always @(posedge clk) begin
    //: A line has 15 rows at most: the layer decoder refuses others.
    if (start) line_legal : assume (width_m1 < 960);
    //: The lines of a band are a power of two below those of the map.
    if (start && BANDS != 0) band_legal : assume (band <= 8 && (band & (band - 4'd1)) == 0 && band < {1'b0, height_m1} + 10'd1);
    //: The map is stable.
    if (f_on && BANDS != 0) map_stands : assume (chans_m1 + 15'd1 == f_chans && height_m1 + 10'd1 == f_height &&
        band == f_band && apart == f_rows);
    //: next comes only while a step is there.
    if (next && !start) step_there : assume (f_on);
    //: The rows of a group of channels are those of its lines, a product of layer_decode.
    if (f_on) rows_of_lines : assume (f_above + f_line <= f_rows &&
        (!f_bottom || f_above + f_line == f_rows));
    //: The rows of each group of channels of the map lie in the AI RAM, of up to 32768 rows.
    if (f_on) map_inside : assume (f_base + f_group + f_rows <= f_depth && f_depth <= 32768);
    if (f_on) begin
      //: Each step addresses its channel, line and byte as docs/kpu.md specifies.
      place_of_step : assert ({word, {PB{1'b0}}} + {lane, 4'd0} == {f_row[14:0], f_off[5:0]});
      //: No step is outside the rows of its group of channels, hence none outside the map and the AI RAM.
      inside : assert (word >> (6 - PB) >= f_base + f_group && word >> (6 - PB) < f_base + f_group + f_rows &&
          word >> (6 - PB) < f_depth);
      //: A step is a word, or the rest of the line; it does not cross the end of its word.
      size : assert (size_m1 == (f_line_end ? f_left - 11'd1 : F_PATH - 11'd1) &&
          {lane, 4'd0} + size_m1 < F_PATH);
      //: The last step of a band is the end of its last line of the last channel; that of the map the end
      //: of the last band.
      ends_last : assert (chan_end == f_chan_end && band_end == (f_chan_end && f_chan_last) &&
          last == (band_end && f_bottom));
      //: (invariant) Channel, line and byte lie within the map.
      counted : assert (f_c < f_chans && f_chans <= 15'd1 << CHAN && f_y < f_height && f_height <= 512 && f_x < f_width &&
          f_width <= 960 && (f_x & (F_PATH - 11'd1)) == 0);
      //: (invariant) Remaining channels, lines and bytes.
      left : assert (chan_left == f_chans - f_c - 15'd1 && line_left == f_lines - f_in_band - 10'd1 &&
          rest == f_left - 11'd1 && line_end == f_line_end && height == f_lines - 10'd1 &&
          width == f_width - 11'd1);
      //: (invariant) A band begins at a multiple of its lines, below as many rows.
      bands : assert (f_top <= f_y && f_in_band < f_lines && f_band <= 8 && (f_band & (f_band - 4'd1)) == 0 &&
          f_band < f_height && (BANDS != 0 || f_band == 0) && (f_band == 0 ? f_top == 0 && f_top_above == 0 :
          (f_top & (f_band - 10'd1)) == 0 && f_above == f_top_above + f_times(f_in_band[3:0])));
      //: (invariant) Start of the band in the group of channels, and of the line.
      begins : assert (f_group <= 32768 && group_row == f_base + f_group + f_top_above && line_block == (f_sub * f_pitch) >> 4 &&
          row == f_row && block == f_off[5:4]);
    end
    if (f_on && BANDS != 0) begin
      //: (invariant) Lines to the last band, and the row that the next one begins with.
      under : assert (below == (f_band == 0 ? 10'd0 : ((f_height - 10'd1) & ~(f_band - 10'd1)) - f_top) &&
          first == f_first && (!f_first || f_group == 0) && (f_first || f_band == 0 || (behind == f_behind[14:0] &&
          f_behind == f_base + f_top_above + f_times(f_lines[3:0]))));
    end
    //: A map of several groups of channels and several lines ends.
    ends : cover (f_on && next && last && f_group != 0 && f_above != 0 && (BANDS == 0 || f_top != 0));
  end
