/* SPDX-License-Identifier: Apache-2.0 */
/* A stream on every device at a time, while the processor computes: sums over the RAM, whose bus traffic disturbs the
   devices. */
#include "board.h"
#include "job.h"
#include "openkpu.h"

static struct openkpu devices[JOB_DEVICES];
static struct openkpu_network nets[JOB_DEVICES];
static uint32_t work[256];

static uint32_t sum_of_work(void) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < 256; i++) sum = sum * 31 + work[i];
  return sum;
}

int main(void);
int main(void) {
  uint32_t finished[JOB_DEVICES], ended[JOB_DEVICES], rounds = 0, open = JOB_DEVICES;
  for (uint32_t i = 0; i < 256; i++) work[i] = i * i;
  for (int d = 0; d < JOB_DEVICES; d++) {
    board_open(&devices[d], &nets[d], d, JOB_CHECK);
    openkpu_use_irq(&devices[d], 1);
    finished[d] = 0;
  }
  const uint32_t sum = sum_of_work(), begun = cycles();
  for (int d = 0; d < JOB_DEVICES; d++) {
    const struct openkpu_network *net = &nets[d];
    if (openkpu_stream(&devices[d], net, JOB_COUNT, net->input, net->input_stride, net->result, net->result_stride)) {
      put_error(&devices[d]);
      return 1;
    }
  }
  while (open) {
    if (JOB_DISTURB) {
      rounds++;
      if (sum_of_work() != sum) return 4;
    }
    for (int d = 0; d < JOB_DEVICES; d++) {
      if (finished[d] == JOB_COUNT) continue;
      if (JOB_DISTURB ? !openkpu_pending(&devices[d]) : 0) continue;
      if (!JOB_DISTURB && !openkpu_pending(&devices[d])) {
        board_pause(&devices[d]);
        continue;
      }
      if (openkpu_wait(&devices[d], &finished[d], JOB_LIMIT)) {
        put_error(&devices[d]);
        return 1;
      }
      if (finished[d] == JOB_COUNT) {
        ended[d] = cycles() - begun;
        open--;
      }
    }
  }
  for (int d = 0; d < JOB_DEVICES; d++) {
    for (uint32_t i = 0; i < JOB_COUNT; i++) {
      put_result(d, i, nets[d].result + i * nets[d].result_stride, nets[d].result_bytes);
    }
    put_text("stream ");
    put_number((uint32_t)d);
    put_text(": ");
    put_number(JOB_COUNT);
    put_text(" inferences, cycles ");
    put_number(ended[d]);
    put_text("\n");
  }
  put_text("rounds of the processor ");
  put_number(rounds);
  put_text(", interrupts ");
  put_number(board_interrupts);
  put_text("\n");
  return 0;
}
