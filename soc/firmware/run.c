/* SPDX-License-Identifier: Apache-2.0 */
/* Inferences one after the other, each waited for by interrupt. */
#include "board.h"
#include "job.h"
#include "openkpu.h"

int main(void);
int main(void) {
  static struct openkpu dev;
  struct openkpu_network net;
  board_open(&dev, &net, 0, JOB_CHECK);
  openkpu_use_irq(&dev, 1);
  static uint32_t took[JOB_COUNT];
  for (uint32_t i = 0; i < JOB_COUNT; i++) {
    uint32_t begun = cycles();
    if (openkpu_run(&dev, &net, net.input + i * net.input_stride, net.result + i * net.result_stride, JOB_LIMIT)) {
      put_error(&dev);
      return 1;
    }
    took[i] = cycles() - begun;
  }
  for (uint32_t i = 0; i < JOB_COUNT; i++) {
    put_result(0, i, net.result + i * net.result_stride, net.result_bytes);
    put_text("cycles ");
    put_number(took[i]);
    put_text("\n");
  }
  return 0;
}
