  // Properties of byte_walk, against a second count of channels, lines, bytes and planes.
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
  reg f_setup = 1'b0;
  reg f_words;
  reg [10:0] f_width;
  reg [14:0] f_chans;
  reg [9:0] f_height;
  reg [14:0] f_c;  // channel; with planes each has four of the layout's
  reg [1:0] f_p;  // plane
  reg [10:0] f_x;  // byte of the line
  reg [9:0] f_y;
  reg [16:0] f_at, f_at_0;  // first row of the current group of channels; with planes, of plane 0's
  wire f_quarter = f_width <= 16, f_half = f_width <= 32 && !f_quarter;
  wire [3:0] f_line = (f_width + 11'd63) >> 6;  // rows of a line
  wire [1:0] f_in_row = f_words ? f_p : f_c[1:0];
  wire [1:0] f_sub = f_quarter ? f_in_row : f_half ? f_in_row[0] : 2'd0;
  wire f_sub_last = f_quarter ? f_sub == 3 : f_half ? f_sub == 1 : 1'b1;
  // byte from the beginning of the line's first row on
  wire [10:0] f_off = (f_quarter ? {f_sub, 4'd0} : f_half ? {f_sub[0], 5'd0} : 6'd0) + f_x;
  wire [16:0] f_row = f_at + f_above + (f_off >> 6);
  wire [16:0] f_at_next = f_at + f_rows;
  wire [10:0] f_next = f_x + count_m1 + 11'd1;
  wire f_line_end = f_next == f_width;
  wire f_pixel = !f_words || f_p == 2'd3;
  wire f_bottom = f_y == f_height - 10'd1;
  wire [9:0] f_in_band = f_y - f_top;
  wire f_map_end = f_line_end && (f_bottom || (f_band != 0 && f_in_band == f_band - 10'd1));
  wire f_chan_last = f_c == f_chans - 15'd1;
  wire f_band_end = f_map_end && f_pixel && f_chan_last;
  wire f_first = f_c < (f_quarter ? 4 : f_half ? 2 : 1);  // the first group of channels
  wire [9:0] f_below = f_height - f_top;
  wire [9:0] f_lines = (f_band == 0 || f_below < f_band) ? f_below : f_band;  // of the band
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
    f_setup <= start;
    if (start) f_on <= 1'b0;
    else if (f_setup) f_on <= 1'b1;
    else if (next && last) f_on <= 1'b0;
    if (start) {f_at, f_at_0} <= {2'd0, base_row, 2'd0, base_row};
    if (f_setup) begin
      f_words <= PLANES != 0 && words;
      f_chans <= chans_m1 + 15'd1;
      f_height <= height_m1 + 10'd1;
      f_width <= width_m1 + 11'd1;
      f_c <= 15'd0;
      f_p <= 2'd0;
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
      f_p <= f_words ? f_p + 2'd1 : 2'd0;
      if (f_pixel) begin
        f_x <= f_line_end ? 11'd0 : f_next;
        f_y <= (f_map_end && !f_band_end) ? f_top : f_line_end ? f_y + 10'd1 : f_y;
        f_above <= (f_map_end && !f_band_end) ? f_top_above : f_line_end ? f_above_next : f_above;
        f_k <= f_map_end ? 4'd0 : (f_line_end && f_band != 0) ? f_k + 4'd1 : f_k;
        f_c <= !f_map_end ? f_c : f_band_end ? 15'd0 : f_c + 15'd1;
        if (f_band_end) begin
          f_top <= f_y + 10'd1;
          f_n <= f_next_lines[3:0];
          f_top_above <= f_above_next;
        end
        if (f_map_end && f_first) f_end <= f_above_next;
      end
      // the four planes in turn; the next channel begins behind them
      if (f_words) begin
        if (f_map_end && f_pixel) f_at_0 <= f_at_next;
        f_at <= f_pixel ? (f_map_end ? f_at_next : f_at_0) : f_sub_last ? f_at_next : f_at;
      end else if (f_band_end) f_at <= f_at_0;
      else if (f_map_end && f_sub_last) f_at <= f_at_next;
    end
  end

  always @(posedge clk) begin
    //: A line has 15 rows at most: the layer decoder refuses others.
    if (f_setup) line_legal : assume (width_m1 < 960);
    //: next comes only while a step is there, and not with the start of a map.
    if (next) step_there : assume (f_on && !start);
    //: The map is stable.
    if (f_on) map_stands : assume (chans_m1 + 15'd1 == f_chans && height_m1 + 10'd1 == f_height &&
        width_m1 + 11'd1 == f_width &&
        (PLANES != 0 && words) == f_words && (BANDS == 0 || (band == f_band && apart == f_rows)));
    //: The lines of a band are a power of two below those of the map.
    if (f_setup && BANDS != 0) band_legal : assume (band <= 8 && (band & (band - 4'd1)) == 0 &&
        band < {1'b0, height_m1} + 10'd1);
    //: Planes are as far apart as groups of channels, and are read byte by byte.
    if (f_on && f_words) planes_apart : assume (apart == f_rows && most_m1 == 0);
    //: The rows of a group of channels are those of its lines, a product of layer_decode.
    if (f_on) rows_of_lines : assume (f_above_next <= f_rows &&
        (!f_bottom || f_above_next == f_rows));
    //: The rows of each group of channels of the map lie in the AI RAM, of up to 32768 rows.
    if (f_on) map_inside : assume (f_at + f_rows <= f_depth && f_depth <= 32768);
    if (f_on) begin
      //: Each step addresses its channel, line and byte as docs/kpu.md specifies.
      place_of_step : assert ({block, at} == {f_row[14:0], f_off[5:0]});
      //: No step is outside the rows of its group of channels, hence none outside the map and the AI RAM.
      inside : assert (block >> 2 >= f_at && block >> 2 < f_at_next && block >> 2 < f_depth);
      //: A step lies in one block of 16 bytes and one line, and is as long as these and the user permit.
      size : assert (at + count_m1 < 16 && f_next <= f_width && count_m1 <= most_m1 &&
          (count_m1 == most_m1 || at + count_m1 == 15 || f_line_end) && full == (count_m1 == most_m1));
      //: The last step of a channel is the last byte of its last line in the band, of the fourth plane; of
      //: the band, that of the last channel; of the map, that of the last band.
      ends : assert (chan_end == (f_map_end && f_pixel) && band_end == f_band_end && last == (band_end && f_bottom));
      //: (invariant) Channel, line, byte and plane lie within the map.
      counted : assert (f_c < f_chans && f_chans <= 15'd1 << CHAN && f_y < f_height && f_height <= 512 &&
          f_x < f_width &&
          f_width <= 960 && (f_words || f_p == 0));
      //: (invariant) Registered properties of the map, and remaining bytes.
      registered : assert (planes == f_words && quarter == f_quarter && half == (f_half || f_quarter) && few ==
          (rest < 4));
      //: (invariant) Remaining channels, lines and bytes.
      left : assert (chan_left == f_chans - f_c - 15'd1 && line_left == f_lines - f_in_band - 10'd1 &&
          rest == f_width - f_x - 11'd1 && x == f_x[5:0] && sub == (f_words ? f_p : f_sub));
      //: (invariant) Start of the group of channels, or of the line in plane 0.
      begins : assert (f_at <= 32768 && first_row == (f_words ? f_at_0 + f_above + (f_x >> 6) :
          f_at + f_top_above) && row == f_row &&
          (!f_words || (f_p == 0 ? f_at == f_at_0 : f_at_0 <= f_at)));
      //: (invariant) A band begins at a multiple of its lines, above its last line.
      bands : assert (f_top <= f_y && f_in_band < f_lines && f_band <= 8 && (f_band & (f_band - 4'd1)) == 0 &&
          f_band < f_height && (BANDS != 0 || f_band == 0) && (f_band == 0 ? f_top == 0 :
          (f_top & (f_band - 10'd1)) == 0 && f_in_band == f_k && f_lines == f_n));
      //: (invariant) As many rows are above a line as the lines above it have.
      rows_above : assert (f_above == f_to(f_k) || f_band == 0);
      //: (invariant) ... and none is above a map that comes whole.
      whole : assert (f_band != 0 || (f_top_above == 0 && f_k == 0));
    end
    if (f_on && BANDS != 0) begin
      //: (invariant) Lines of the band and to the last band.
      under : assert (lines == f_lines - 10'd1 && !f_words &&
          below == (f_band == 0 ? 10'd0 : ((f_height - 10'd1) & ~(f_band - 10'd1)) - f_top));
      //: (invariant) The walk is in the first group of channels, or below it.
      first_one : assert (first == f_first && (f_first ? f_at == f_at_0 : f_at_0 <= f_at));
      //: (invariant) Behind the first group the last row of its lines of the band is registered.
      if (!f_first && f_band != 0) group_end_at : assert (first_end + 17'd1 == f_at_0 + f_end);
      //: (invariant) It is that of the band's last line.
      if (!f_first && f_band != 0) band_rows : assert (f_end == f_to(f_n));
    end
    //: (invariant) The map is set up in the cycle after the start.
    set_up : assert (!f_on || (!setup && !f_setup));
    //: (invariant) The first row is valid then.
    if (f_setup) at_first : assert (setup && first_row == f_at && f_at == f_at_0);
    //: A map of several groups of channels and several lines ends.
    several : cover (f_on && next && last && f_c > 3 && f_above != 0 && (BANDS == 0 || f_top != 0));
  end
