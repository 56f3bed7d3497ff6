  // Properties of stripe_iter. One arbitrary pixel of the grid is tracked.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  (* anyconst *) reg [11:0] f_x;
  (* anyconst *) reg [10:0] f_y;
  reg f_began = 1'b0;  // the grid is stable, from the cycle after a restart on
  reg f_again = 1'b0;  // that cycle
  reg f_first = 1'b1;
  reg [10:0] f_kw;
  reg [9:0] f_kh;
  reg [2:0] f_swl;
  reg f_overlap;
  reg f_over;  // beyond the last stripe
  reg f_seen;  // the pixel was in an earlier stripe
  wire f_on = f_began && !f_over;
  wire f_here = f_x >= gx && f_x < gx + width && f_y >= gy && f_y < gy + lines;
  wire f_same = kw == f_kw && kh == f_kh && swl == f_swl && overlap == f_overlap;
  always @(posedge clk) begin
    f_first <= 1'b0;
    f_again <= restart;
    f_began <= !rst && (restart || f_began);
    f_kw <= kw;
    f_kh <= kh;
    f_swl <= swl;
    f_overlap <= overlap;
    f_over <= !restart && (f_over || (next && last_x && last_y));
    f_seen <= !restart && (f_seen || (next && f_here));
  end
  // coverage of the pixel that follows from the order of the stripes
  wire f_done_y = f_y < gy + (overlap && gy != 0);
  wire f_done_x = f_y < gy + lines && f_x < gx + (overlap && gx != 0);

  always @(posedge clk) begin
    //: The grid is legal for the layer decoder; stripes of stride-1 pools have more than one line.
    grid_legal : assume (kw != 0 && kw <= 1024 && kh != 0 && kh <= 512 && swl >= 4 && swl <= 6 &&
            !(overlap && swl == 6));
    //: The grid is stable from the cycle after a restart to the next restart.
    if (f_began && !f_again && !restart) grid_stands : assume (f_same);
    //: The tracked pixel is one of the grid.
    if (!restart) pixel_inside : assume (f_x < kw && f_y < kh);
    if (f_on && !rst && !restart) begin
      //: Every stripe has a pixel and lies within the grid.
      inside : assert (width != 0 && lines != 0 && gx + width <= kw && gy + lines <= kh);
      //: A stripe has at most 64 pixels: a line of 64, two of 32, four of 16.
      size : assert (width <= sw && lines <= nl);
      //: When the last stripe is left, every pixel of the grid has been covered.
      if (next && last_x && last_y) all_covered : assert (f_seen || f_here);
      //: (invariant) The pixel was covered once the stripes to its left and above have passed it.
      progress : assert (f_seen == (f_done_y || f_done_x));
      //: Without overlap no pixel is in two stripes.
      if (!overlap) once : assert (!(f_seen && f_here));
    end
    //: A grid of several stripes in both directions ends, with overlap.
    ends : cover (f_on && next && last_x && last_y && overlap && gx != 0 && gy != 0);
  end
