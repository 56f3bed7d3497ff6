/* SPDX-License-Identifier: Apache-2.0 */
/* Layer by layer through the argument FIFO, as on a K210, and maps through the window of the AI RAM. */
#include "openkpu_internal.h"

enum { OPENKPU_ROW_BYTES = 64 };
enum { OPENKPU_LOOKS = 64 }; /* at the result FIFO in a pass */

static const uint32_t OPENKPU_CALC_DONE = OPENKPU_INTERRUPT_MASK_CALC_DONE_INT_MASK;
static const uint32_t OPENKPU_ALMOST_EMPTY = OPENKPU_INTERRUPT_MASK_LAYER_CFG_ALMOST_EMPTY_INT_MASK;

/* the map fits the AI RAM, and no run is at work */
static enum openkpu_status check_map(struct openkpu *dev, uint32_t row, uint32_t channels, uint32_t height,
                                     uint32_t width);

/* field NAME of an argument word, whose register is WORD */
#define OPENKPU_FIELD(words, WORD, NAME)                                                  \
  ((uint32_t)(((words)[OPENKPU_LAYER_##WORD] & OPENKPU_LAYER_##WORD##_##NAME##_MASK) >> \
              OPENKPU_LAYER_##WORD##_##NAME##_SHIFT))

/* bytes of a layer's dense input map, and of its output map */
static uint64_t bytes_in(const uint64_t *words) {
  return (OPENKPU_FIELD(words, IMAGE_CHANNEL_NUM, I_CH_NUM_M1) + (uint64_t)1) *
         (OPENKPU_FIELD(words, IMAGE_SIZE, I_COL_HIGH_M1) + 1) * (OPENKPU_FIELD(words, IMAGE_SIZE, I_ROW_WID_M1) + 1);
}

static uint64_t bytes_out(const uint64_t *words) {
  return (OPENKPU_FIELD(words, IMAGE_CHANNEL_NUM, O_CH_NUM_M1) + (uint64_t)1) *
         (OPENKPU_FIELD(words, IMAGE_SIZE, O_COL_HIGH_M1) + 1) * (OPENKPU_FIELD(words, IMAGE_SIZE, O_ROW_WID_M1) + 1) *
         (OPENKPU_FIELD(words, INTERRUPT_ENABE, OUT32) ? 4 : 1);
}

/* page: maps */
/* groups of channels that share a row of the AI RAM */
static uint32_t groups_of(uint32_t width) { return width <= 16 ? 4 : width <= 32 ? 2 : 1; }

/* offset of a line of a map that begins at AI RAM row `row` */
static uint32_t line_offset(uint32_t row, uint32_t height, uint32_t width, uint32_t c, uint32_t y) {
  uint32_t groups = groups_of(width), row_len = groups > 1 ? 1 : (width + 63) / 64;
  uint32_t line = row + (c / groups) * row_len * height + y * row_len;
  return OPENKPU_AI_RAM + 64 * line + (c % groups) * (64 / groups);
}

/* a dense map (c, y, x order) into the AI RAM by words; the last one of a line is filled with 0 */
enum openkpu_status openkpu_upload(struct openkpu *dev, uint32_t row, uint32_t channels, uint32_t height,
                                   uint32_t width, const uint8_t *map) {
  enum openkpu_status code = check_map(dev, row, channels, height, width);
  if (code) return code;
  for (uint32_t c = 0; c < channels; c++) {
    for (uint32_t y = 0; y < height; y++) {
      uint32_t at = line_offset(row, height, width, c, y);
      for (uint32_t x = 0; x < width; x += 4) {
        uint32_t word = 0;
        for (uint32_t i = 0; i < 4 && x + i < width; i++) word |= (uint32_t)*map++ << 8 * i;
        openkpu_wr(dev, at + x, word);
      }
    }
  }
  return OPENKPU_OK;
}

/* the way back */
enum openkpu_status openkpu_download(struct openkpu *dev, uint32_t row, uint32_t channels, uint32_t height,
                                     uint32_t width, uint8_t *map) {
  enum openkpu_status code = check_map(dev, row, channels, height, width);
  if (code) return code;
  for (uint32_t c = 0; c < channels; c++) {
    for (uint32_t y = 0; y < height; y++) {
      uint32_t at = line_offset(row, height, width, c, y);
      for (uint32_t x = 0; x < width; x += 4) {
        uint32_t word = openkpu_rd(dev, at + x);
        for (uint32_t i = 0; i < 4 && x + i < width; i++) *map++ = (uint8_t)(word >> 8 * i);
      }
    }
  }
  return OPENKPU_OK;
}
/* page end */

static enum openkpu_status check_map(struct openkpu *dev, uint32_t row, uint32_t channels, uint32_t height,
                                     uint32_t width) {
  enum openkpu_status code = openkpu_idle(dev);
  if (code) return code;
  if (!channels || !height || !width || channels > 9216 || height > 512 || width > 1024) {
    return openkpu_fail(dev, OPENKPU_BAD_COUNT, 0);
  }
  uint32_t groups = groups_of(width), row_len = groups > 1 ? 1 : (width + 63) / 64;
  uint32_t rows = (channels + groups - 1) / groups * row_len * height;
  if (row < dev->rows && row + rows <= dev->rows) return OPENKPU_OK;
  return openkpu_fail(dev, OPENKPU_NO_ROOM, OPENKPU_ROW_BYTES * row);
}

/* page: layer */
/* the words of a layer; int_en and send_data_out, which a list for another driver may have, are as given here */
static void push(const struct openkpu *dev, const uint64_t *words, uint64_t int_en, uint64_t send_data_out) {
  for (uint32_t i = 0; i < OPENKPU_WORDS; i++) {
    uint64_t word = words[i];
    if (i == OPENKPU_LAYER_INTERRUPT_ENABE) word = (word & ~OPENKPU_LAYER_INTERRUPT_ENABE_INT_EN_MASK) | int_en;
    if (i == OPENKPU_LAYER_DMA_PARAMETER) {
      word = (word & ~OPENKPU_LAYER_DMA_PARAMETER_SEND_DATA_OUT_MASK) | send_data_out;
    }
    openkpu_wr(dev, OPENKPU_LAYER_ARGUMENT_FIFO, (uint32_t)word);
    openkpu_wr(dev, OPENKPU_LAYER_ARGUMENT_FIFO + 4, (uint32_t)(word >> 32));
  }
}

/* one layer, up to its calc_done */
enum openkpu_status openkpu_layer(struct openkpu *dev, const uint64_t *words, int eight_bit, uint32_t limit) {
  enum openkpu_status code = openkpu_idle(dev);
  if (code) return code;
  OPENKPU_BARRIER(dev->port);
  openkpu_prepare(dev, eight_bit);
  if (dev->by_irq) openkpu_wr(dev, OPENKPU_INTERRUPT_MASK, OPENKPU_KPU_INTERRUPTS & ~OPENKPU_CALC_DONE);
  push(dev, words, OPENKPU_LAYER_INTERRUPT_ENABE_INT_EN_MASK, 0);
  return openkpu_await(dev, OPENKPU_CALC_DONE << OPENKPU_EVENT_KPU_SHIFT, limit);
}
/* page end */

/* page: layer out */
/* `size` bytes of the map of a layer with send_data_out */
static enum openkpu_status receive(struct openkpu *dev, uint8_t *map, uint32_t size, uint32_t limit) {
  for (uint32_t done = 0, passes = 0, looks = 0; done < size; looks++) {
    uint32_t status = openkpu_rd(dev, OPENKPU_AI_STATUS);
    if (status & OPENKPU_AI_STATUS_ERROR_MASK) return openkpu_check(dev);
    uint32_t held = (status & OPENKPU_AI_STATUS_RESULTS_MASK) >> OPENKPU_AI_STATUS_RESULTS_SHIFT;
    if (held) passes = looks = 0;
    if (passes >= limit) return openkpu_timeout(dev);
    if (looks >= OPENKPU_LOOKS) { /* a pause may be longer than the device needs to fill the FIFO */
      OPENKPU_PAUSE(dev);
      looks = 0;
      passes++;
    }
    for (; held && done < size; held--) {
      uint64_t word = openkpu_rd(dev, OPENKPU_FIFO_DATA_OUT);
      word |= (uint64_t)openkpu_rd(dev, OPENKPU_FIFO_DATA_OUT + 4) << 32;
      for (uint32_t i = 0; i < 8 && done < size; i++) map[done++] = (uint8_t)(word >> 8 * i);
    }
  }
  return OPENKPU_OK;
}

/* one layer whose map comes through the FIFO; `size` is that of the map: what is left there would be the next one's */
enum openkpu_status openkpu_layer_out(struct openkpu *dev, const uint64_t *words, int eight_bit, uint8_t *map,
                                      uint32_t size, uint32_t limit) {
  enum openkpu_status code = openkpu_idle(dev);
  if (code) return code;
  if (size != bytes_out(words)) return openkpu_fail(dev, OPENKPU_BAD_COUNT, 0);
  OPENKPU_BARRIER(dev->port);
  openkpu_prepare(dev, eight_bit);
  push(dev, words, 0, OPENKPU_LAYER_DMA_PARAMETER_SEND_DATA_OUT_MASK);
  return receive(dev, map, size, limit);
}
/* page end */

/* page: layer moved */
/* one layer; its input map lies at `from` in storage, its output map goes to `to`, a multiple of the bus word */
enum openkpu_status openkpu_layer_moved(struct openkpu *dev, const uint64_t *words, int eight_bit, uint32_t from,
                                        uint32_t to, uint32_t limit) {
  uint64_t moved[OPENKPU_WORDS], in = bytes_in(words), out = bytes_out(words);
  enum openkpu_status code = openkpu_idle(dev);
  if (code) return code;
  if (to & (openkpu_word(dev) - 1)) return openkpu_fail(dev, OPENKPU_MISALIGNED, to);
  code = openkpu_inside(dev, from, in);
  if (!code) code = openkpu_inside(dev, to, out);
  if (code) return code;
  for (uint32_t i = 0; i < OPENKPU_WORDS; i++) moved[i] = words[i];
  moved[OPENKPU_LAYER_INTERRUPT_ENABE] &= ~OPENKPU_LAYER_INTERRUPT_ENABE_MAP_LOAD_ADDR_MASK;
  moved[OPENKPU_LAYER_INTERRUPT_ENABE] |=
      OPENKPU_LAYER_INTERRUPT_ENABE_LOAD_MAP_MASK | OPENKPU_LAYER_INTERRUPT_ENABE_STORE_MAP_MASK |
      (uint64_t)from << OPENKPU_LAYER_INTERRUPT_ENABE_MAP_LOAD_ADDR_SHIFT;
  moved[OPENKPU_LAYER_WRITE_BACK_CFG] &= ~OPENKPU_LAYER_WRITE_BACK_CFG_MAP_STORE_ADDR_MASK;
  moved[OPENKPU_LAYER_WRITE_BACK_CFG] |= (uint64_t)to << OPENKPU_LAYER_WRITE_BACK_CFG_MAP_STORE_ADDR_SHIFT;
  OPENKPU_CLEAN(dev->port, from, (uint32_t)in);
  OPENKPU_INVALIDATE(dev->port, to, (uint32_t)out);
  code = openkpu_layer(dev, moved, eight_bit, limit);
  OPENKPU_INVALIDATE(dev->port, to, (uint32_t)out);
  return code;
}
/* page end */

/* page: burst */
/* `count` layers of 12 words each, twelve at a time */
enum openkpu_status openkpu_layers(struct openkpu *dev, const uint64_t *words, uint32_t count, int eight_bit,
                                   uint32_t limit) {
  enum openkpu_status code = openkpu_idle(dev);
  if (code) return code;
  if (!count) return openkpu_fail(dev, OPENKPU_BAD_COUNT, 0);
  OPENKPU_BARRIER(dev->port);
  openkpu_prepare(dev, eight_bit);
  openkpu_wr(dev, OPENKPU_FIFO_THRESHOLD, OPENKPU_BURST << OPENKPU_FIFO_THRESHOLD_FIFO_FULL_THRESHOLD_SHIFT |
                                              1u << OPENKPU_FIFO_THRESHOLD_FIFO_EMPTY_THRESHOLD_SHIFT);
  for (uint32_t pushed = 0;;) {
    for (uint32_t i = 0; i < OPENKPU_BURST && pushed < count; i++, pushed++) {
      push(dev, words + OPENKPU_WORDS * pushed, pushed + 1 == count ? OPENKPU_LAYER_INTERRUPT_ENABE_INT_EN_MASK : 0, 0);
    }
    uint32_t wanted = pushed < count ? OPENKPU_ALMOST_EMPTY : OPENKPU_CALC_DONE;
    dev->events = 0;
    if (dev->by_irq) openkpu_wr(dev, OPENKPU_INTERRUPT_MASK, OPENKPU_KPU_INTERRUPTS & ~wanted);
    code = openkpu_await(dev, wanted << OPENKPU_EVENT_KPU_SHIFT, limit);
    if (code) return code;
    openkpu_wr(dev, OPENKPU_INTERRUPT_MASK, OPENKPU_KPU_INTERRUPTS);
    openkpu_wr(dev, OPENKPU_INTERRUPT_CLEAR, OPENKPU_KPU_INTERRUPTS);
    if (pushed == count) return OPENKPU_OK;
  }
}
/* page end */
