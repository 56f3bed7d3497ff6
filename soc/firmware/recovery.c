/* SPDX-License-Identifier: Apache-2.0 */
/* Errors that the device reports, each followed by an inference that comes out right. */
#include "board.h"
#include "job.h"
#include "openkpu.h"

static struct openkpu dev;
static struct openkpu_network net;

static uint32_t right(uint32_t image) {
  if (openkpu_run(&dev, &net, net.input, net.result, JOB_LIMIT)) {
    put_error(&dev);
    board_end(1);
  }
  put_result(0, image, net.result, net.result_bytes);
  return 0;
}

static void expect(enum openkpu_status found, enum openkpu_status wanted) {
  put_error(&dev);
  if (found != wanted) board_end(5);
}

int main(void);
int main(void) {
  board_open(&dev, &net, 0, OPENKPU_CHECK_ALL);
  openkpu_use_irq(&dev, 1);
  struct openkpu_network bad = net;
  bad.weights = 0xA0000000u; /* nobody answers there */
  expect(openkpu_run(&dev, &bad, net.input, net.result, JOB_LIMIT), OPENKPU_BUS_ERROR);
  right(0);
  if (openkpu_confine(&dev, BOARD_STORE, JOB_STORE_BYTES, BOARD_STORE, 1024, 0)) return 6;
  expect(openkpu_run(&dev, &net, net.input, BOARD_STORE + JOB_STORE_BYTES - 1024, JOB_LIMIT), OPENKPU_BAD_ACCESS);
  if (openkpu_confine(&dev, BOARD_STORE, JOB_STORE_BYTES, BOARD_STORE, JOB_STORE_BYTES, 0)) return 6;
  right(1);
  *(volatile uint8_t *)(uintptr_t)net.weights ^= 1;
  struct openkpu_network other;
  const void *image = (const void *)(uintptr_t)BOARD_STORE;
  expect(openkpu_open(&dev, &other, image, BOARD_STORE, OPENKPU_CHECK_ALL), OPENKPU_DAMAGED);
  *(volatile uint8_t *)(uintptr_t)net.weights ^= 1;
  if (openkpu_open(&dev, &other, image, BOARD_STORE, OPENKPU_CHECK_ALL)) return 6;
  right(2);
  return 0;
}
