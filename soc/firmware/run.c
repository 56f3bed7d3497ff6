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
  for (uint32_t i = 0; i < JOB_COUNT; i++) {
    uint32_t result = net.result + i * net.result_stride, begun = cycles();
    if (openkpu_run(&dev, &net, net.input + i * net.input_stride, result, JOB_LIMIT)) {
      put_error(&dev);
      return 1;
    }
    uint32_t took = cycles() - begun;
    put_result(0, i, result, net.result_bytes);
    put_text("cycles ");
    put_number(took);
    put_text("\n");
  }
  return 0;
}
