  // Properties of row_sequencer, against a second count of channels, lines and bytes.
  localparam [10:0] F_PATH = PATH;
  (* anyconst *) reg [15:0] f_depth;  // rows of the AI RAM
  (* anyseq *) reg [13:0] f_any;
  reg [13:0] f_rows;  // rows of a group of channels
  reg [15:0] f_above;  // rows of the lines above this one
  reg [3:0] f_band;  // lines of a band; 0: all
  reg [9:0] f_top;  // first line of the band
  reg [3:0] f_k, f_n;  // line in the band, lines of the band
  reg [15:0] f_top_above;  // rows of the lines above it
  reg [15:0] f_end;  // rows of the lines above the next band, from the end of the first channel on
  reg f_on = 1'b0;  // a map is in progress
  reg [10:0] f_width;
  reg [14:0] f_chans;
  reg [9:0] f_height;
  reg [14:0] f_c;  // channel
  reg [10:0] f_x;  // byte of the line
  reg [9:0] f_y;
  reg [16:0] f_at, f_at_0;  // first row of the group of channels, of the first group
  wire f_quarter = f_width <= 16, f_half = f_width <= 32 && !f_quarter;
  wire [3:0] f_line = (f_width + 11'd63) >> 6;  // rows of a line
  wire [1:0] f_sub = f_quarter ? f_c[1:0] : f_half ? f_c[0] : 2'd0;  // channel in its row
  wire f_sub_last = f_quarter ? f_sub == 3 : f_half ? f_sub == 1 : 1'b1;
  wire [5:0] f_from = f_quarter ? {f_sub, 4'd0} : f_half ? {f_sub[0], 5'd0} : 6'd0;  // its first byte there
  wire [10:0] f_off = f_from + f_x;  // byte from the beginning of the line's first row on
  wire [15:0] f_under = f_above + (f_off >> 6);
  wire [16:0] f_row = f_at + f_under;
  wire [10:0] f_left = f_width - f_x;
  wire f_line_end = f_left <= F_PATH;
  wire [9:0] f_in_band = f_y - f_top;
  wire f_bottom = f_y == f_height - 10'd1;
  wire f_chan_end = f_line_end && (f_bottom || (f_band != 0 && f_in_band == f_band - 10'd1));
  wire f_chan_last = f_c == f_chans - 15'd1;
  wire f_first = f_c < (f_quarter ? 4 : f_half ? 2 : 1);  // the first group of channels
  // lines of the band
  wire [9:0] f_below = f_height - f_top;
  wire [9:0] f_lines = (f_band == 0 || f_below < f_band) ? f_below : f_band;
  wire [9:0] f_beneath = f_height - 10'd1 - f_y;
  wire [9:0] f_next_lines = (f_band == 0 || f_beneath < f_band) ? f_beneath : f_band;  // of the next band
  // rows of the lines above the band and of so many of its lines, added up line by line: the solver then
  // finds the sum behind a line where it has the one before it
  wire [15:0] f_1 = f_top_above + f_line, f_2 = f_1 + f_line, f_3 = f_2 + f_line, f_4 = f_3 + f_line;
  wire [15:0] f_5 = f_4 + f_line, f_6 = f_5 + f_line, f_7 = f_6 + f_line, f_8 = f_7 + f_line;
  function [15:0] f_to;
    input [3:0] lines;
    case (lines)
      4'd0: f_to = f_top_above;
      4'd1: f_to = f_1;
      4'd2: f_to = f_2;
      4'd3: f_to = f_3;
      4'd4: f_to = f_4;
      4'd5: f_to = f_5;
      4'd6: f_to = f_6;
      4'd7: f_to = f_7;
      default: f_to = f_8;
    endcase
  endfunction
  wire [15:0] f_above_next = f_above + f_line;
  always @(posedge clk) begin
    if (start) begin
      f_on <= 1'b1;
      {f_at, f_at_0} <= {2'd0, base_row, 2'd0, base_row};
      f_chans <= chans_m1 + 15'd1;
      f_height <= height_m1 + 10'd1;
      f_width <= width_m1 + 11'd1;
      f_c <= 15'd0;
      f_y <= 10'd0;
      f_x <= 11'd0;
      f_rows <= f_any;
      f_above <= 16'd0;
      f_band <= BANDS != 0 ? band : 4'd0;
      f_top <= 10'd0;
      f_k <= 4'd0;
      f_n <= BANDS != 0 ? band : 4'd0;
      f_top_above <= 16'd0;
    end else if (next) begin
      f_on <= f_on && !last;
      f_x  <= f_line_end ? 11'd0 : f_x + F_PATH;
      f_y  <= (f_chan_end && !f_chan_last) ? f_top : f_line_end ? f_y + 10'd1 : f_y;
      f_above <= (f_chan_end && !f_chan_last) ? f_top_above : f_line_end ? f_above_next : f_above;
      f_k <= f_chan_end ? 4'd0 : (f_line_end && f_band != 0) ? f_k + 4'd1 : f_k;
      f_c  <= !f_chan_end ? f_c : f_chan_last ? 15'd0 : f_c + 15'd1;
      if (f_chan_end && f_chan_last) begin
        f_at <= f_at_0;
        f_top <= f_y + 10'd1;
        f_n <= f_next_lines[3:0];
        f_top_above <= f_above_next;
      end else if (f_chan_end && f_sub_last) f_at <= f_at + f_rows;
      if (f_chan_end && f_first) f_end <= f_above_next;
    end
  end

  always @(posedge clk) begin
    //: A line has 15 rows at most: the layer decoder refuses others.
    if (start) line_legal : assume (width_m1 < 960);
    //: The lines of a band are a power of two below those of the map.
    if (start && BANDS != 0) band_legal : assume (band <= 8 && (band & (band - 4'd1)) == 0 &&
        band < {1'b0, height_m1} + 10'd1);
    //: The map is stable.
    if (f_on && BANDS != 0) map_stands : assume (chans_m1 + 15'd1 == f_chans && height_m1 + 10'd1 == f_height &&
        band == f_band && apart == f_rows);
    //: next comes only while a step is there.
    if (next && !start) step_there : assume (f_on);
    //: The rows of a group of channels are those of its lines, a product of layer_decode.
    if (f_on) rows_of_lines : assume (f_above_next <= f_rows &&
        (!f_bottom || f_above_next == f_rows));
    //: The rows of each group of channels of the map lie in the AI RAM, of up to 32768 rows.
    if (f_on) map_inside : assume (f_at + f_rows <= f_depth && f_depth <= 32768);
    if (f_on) begin
      //: Each step addresses its channel, line and byte as docs/kpu.md specifies.
      place_of_step : assert ({word, {PB{1'b0}}} + {lane, 4'd0} == {f_row[14:0], f_off[5:0]});
      //: No step is outside the rows of its group of channels, hence none outside the map and the AI RAM.
      inside : assert (word >> (6 - PB) >= f_at && word >> (6 - PB) < f_at + f_rows &&
          word >> (6 - PB) < f_depth);
      //: A step is a word, or the rest of the line; it does not cross the end of its word.
      size : assert (size_m1 == (f_line_end ? f_left - 11'd1 : F_PATH - 11'd1) &&
          {lane, 4'd0} + size_m1 < F_PATH);
      //: The last step of a band is the end of its last line of the last channel; that of the map the end
      //: of the last band.
      ends_last : assert (chan_end == f_chan_end && band_end == (f_chan_end && f_chan_last) &&
          last == (band_end && f_bottom));
      //: (invariant) Channel, line and byte lie within the map.
      counted : assert (f_c < f_chans && f_chans <= 15'd1 << CHAN && f_y < f_height && f_height <= 512 &&
          f_x < f_width &&
          f_width <= 960 && (f_x & (F_PATH - 11'd1)) == 0);
      //: (invariant) Remaining channels, lines and bytes.
      left : assert (chan_left == f_chans - f_c - 15'd1 && line_left == f_lines - f_in_band - 10'd1 &&
          rest == f_left - 11'd1 && line_end == f_line_end && height == f_lines - 10'd1 &&
          width == f_width - 11'd1);
      //: (invariant) A band begins at a multiple of its lines, above its last line.
      bands : assert (f_top <= f_y && f_in_band < f_lines && f_band <= 8 && (f_band & (f_band - 4'd1)) == 0 &&
          f_band < f_height && (BANDS != 0 || f_band == 0) && (f_band == 0 ? f_top == 0 :
          (f_top & (f_band - 10'd1)) == 0 && f_in_band == f_k && f_lines == f_n));
      //: (invariant) As many rows are above a line as the lines above it have.
      rows_above : assert (f_above == f_to(f_k) || f_band == 0);
      //: (invariant) ... and none is above a map that comes whole.
      whole : assert (f_band != 0 || (f_top_above == 0 && f_k == 0));
      //: (invariant) Start of the band in the group of channels, and of the line.
      begins : assert (f_at <= 32768 && group_row == f_at + f_top_above && line_block == f_from[5:4] &&
          row == f_row && block == f_off[5:4]);
    end
    if (f_on && BANDS != 0) begin
      //: (invariant) Lines to the last band.
      under : assert (below == (f_band == 0 ? 10'd0 : ((f_height - 10'd1) & ~(f_band - 10'd1)) - f_top));
      //: (invariant) The walk is in the first group of channels, or below it.
      first_one : assert (first == f_first && (f_first ? f_at == f_at_0 : f_at_0 <= f_at));
      //: (invariant) Behind the first group the row that the next band begins with is registered.
      if (!f_first && f_band != 0) next_band_at : assert (behind == f_at_0 + f_end);
      //: (invariant) It is below all lines of the band.
      if (!f_first && f_band != 0) band_rows : assert (f_end == f_to(f_n));
    end
    //: A map of several groups of channels and several lines ends.
    ends : cover (f_on && next && last && f_at != f_at_0 && f_above != 0 && (BANDS == 0 || f_top != 0));
  end
