/* SPDX-License-Identifier: Apache-2.0 */
/* What programming_tests.py calls: the driver of one device, codes with layer and address. */
#include "openkpu_internal.h"
enum { LIMIT = 1000 };
uint32_t (*test_read32)(uint32_t offset);
void (*test_write32)(uint32_t offset, uint32_t value);
static void (*test_wait)(void);
static struct openkpu dev;
void test_pause(struct openkpu *of) { test_wait(); (void)openkpu_irq(of); }
void platform(void *read32, void *write32, void *wait) {
  test_read32 = (uint32_t (*)(uint32_t))(uintptr_t)read32;
  test_write32 = (void (*)(uint32_t, uint32_t))(uintptr_t)write32;
  test_wait = (void (*)(void))(uintptr_t)wait;
}
uint32_t begin(void) {
  enum openkpu_status code = openkpu_init(&dev, 0, 0, 0);
  openkpu_use_irq(&dev, 1);
  return code;
}
static uint32_t done(enum openkpu_status code, uint32_t *layer, uint32_t *address) {
  *layer = code ? dev.error.layer : 0;
  *address = code ? dev.error.address : 0;
  return code;
}
uint32_t check_error(uint32_t *l, uint32_t *a) { return done(openkpu_check(&dev), l, a); }
uint32_t waited_for(void) { return dev.error.waits; }
uint32_t upload(uint32_t r, uint32_t c, uint32_t h, uint32_t w, const uint8_t *map) {
  return openkpu_upload(&dev, r, c, h, w, map);
}
uint32_t download(uint32_t r, uint32_t c, uint32_t h, uint32_t w, uint8_t *map) {
  return openkpu_download(&dev, r, c, h, w, map);
}
uint32_t run_layer(const uint64_t *words, int eight_bit, uint32_t *l, uint32_t *a) {
  return done(openkpu_layer(&dev, words, eight_bit, LIMIT), l, a);
}
uint32_t run_layer_out(const uint64_t *words, int eight_bit, uint8_t *map, uint32_t size, uint32_t *l, uint32_t *a) {
  return done(openkpu_layer_out(&dev, words, eight_bit, map, size, LIMIT), l, a);
}
uint32_t run_layer_moved(const uint64_t *words, int eight_bit, uint32_t from, uint32_t to, uint32_t *l, uint32_t *a) {
  return done(openkpu_layer_moved(&dev, words, eight_bit, from, to, LIMIT), l, a);
}
uint32_t run_burst(const uint64_t *words, uint32_t count, int eight_bit, uint32_t *l, uint32_t *a) {
  return done(openkpu_layers(&dev, words, count, eight_bit, LIMIT), l, a);
}
uint32_t run_inference(const struct openkpu_network *net, uint32_t pixels, uint32_t result, uint32_t *l, uint32_t *a) {
  return done(openkpu_run(&dev, net, pixels, result, LIMIT), l, a);
}
uint32_t run_stream(const struct openkpu_network *net, uint32_t count, uint32_t pixels, uint32_t stride,
                    uint32_t results, uint32_t apart, void (*told)(uint32_t), uint32_t *l, uint32_t *a) {
  enum openkpu_status code = openkpu_stream(&dev, net, count, pixels, stride, results, apart);
  for (uint32_t finished = 0; !code && finished < count;) {
    code = openkpu_wait(&dev, &finished, LIMIT);
    told(finished);
  }
  return done(code, l, a);
}
/* of a stream that the test has started itself */
uint32_t end_stream(uint32_t *finished, uint32_t *l, uint32_t *a) {
  dev.state = OPENKPU_STATE_RUN;
  dev.finished = 0;
  dev.count = 1000;
  return done(openkpu_stop(&dev, finished, 100000), l, a);
}
uint32_t confine(uint32_t rb, uint32_t rs, uint32_t wb, uint32_t ws, uint32_t cycles) {
  enum openkpu_status code = openkpu_confine(&dev, rb, rs, wb, ws, 1);
  return code ? code : openkpu_watchdog(&dev, cycles);
}
