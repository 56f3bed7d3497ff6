  // Properties of mac_unit: equivalence with a unit without a gate, which multiplies every pixel after ReLU.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end
  reg f_best;
  reg f_began = 1'b0;
  always @(posedge clk) begin
    f_best  <= best;
    f_began <= 1'b1;
  end
  always @* begin
    //: The incoming sum is that of NTH products at most, or a difference.
    sum_bounded : assume (CHOICE == 2 || psum_in <= NTH * 255 * ((1 << WEIGHT_BITS) - 1));
    //: The incoming pixel sum is that of NTH pixels at most.
    pixels_bounded : assume (xsum_in <= NTH * 255);
    //: The choice is constant during a layer.
    choice_stays : assume (!f_began || best == f_best);
  end

  reg [7:0] f_pixel;  // after ReLU, zero where not valid
  reg [WEIGHT_BITS-1:0] f_weight;
  reg [WEIGHT_BITS+7:0] f_product;
  reg [7:0] f_pixel_2;
  wire f_subtracts = CHOICE == 1 && best;
  wire [FB-1:0] f_factor = f_subtracts ? 0 - {1'b0, f_pixel} : f_pixel;
  wire [WEIGHT_BITS+FB-1:0] f_signed = f_subtracts ? 0 - {1'b0, f_product} : f_product;
  reg [PW-1:0] f_psum;
  reg [11:0] f_xsum;
  reg [1:0] f_age = 2'd0;  // cycles since the reset, three fill the pipeline
  wire [PW-1:0] f_difference = psum_in - f_product;
  wire f_rests = f_difference[PW-1] ? least : !least;
  reg f_gated;  // the condition did not hold in the previous cycle
  reg [WEIGHT_BITS+FB-1:0] f_operands;
  always @(posedge clk) begin
    f_age <= rst ? 2'd0 : (f_age == 2'd3) ? 2'd3 : f_age + 2'd1;
    f_pixel <= (valid && !rst && !(sgn && pixel >= 8'd128)) ? pixel : 8'd0;
    f_weight <= weight;
    f_product <= f_pixel * f_weight;
    f_pixel_2 <= f_pixel;
    f_psum <= !f_subtracts ? psum_in + f_product : f_rests ? f_difference : {PW{1'b0}};
    f_xsum <= f_subtracts ? xsum_in : xsum_in + f_pixel_2;
    f_gated <= !enable;
    f_operands <= {pixel_q, weight_q};
  end

  always @(posedge clk) begin
    //: The sum is the incoming one plus weight times the pixel after ReLU, or a kept difference, or zero: gating
    //: changes nothing.
    if (f_age == 3) sum_equal : assert (psum_out == f_psum);
    //: The pixel sum is that of the added pixels after ReLU.
    if (f_age == 3) pixels_equal : assert (xsum_out == f_xsum);
    //: A pixel that is not above zero does not change the operands.
    if (GATE != 0 && f_age != 0 && f_gated) operands_still : assert ({pixel_q, weight_q} == f_operands);
    //: (invariant) The operands are the valid pixel above zero and its weight.
    if (f_age >= 1) operands : assert (enable_q ? (pixel_q == f_factor && weight_q == f_weight) : f_pixel == 0);
    //: (invariant) The product is that of the ungated unit.
    if (f_age >= 2) product : assert (product_q == f_signed && gated_q == (f_subtracts ? 0 : f_pixel_2));
    //: A product of a pixel above zero follows a gated one.
    gates : cover (f_age == 3 && f_gated && product_q != 0);
  end
