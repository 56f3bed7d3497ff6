/* SPDX-License-Identifier: Apache-2.0 */
/* Layers as a K210's driver starts them: registers of 64 bits, each in two accesses of this processor, the low word
   first; the map of the last layer comes through fifo_data_out. A plain 64-bit store would not do: gcc writes the low
   word first, clang not always. */
#include "board.h"
#include "job.h"
#include "openkpu.h"

#define REG32(offset) (*(volatile uint32_t *)(0x40000000u + (offset)))

static void put64(uint32_t offset, uint64_t value) {
  REG32(offset) = (uint32_t)value;
  REG32(offset + 4) = (uint32_t)(value >> 32);
}

static uint64_t get64(uint32_t offset) {
  uint64_t word = REG32(offset);
  return word | (uint64_t)REG32(offset + 4) << 32;
}

static struct openkpu dev;
static struct openkpu_network net;

/* the twelve words of a layer of the list, with the addresses of its tables */
static void argument(uint64_t *words, uint32_t layer) {
  const uint64_t *list = (const uint64_t *)(uintptr_t)(net.list + 96 * layer);
  for (int i = 0; i < OPENKPU_WORDS; i++) words[i] = list[i];
  words[OPENKPU_LAYER_KERNEL_LOAD_CFG] += (uint64_t)net.weights << OPENKPU_LAYER_KERNEL_LOAD_CFG_PARA_START_ADDR_SHIFT;
  words[OPENKPU_LAYER_KERNEL_POOL_TYPE_CFG] += (uint64_t)net.biases
                                               << OPENKPU_LAYER_KERNEL_POOL_TYPE_CFG_BWSX_BASE_ADDR_SHIFT;
  words[OPENKPU_LAYER_KERNEL_CALC_TYPE_CFG] += (uint64_t)net.biases
                                               << OPENKPU_LAYER_KERNEL_CALC_TYPE_CFG_ACTIVE_ADDR_SHIFT;
}

int main(void);
int main(void) {
  uint64_t words[OPENKPU_WORDS];
  static uint8_t map[JOB_RESULT_BYTES + 8];
  board_open(&dev, &net, 0, OPENKPU_CHECK_ALL);
  board_devices[0] = 0; /* the registers are this program's */
  put64(OPENKPU_INTERRUPT_CLEAR, 7);
  put64(OPENKPU_FIFO_THRESHOLD, 10 | 1 << 4);
  put64(OPENKPU_EIGHT_BIT_MODE, net.eight_bit);
  put64(OPENKPU_INTERRUPT_MASK, 7);
  static const uint32_t place[] = JOB_INPUT_PLACE; /* row, channels, height, width */
  uint32_t begun = cycles();
  if (openkpu_upload(&dev, place[0], place[1], place[2], place[3], (const uint8_t *)(uintptr_t)net.input)) return 6;
  for (uint32_t layer = 0; layer < net.layers; layer++) {
    const int last = layer + 1 == net.layers;
    argument(words, layer);
    if (last) {
      words[OPENKPU_LAYER_DMA_PARAMETER] |= OPENKPU_LAYER_DMA_PARAMETER_SEND_DATA_OUT_MASK;
    } else {
      words[OPENKPU_LAYER_INTERRUPT_ENABE] |= OPENKPU_LAYER_INTERRUPT_ENABE_INT_EN_MASK;
    }
    for (int i = 0; i < OPENKPU_WORDS; i++) put64(OPENKPU_LAYER_ARGUMENT_FIFO, words[i]);
    for (uint32_t passes = 0; !last && !(get64(OPENKPU_INTERRUPT_RAW) & 1); passes++) {
      if (passes > JOB_LIMIT) return 7;
    }
    put64(OPENKPU_INTERRUPT_CLEAR, 7);
  }
  for (uint32_t done = 0, passes = 0; done < JOB_RESULT_BYTES;) {
    const uint32_t status = REG32(OPENKPU_AI_STATUS);
    if (passes++ > JOB_LIMIT) return 7;
    if (!(status & OPENKPU_AI_STATUS_RESULTS_MASK)) continue;
    uint64_t word = get64(OPENKPU_FIFO_DATA_OUT);
    for (int i = 0; i < 8; i++, word >>= 8) map[done++] = (uint8_t)word;
  }
  uint32_t took = cycles() - begun;
  if (openkpu_check(&dev)) {
    put_error(&dev);
    return 1;
  }
  put_result(0, 0, (uint32_t)(uintptr_t)map, JOB_RESULT_BYTES);
  put_text("cycles ");
  put_number(took);
  put_text("\n");
  return 0;
}
