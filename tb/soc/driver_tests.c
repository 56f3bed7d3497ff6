/* SPDX-License-Identifier: Apache-2.0 */
/* The driver on the verilated device. driver_tests FOLDER TEST: files that test_driver.py has made; exit status 0, or 1
   with a line that says what was expected. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardware.h"
#include "openkpu.h"

enum { PASSES = 300 }; /* of 100 cycles each: an inference is over in fewer */
enum { LIMIT = 20000, IMAGES = 4, MOST = 1 << 20 };

#define CHECK(what)                                                     \
  do {                                                                  \
    if (!(what)) {                                                      \
      printf("line %d: expected %s\n", __LINE__, #what);                \
      exit(1);                                                          \
    }                                                                   \
  } while (0)
#define CHECK_CODE(dev, call, wanted)                                                                          \
  do {                                                                                                         \
    enum openkpu_status found_ = (call);                                                                       \
    if (found_ != (wanted)) {                                                                                  \
      printf("line %d: %s is %d (%s), expected %d (%s)\n", __LINE__, #call, found_, openkpu_text(found_),      \
             (wanted), openkpu_text(wanted));                                                                  \
      exit(1);                                                                                                 \
    }                                                                                                          \
    if ((wanted) != OPENKPU_OK && (dev)->error.code != (wanted)) {                                             \
      printf("line %d: error.code is %d\n", __LINE__, (dev)->error.code);                                      \
      exit(1);                                                                                                 \
    }                                                                                                          \
  } while (0)

static const char *folder;

struct bytes {
  uint8_t *data;
  uint32_t size;
};

static struct bytes contents(const char *name) {
  char path[1024];
  struct bytes found = {malloc(MOST), 0};
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (!file) {
    printf("%s: cannot be read\n", path);
    exit(2);
  }
  found.size = (uint32_t)fread(found.data, 1, MOST, file);
  (void)fclose(file);
  return found;
}

/* the network of test_driver.py, in the memory of a device */
struct bench {
  struct hardware *hw;
  struct openkpu dev;
  struct openkpu_network net;
  struct bytes image, inputs, results, words, maps, places;
};

static const uint64_t *words_of(const struct bench *b, uint32_t layer) {
  return (const uint64_t *)(const void *)b->words.data + OPENKPU_WORDS * layer;
}

/* row, channels, height, width of the input map (0) and of each layer's map */
static const uint32_t *place(const struct bench *b, uint32_t map) {
  return (const uint32_t *)(const void *)b->places.data + 4 * map;
}

static uint32_t size_of(const uint32_t *p) { return p[1] * p[2] * p[3]; }

static void put_image(struct bench *b) { memcpy(hw_memory(b->hw, HW_BASE), b->image.data, b->image.size); }

/* after a test has changed it where the device reads it */
static void restore_image(struct bench *b) { memcpy(hw_uncached(b->hw, HW_BASE), b->image.data, b->image.size); }

static void set_up(struct bench *b) {
  memset(b, 0, sizeof *b);
  b->hw = hw_new();
  b->image = contents("net.bin");
  b->inputs = contents("inputs");
  b->results = contents("results");
  b->words = contents("words");
  b->maps = contents("maps");
  b->places = contents("places");
  put_image(b);
  CHECK_CODE(&b->dev, openkpu_init(&b->dev, b->hw, HW_BASE, HW_MEMORY), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_open(&b->dev, &b->net, hw_memory(b->hw, HW_BASE), HW_BASE, OPENKPU_CHECK_ALL), OPENKPU_OK);
  CHECK(hw_cleaned(b->hw) == b->image.size); /* the device reads what the processor has copied */
  CHECK(b->inputs.size == IMAGES * b->net.input_bytes && b->results.size == IMAGES * b->net.result_bytes);
  for (uint32_t i = 0; i < IMAGES; i++) {
    memcpy(hw_memory(b->hw, b->net.input + i * b->net.input_stride), b->inputs.data + i * b->net.input_bytes,
           b->net.input_bytes);
  }
}

static void tear_down(struct bench *b) {
  struct bytes *all[] = {&b->image, &b->inputs, &b->results, &b->words, &b->maps, &b->places};
  for (uint32_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]->data);
  hw_delete(b->hw);
}

static void forget_results(struct bench *b) {
  memset(hw_memory(b->hw, b->net.result), 0x5A, IMAGES * b->net.result_stride);
  memset(hw_uncached(b->hw, b->net.result), 0x5A, IMAGES * b->net.result_stride);
}

/* result `at` is that of image `image` */
static int right(struct bench *b, uint32_t at, uint32_t image) {
  return !memcmp(hw_memory(b->hw, b->net.result + at * b->net.result_stride),
                 b->results.data + image * b->net.result_bytes, b->net.result_bytes);
}

/* the device is usable: one inference comes out right */
static void usable(struct bench *b) {
  forget_results(b);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &b->net, b->net.input, b->net.result, LIMIT), OPENKPU_OK);
  CHECK(right(b, 0, 0));
}

static enum openkpu_status run_stream(struct bench *b, uint32_t count, uint32_t *finished) {
  enum openkpu_status code = openkpu_stream(&b->dev, &b->net, count, b->net.input, b->net.input_stride, b->net.result,
                                            b->net.result_stride);
  *finished = 0;
  while (!code && *finished < count) code = openkpu_wait(&b->dev, finished, LIMIT);
  return code;
}

/* ---- what works */
static void single(struct bench *b) {
  uint64_t before = hw_cleaned(b->hw);
  for (uint32_t i = 0; i < IMAGES; i++) {
    forget_results(b);
    CHECK_CODE(&b->dev, openkpu_run(&b->dev, &b->net, b->net.input + i * b->net.input_stride, b->net.result, LIMIT),
               OPENKPU_OK);
    CHECK(right(b, 0, i));
    CHECK(!hw_irq(b->hw));
  }
  CHECK(hw_cleaned(b->hw) - before == IMAGES * b->net.input_bytes);
  CHECK(hw_invalidated(b->hw) >= IMAGES * b->net.result_bytes);
  CHECK(openkpu_version() == OPENKPU_DRIVER_VERSION);
}

static void by_interrupt(struct bench *b) {
  openkpu_use_irq(&b->dev, 1);
  single(b);
  CHECK(!openkpu_irq(&b->dev) && !openkpu_pending(&b->dev));
  printf("interrupt to next start: %u cycles\n", hw_turnaround(b->hw));
}

static void stream(struct bench *b) {
  for (int irq = 0; irq < 2; irq++) {
    uint32_t finished;
    openkpu_use_irq(&b->dev, irq);
    forget_results(b);
    CHECK_CODE(&b->dev, run_stream(b, IMAGES, &finished), OPENKPU_OK);
    for (uint32_t i = 0; i < IMAGES; i++) CHECK(right(b, i, i));
    CHECK_CODE(&b->dev, openkpu_wait(&b->dev, 0, LIMIT), OPENKPU_WRONG_ORDER);
  }
  usable(b);
}

/* images in the order 0, 3, 1: each place is set while the one before is fetched, or when its inference has begun */
static void next_pixels(struct bench *b) {
  static const uint32_t order[] = {0, 3, 1};
  uint32_t finished = 0, given = 1;
  openkpu_use_irq(&b->dev, 1);
  forget_results(b);
  CHECK_CODE(&b->dev, openkpu_stream(&b->dev, &b->net, 3, b->net.input, 0, b->net.result, b->net.result_stride),
             OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_next(&b->dev, b->net.input + order[given++] * b->net.input_stride), OPENKPU_OK);
  for (uint32_t passes = 0; finished < 3; passes++) {
    CHECK(passes < 100 * LIMIT);
    if (given < 3 && (openkpu_taken(&b->dev) || finished + 1 >= given)) {
      CHECK_CODE(&b->dev, openkpu_next(&b->dev, b->net.input + order[given++] * b->net.input_stride), OPENKPU_OK);
    } else if (hw_irq(b->hw)) {
      CHECK_CODE(&b->dev, openkpu_wait(&b->dev, &finished, LIMIT), OPENKPU_OK);
    } else {
      hw_run(b->hw, 1);
    }
  }
  for (uint32_t i = 0; i < 3; i++) CHECK(right(b, i, order[i]));
}

static void stop(struct bench *b) {
  for (uint32_t wait = 1, number = 0; wait < 20000; wait = wait * 3 / 2 + 3, number++) {
    uint32_t finished;
    openkpu_use_irq(&b->dev, number & 1);
    forget_results(b);
    CHECK_CODE(&b->dev, openkpu_stream(&b->dev, &b->net, IMAGES, b->net.input, b->net.input_stride, b->net.result,
                                       b->net.result_stride), OPENKPU_OK);
    for (uint32_t i = 0; i < wait; i++) {
      hw_run(b->hw, 1);
      if (number & 1 && hw_irq(b->hw)) (void)openkpu_irq(&b->dev); /* the handler; nobody waits for its event */
    }
    CHECK_CODE(&b->dev, openkpu_stop(&b->dev, &finished, PASSES), OPENKPU_OK);
    CHECK(finished >= 1 && finished <= IMAGES);
    for (uint32_t i = 0; i < finished; i++) CHECK(right(b, i, i));
    usable(b);
  }
}

static void layer_maps(struct bench *b, int burst) {
  uint32_t layers = b->words.size / 96;
  const uint8_t *want = b->maps.data;
  const uint32_t *in = place(b, 0);
  uint8_t *map = malloc(MOST);
  CHECK_CODE(&b->dev, openkpu_upload(&b->dev, in[0], in[1], in[2], in[3], b->inputs.data), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_download(&b->dev, in[0], in[1], in[2], in[3], map), OPENKPU_OK);
  CHECK(!memcmp(map, b->inputs.data, size_of(in)));
  if (burst) CHECK_CODE(&b->dev, openkpu_layers(&b->dev, words_of(b, 0), layers, 1, LIMIT), OPENKPU_OK);
  for (uint32_t i = 0; i < layers; i++) {
    const uint32_t *out = place(b, i + 1);
    if (!burst) CHECK_CODE(&b->dev, openkpu_layer(&b->dev, words_of(b, i), 1, LIMIT), OPENKPU_OK);
    if (!burst || i + 1 == layers) {
      CHECK_CODE(&b->dev, openkpu_download(&b->dev, out[0], out[1], out[2], out[3], map), OPENKPU_OK);
      CHECK(!memcmp(map, want, size_of(out)));
    }
    want += size_of(out);
  }
  want -= size_of(place(b, layers));
  memset(map, 0, size_of(place(b, layers)));
  CHECK_CODE(&b->dev, openkpu_layer_out(&b->dev, words_of(b, layers - 1), 1, map, size_of(place(b, layers)), LIMIT),
             OPENKPU_OK);
  CHECK(!memcmp(map, want, size_of(place(b, layers))));
  /* a part of the map would leave the rest to the next layer */
  CHECK_CODE(&b->dev, openkpu_layer_out(&b->dev, words_of(b, layers - 1), 1, map, size_of(place(b, layers)) - 1, LIMIT),
             OPENKPU_BAD_COUNT);
  free(map);
}

static void layers(struct bench *b) {
  layer_maps(b, 0);
  openkpu_use_irq(&b->dev, 1);
  layer_maps(b, 0);
}

static void burst(struct bench *b) {
  CHECK(b->words.size / 96 > OPENKPU_BURST);
  layer_maps(b, 1);
  openkpu_use_irq(&b->dev, 1);
  layer_maps(b, 1);
}

/* words of a driver that waits for each layer, and reads each map: both bits are set here as this one needs them */
static void bits_of_another_driver(struct bench *b) {
  uint64_t *words = (uint64_t *)(void *)b->words.data;
  for (uint32_t i = 0; i < b->words.size / 96; i++, words += OPENKPU_WORDS) {
    words[OPENKPU_LAYER_INTERRUPT_ENABE] |= OPENKPU_LAYER_INTERRUPT_ENABE_INT_EN_MASK;
    words[OPENKPU_LAYER_DMA_PARAMETER] |= OPENKPU_LAYER_DMA_PARAMETER_SEND_DATA_OUT_MASK;
  }
  for (int irq = 0; irq < 2; irq++) {
    openkpu_use_irq(&b->dev, irq);
    layer_maps(b, 0);
    layer_maps(b, 1);
    CHECK(!(hw_read32(b->hw, OPENKPU_AI_STATUS) & OPENKPU_AI_STATUS_BUSY_MASK));
    usable(b);
  }
}

/* rows in which weights of a network may wait: not those of what runs next, and refused ones are an error */
static void spare_rows_of_one(struct bench *b) {
  struct openkpu_network net = b->net;
  uint32_t shift = OPENKPU_AI_SPARE_ROWS_ROWS_SHIFT, rows = 16u << shift | 32752u;
  net.spare = rows;
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, net.input, net.result, LIMIT), OPENKPU_OK);
  CHECK(right(b, 0, 0) && hw_read32(b->hw, OPENKPU_AI_SPARE_ROWS) == rows);
  layer_maps(b, 1);
  CHECK(!hw_read32(b->hw, OPENKPU_AI_SPARE_ROWS));
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, net.input, net.result, LIMIT), OPENKPU_OK);
  usable(b);
  CHECK(!hw_read32(b->hw, OPENKPU_AI_SPARE_ROWS));
  for (int irq = 0; irq < 2; irq++) { /* rows behind the end; with an error of the host in front */
    openkpu_use_irq(&b->dev, irq);
    net.spare = 17u << shift | 32752u;
    if (irq) (void)hw_read32(b->hw, OPENKPU_FIFO_DATA_OUT);
    CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, net.input, net.result, LIMIT), OPENKPU_BAD_CONFIG);
    usable(b);
  }
  net.spare = rows;
  (void)hw_read32(b->hw, OPENKPU_FIFO_DATA_OUT);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, net.input, net.result, LIMIT), OPENKPU_OK);
}

/* what lies between the results in the cache is the application's */
static void between_results(struct bench *b) {
  uint32_t stride = (b->net.result_bytes + 71) & ~7u, finished = 0;
  uint8_t *first = hw_memory(b->hw, b->net.result);
  forget_results(b);
  for (uint32_t i = 0; i < IMAGES; i++) memset(first + i * stride + b->net.result_bytes, 0xA0 + (int)i, 8);
  uint64_t before = hw_invalidated(b->hw);
  CHECK_CODE(&b->dev, openkpu_stream(&b->dev, &b->net, IMAGES, b->net.input, b->net.input_stride, b->net.result, stride),
             OPENKPU_OK);
  CHECK(hw_invalidated(b->hw) - before == IMAGES * b->net.result_bytes);
  while (finished < IMAGES) CHECK_CODE(&b->dev, openkpu_wait(&b->dev, &finished, LIMIT), OPENKPU_OK);
  for (uint32_t i = 0; i < IMAGES; i++) {
    const uint8_t *result = first + i * stride;
    CHECK(!memcmp(result, b->results.data + i * b->net.result_bytes, b->net.result_bytes));
    for (uint32_t k = 0; k < 8; k++) CHECK(result[b->net.result_bytes + k] == 0xA0 + i);
  }
}

/* what a boot stage before has left */
static void left_behind(struct bench *b) {
  hw_write32(b->hw, OPENKPU_FIFO_CTRL, 0);
  hw_write32(b->hw, OPENKPU_AI_SPARE_ROWS, 16u << OPENKPU_AI_SPARE_ROWS_ROWS_SHIFT);
  hw_write32(b->hw, OPENKPU_INTERRUPT_MASK, 0);
  CHECK_CODE(&b->dev, openkpu_init(&b->dev, b->hw, HW_BASE, HW_MEMORY), OPENKPU_OK);
  layer_maps(b, 1);
  usable(b);
}

static void moved(struct bench *b) {
  uint32_t to = HW_BASE + HW_MEMORY / 2;
  uint64_t words[OPENKPU_WORDS], cleaned = hw_cleaned(b->hw), invalidated = hw_invalidated(b->hw);
  memcpy(words, words_of(b, 0), sizeof words);
  words[OPENKPU_LAYER_INTERRUPT_ENABE] |= OPENKPU_LAYER_INTERRUPT_ENABE_MAP_LOAD_ADDR_MASK; /* of an earlier use */
  words[OPENKPU_LAYER_WRITE_BACK_CFG] |= OPENKPU_LAYER_WRITE_BACK_CFG_MAP_STORE_ADDR_MASK;
  CHECK_CODE(&b->dev, openkpu_layer_moved(&b->dev, words, 1, b->net.input, to, LIMIT), OPENKPU_OK);
  CHECK(hw_cleaned(b->hw) - cleaned == size_of(place(b, 0)));
  CHECK(hw_invalidated(b->hw) - invalidated >= size_of(place(b, 1)));
  CHECK(!memcmp(hw_memory(b->hw, to), b->maps.data, size_of(place(b, 1))));
  CHECK_CODE(&b->dev, openkpu_layer_moved(&b->dev, words_of(b, 0), 1, b->net.input, to + 2, LIMIT), OPENKPU_MISALIGNED);
  CHECK_CODE(&b->dev, openkpu_layer_moved(&b->dev, words, 1, HW_BASE - 8, to, LIMIT), OPENKPU_NO_ROOM);
  uint32_t end = HW_BASE + HW_MEMORY - (size_of(place(b, 1)) - 1) / 16 * 16; /* the first place without room */
  CHECK_CODE(&b->dev, openkpu_layer_moved(&b->dev, words, 1, b->net.input, end, LIMIT), OPENKPU_NO_ROOM);
  CHECK_CODE(&b->dev, openkpu_layer_moved(&b->dev, words, 1, b->net.input, end - 16, LIMIT), OPENKPU_OK);
  CHECK(!memcmp(hw_memory(b->hw, end - 16), b->maps.data, size_of(place(b, 1))));
  CHECK_CODE(&b->dev, openkpu_layer(&b->dev, words_of(b, 0), 1, LIMIT), OPENKPU_OK);
}

/* a tensor in the model's order goes through the map and comes back */
static void tensors(struct bench *b) {
  uint8_t *map = malloc(MOST), *back = malloc(MOST);
  uint32_t count = b->net.input_bytes;
  CHECK(openkpu_pack(b->image.data, 0, b->inputs.data, map) == OPENKPU_OK);
  CHECK(!memcmp(map, b->inputs.data, count)); /* of an npz network: the map itself */
  CHECK(openkpu_unpack(b->image.data, 0, map, back) == OPENKPU_OK && !memcmp(back, map, count));
  CHECK(openkpu_pack(b->image.data, 2, map, back) == OPENKPU_BAD_COUNT);
  CHECK(openkpu_unpack(b->image.data, 2, map, back) == OPENKPU_BAD_COUNT);
  free(map);
  free(back);
}

/* ---- every code of docs/programming.md section 3 */
static uint32_t *list_word(struct bench *b, uint32_t layer, uint32_t word) {
  return (uint32_t *)(void *)hw_uncached(b->hw, b->net.list + 96 * layer + 8 * word);
}

static void refused_layers(struct bench *b) {
  static const struct {
    uint32_t layer, word, half, bits;
    enum openkpu_status code;
  } faults[] = {
      {2, OPENKPU_LAYER_IMAGE_SIZE, 0, 0x3FF, OPENKPU_BAD_SIZE},
      {3, OPENKPU_LAYER_IMAGE_ADDR, 1, 0x7FFF, OPENKPU_BAD_ADDR},
      {5, OPENKPU_LAYER_KERNEL_POOL_TYPE_CFG, 0, 0xF0, OPENKPU_BAD_POOL},
      {1, OPENKPU_LAYER_KERNEL_POOL_TYPE_CFG, 0, 0x7, OPENKPU_BAD_KERNEL},
      {0, 0, 0, 0, OPENKPU_BAD_WEIGHTS}, /* sizes of the list are those of 8-bit weights */
      {0, OPENKPU_LAYER_INTERRUPT_ENABE, 0, OPENKPU_LAYER_INTERRUPT_ENABE_KEPT_WEIGHTS_MASK, OPENKPU_BAD_FLAGS},
  };
  for (uint32_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    struct openkpu_network net = b->net;
    list_word(b, faults[i].layer, faults[i].word)[faults[i].half] |= faults[i].bits;
    net.eight_bit = faults[i].code != OPENKPU_BAD_WEIGHTS;
    CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, b->net.input, b->net.result, LIMIT), faults[i].code);
    CHECK(b->dev.error.layer == faults[i].layer && b->dev.error.stream == 7 && !b->dev.error.address);
    restore_image(b);
    usable(b);
  }
}

static void bus_error(struct bench *b) {
  const uint32_t at[] = {b->net.list, b->net.biases, b->net.weights, b->net.input, b->net.result};
  for (uint32_t from = 0; from < 5; from++) {
    for (int irq = 0; irq < 2; irq++) {
      openkpu_use_irq(&b->dev, irq);
      hw_bus_error(b->hw, at[from], at[from] + 3, 0);
      CHECK_CODE(&b->dev, openkpu_run(&b->dev, &b->net, b->net.input, b->net.result, LIMIT), OPENKPU_BUS_ERROR);
      CHECK(b->dev.error.stream == from && b->dev.error.address == at[from]);
      CHECK(strcmp(openkpu_stream_text(from), openkpu_stream_text(7)) != 0);
      hw_bus_error(b->hw, 1, 0, 0);
      usable(b);
    }
  }
}

/* results before the failure are counted */
static void bus_error_in_stream(struct bench *b) {
  uint32_t finished, bad = b->net.input + 2 * b->net.input_stride;
  forget_results(b);
  hw_bus_error(b->hw, bad, bad + 3, 0);
  CHECK_CODE(&b->dev, run_stream(b, IMAGES, &finished), OPENKPU_BUS_ERROR);
  CHECK(finished == 2 && b->dev.error.inference == 2 && b->dev.error.stream == 3 && b->dev.error.address == bad);
  CHECK(right(b, 0, 0) && right(b, 1, 1));
  hw_bus_error(b->hw, 1, 0, 0);
  usable(b);
}

static void push_raw(struct bench *b, uint32_t layer) {
  const uint64_t *words = words_of(b, layer);
  for (uint32_t i = 0; i < OPENKPU_WORDS; i++) {
    hw_write32(b->hw, OPENKPU_LAYER_ARGUMENT_FIFO, (uint32_t)words[i]);
    hw_write32(b->hw, OPENKPU_LAYER_ARGUMENT_FIFO + 4, (uint32_t)(words[i] >> 32));
  }
}

/* errors of a host that does not use the driver alone: the next look at the device reports them */
static void host_errors(struct bench *b) {
  hw_write32(b->hw, OPENKPU_EIGHT_BIT_MODE, OPENKPU_EIGHT_BIT_MODE_EIGHT_BIT_MASK);
  hw_dead(b->hw, 1);
  for (uint32_t i = 0; i < 40; i++) push_raw(b, 0);
  hw_dead(b->hw, 0);
  CHECK_CODE(&b->dev, openkpu_check(&b->dev), OPENKPU_FIFO_OVERRUN);
  usable(b);
  (void)hw_read32(b->hw, OPENKPU_FIFO_DATA_OUT);
  (void)hw_read32(b->hw, OPENKPU_FIFO_DATA_OUT + 4);
  CHECK_CODE(&b->dev, openkpu_check(&b->dev), OPENKPU_FIFO_UNDERRUN);
  usable(b);
  /* another context on the same device */
  struct openkpu other = b->dev;
  CHECK_CODE(&b->dev, openkpu_start(&b->dev, &b->net, b->net.input, b->net.result), OPENKPU_OK);
  CHECK_CODE(&other, openkpu_run(&other, &b->net, b->net.input, b->net.result, LIMIT), OPENKPU_START_BUSY);
  CHECK_CODE(&b->dev, openkpu_wait(&b->dev, 0, 100), OPENKPU_TIMEOUT); /* its run went with the other's reset */
  usable(b);
  /* a result that is not aligned, behind the driver's back */
  hw_write32(b->hw, OPENKPU_AI_RES_ADR, b->net.result + 1);
  hw_write32(b->hw, OPENKPU_AI_CTRL, OPENKPU_AI_CTRL_START_MASK);
  CHECK_CODE(&b->dev, openkpu_check(&b->dev), OPENKPU_BAD_CONFIG);
  usable(b);
}

static void list_changed(struct bench *b) {
  uint32_t finished;
  CHECK_CODE(&b->dev, openkpu_stream(&b->dev, &b->net, IMAGES, b->net.input, b->net.input_stride, b->net.result,
                                     b->net.result_stride), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_wait(&b->dev, &finished, LIMIT), OPENKPU_OK);
  *list_word(b, 9, OPENKPU_LAYER_KERNEL_CALC_TYPE_CFG) ^= 1u << 20; /* of inferences whose list is read from now on */
  while (!b->dev.error.code) (void)openkpu_wait(&b->dev, &finished, LIMIT);
  CHECK(b->dev.error.code == OPENKPU_LIST_CHANGED && b->dev.error.layer == 9);
  restore_image(b);
  b->dev.error.code = OPENKPU_OK;
  usable(b);
}

static void watchdog(struct bench *b) {
  CHECK_CODE(&b->dev, openkpu_watchdog(&b->dev, 1000), OPENKPU_OK);
  hw_dead(b->hw, 1);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &b->net, b->net.input, b->net.result, LIMIT), OPENKPU_WATCHDOG);
  CHECK(b->dev.error.waits == 1 && !strcmp(openkpu_waits_text(1), "bus grant"));
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &b->net, b->net.input, b->net.result, LIMIT), OPENKPU_WATCHDOG);
  hw_dead(b->hw, 0);
  usable(b);
  CHECK_CODE(&b->dev, openkpu_start(&b->dev, &b->net, b->net.input, b->net.result), OPENKPU_OK);
  hw_run(b->hw, 40);
  hw_dead(b->hw, 1);
  CHECK_CODE(&b->dev, openkpu_wait(&b->dev, 0, LIMIT), OPENKPU_WATCHDOG);
  CHECK(b->dev.error.waits == 2 && !strcmp(openkpu_waits_text(2), "a slave's answer"));
  CHECK(b->dev.error.address >= HW_BASE && b->dev.error.address - HW_BASE < b->image.size);
  hw_dead(b->hw, 0);
  usable(b);
}

static void windows(struct bench *b) {
  uint32_t half = HW_MEMORY / 2, far = HW_BASE + half, last = hw_read32(b->hw, OPENKPU_AI_READ_LAST); /* after reset */
  CHECK_CODE(&b->dev, openkpu_confine(&b->dev, HW_BASE + 8, half, HW_BASE, half, 0), OPENKPU_MISALIGNED);
  CHECK(b->dev.error.address == HW_BASE + 8); /* of the window that is not aligned */
  CHECK_CODE(&b->dev, openkpu_confine(&b->dev, HW_BASE, half, far, half + 8, 0), OPENKPU_MISALIGNED);
  CHECK(b->dev.error.address == far);
  CHECK_CODE(&b->dev, openkpu_confine(&b->dev, HW_BASE, 0, HW_BASE, half, 0), OPENKPU_BAD_COUNT);
  CHECK_CODE(&b->dev, openkpu_confine(&b->dev, HW_BASE, HW_BASE + 1024, HW_BASE, half, 0), OPENKPU_NO_ROOM);
  CHECK_CODE(&b->dev, openkpu_confine(&b->dev, HW_BASE, half, HW_BASE + half, HW_BASE, 0), OPENKPU_NO_ROOM);
  CHECK(b->dev.error.address == far);
  CHECK_CODE(&b->dev, openkpu_confine(&b->dev, HW_BASE, half, HW_BASE, half, 0), OPENKPU_OK);
  usable(b);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &b->net, far, b->net.result, LIMIT), OPENKPU_BAD_ACCESS);
  CHECK(b->dev.error.address == far && b->dev.error.stream == 3);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &b->net, b->net.input, far, LIMIT), OPENKPU_BAD_ACCESS);
  CHECK(b->dev.error.address == far && b->dev.error.stream == 4);
  CHECK_CODE(&b->dev, openkpu_confine(&b->dev, 0, 0, 0, 0, 0), OPENKPU_OK); /* everything */
  CHECK(hw_read32(b->hw, OPENKPU_AI_READ_LAST) == last && hw_read32(b->hw, OPENKPU_AI_WRITE_LAST) == last);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &b->net, far, b->net.result, LIMIT), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_confine(&b->dev, 0, 0, HW_BASE, half, 0), OPENKPU_BAD_COUNT);
  CHECK_CODE(&b->dev, openkpu_confine(&b->dev, HW_BASE, half, HW_BASE, half, 1), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_confine(&b->dev, HW_BASE, HW_MEMORY, HW_BASE, half, 0), OPENKPU_LOCKED);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &b->net, far, b->net.result, LIMIT), OPENKPU_BAD_ACCESS);
  usable(b);
}

/* ---- bad input */
static void no_device(struct bench *b) {
  hw_fake(b->hw, OPENKPU_AI_ID, 0xFFFFFFFF);
  CHECK_CODE(&b->dev, openkpu_init(&b->dev, b->hw, HW_BASE, HW_MEMORY), OPENKPU_NO_DEVICE);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &b->net, b->net.input, b->net.result, LIMIT), OPENKPU_WRONG_ORDER);
  hw_fake(b->hw, ~0u, 0);
  CHECK_CODE(&b->dev, openkpu_init(&b->dev, b->hw, HW_BASE, HW_MEMORY), OPENKPU_OK);
  usable(b);
}

static void other_configuration(struct bench *b) {
  uint32_t own = hw_read32(b->hw, OPENKPU_AI_CONFIG);
  hw_fake(b->hw, OPENKPU_AI_CONFIG, own ^ 0x600);
  CHECK_CODE(&b->dev, openkpu_init(&b->dev, b->hw, HW_BASE, HW_MEMORY), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_open(&b->dev, &b->net, b->image.data, HW_BASE, OPENKPU_CHECK_ALL), OPENKPU_OTHER_CONFIG);
  CHECK(b->dev.error.address == own); /* what the image wants */
  hw_fake(b->hw, ~0u, 0);
  CHECK_CODE(&b->dev, openkpu_init(&b->dev, b->hw, HW_BASE, HW_MEMORY), OPENKPU_OK);
  usable(b);
}

/* every byte that a checksum covers, one bit at a time, some of them */
static void corrupted(struct bench *b) {
  const uint8_t *image = b->image.data;
  uint32_t list = b->net.list - HW_BASE;
  struct openkpu_network net;
  for (uint32_t i = 0; i < b->image.size; i += i < 256 ? 1 : 101) {
    b->image.data[i] ^= (uint8_t)(1u << i % 8);
    enum openkpu_status code = openkpu_open(&b->dev, &net, image, HW_BASE, OPENKPU_CHECK_ALL);
    CHECK(code == OPENKPU_DAMAGED || code == OPENKPU_NO_IMAGE || code == OPENKPU_NO_ROOM);
    CHECK(code == b->dev.error.code);
    b->image.data[i] ^= (uint8_t)(1u << i % 8);
  }
  b->image.data[list] ^= 1;
  CHECK_CODE(&b->dev, openkpu_open(&b->dev, &net, image, HW_BASE, OPENKPU_CHECK_HEAD), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_open(&b->dev, &net, image, HW_BASE, OPENKPU_CHECK_ALL), OPENKPU_DAMAGED);
  CHECK(b->dev.error.address == HW_BASE + list);
  b->image.data[list] ^= 1;
  usable(b);
}

static void addresses(struct bench *b) {
  struct openkpu_network net = b->net;
  CHECK_CODE(&b->dev, openkpu_open(&b->dev, &net, b->image.data, HW_BASE + 4, OPENKPU_CHECK_ALL), OPENKPU_MISALIGNED);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, net.input, net.result + 2, LIMIT), OPENKPU_MISALIGNED);
  CHECK_CODE(&b->dev, openkpu_stream(&b->dev, &net, 2, net.input, net.input_stride, net.result, 6), OPENKPU_MISALIGNED);
  CHECK(b->dev.error.address == net.result + 6);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, HW_BASE - 4, net.result, LIMIT), OPENKPU_NO_ROOM);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, net.input, HW_BASE + HW_MEMORY, LIMIT), OPENKPU_NO_ROOM);
  CHECK_CODE(&b->dev, openkpu_stream(&b->dev, &net, 1u << 31, net.input, 64, net.result, 64), OPENKPU_NO_ROOM);
  CHECK_CODE(&b->dev, openkpu_start(&b->dev, &net, net.input, net.result), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_next(&b->dev, HW_BASE + HW_MEMORY), OPENKPU_NO_ROOM);
  CHECK_CODE(&b->dev, openkpu_wait(&b->dev, 0, LIMIT), OPENKPU_OK);
  /* it can be anywhere that is aligned: it moves no maps */
  memcpy(hw_memory(b->hw, HW_BASE + 0x100000), b->image.data, b->image.size);
  CHECK_CODE(&b->dev, openkpu_open(&b->dev, &net, b->image.data, HW_BASE + 0x100000, OPENKPU_CHECK_ALL), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, b->net.input, b->net.result, LIMIT), OPENKPU_OK);
  CHECK(right(b, 0, 0));
}

/* an image whose layers move maps lies where it was exported for */
static void misplaced(struct bench *b) {
  struct openkpu_network net;
  struct bytes fixed = contents("fixed.bin");
  CHECK_CODE(&b->dev, openkpu_open(&b->dev, &net, fixed.data, HW_BASE + 0x1000, OPENKPU_CHECK_ALL), OPENKPU_MISPLACED);
  CHECK(b->dev.error.address == HW_BASE);
  CHECK_CODE(&b->dev, openkpu_open(&b->dev, &net, fixed.data, HW_BASE, OPENKPU_CHECK_ALL), OPENKPU_OK);
  free(fixed.data);
  usable(b);
}

static void no_room(struct bench *b) {
  CHECK_CODE(&b->dev, openkpu_init(&b->dev, b->hw, HW_BASE, b->image.size + 4), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_open(&b->dev, &b->net, b->image.data, HW_BASE, OPENKPU_CHECK_ALL), OPENKPU_NO_ROOM);
  CHECK_CODE(&b->dev, openkpu_init(&b->dev, b->hw, HW_BASE, HW_MEMORY), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_upload(&b->dev, 32767, 8, 2, 8, b->inputs.data), OPENKPU_NO_ROOM);
  CHECK_CODE(&b->dev, openkpu_download(&b->dev, 0xFFFFFFFF, 4, 1, 8, b->image.data), OPENKPU_NO_ROOM);
  usable(b);
  /* memory ends at 4 GiB, whatever openkpu_init was given */
  struct openkpu_network net = b->net;
  net.input_bytes = 256;
  CHECK_CODE(&b->dev, openkpu_init(&b->dev, b->hw, HW_BASE, 0xC0000000u), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, 0xFFFFFF80u, net.result, LIMIT), OPENKPU_NO_ROOM);
  usable(b);
}

/* an AI RAM of few rows: an access behind those of the build is an ERROR on the bus of the processor */
static void small_ram(struct bench *b) {
  /* fewer than the driver assumes on every build */
  const uint32_t rows = AI_RAM_ROWS < 2048 ? AI_RAM_ROWS : 2048;
  uint8_t back[64];
  b->dev.rows = rows;
  CHECK_CODE(&b->dev, openkpu_upload(&b->dev, rows - 1, 4, 1, 16, b->inputs.data), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_download(&b->dev, rows - 1, 4, 1, 16, back), OPENKPU_OK);
  CHECK(!memcmp(back, b->inputs.data, sizeof back));
  CHECK_CODE(&b->dev, openkpu_upload(&b->dev, rows - 1, 5, 1, 16, b->inputs.data), OPENKPU_NO_ROOM);
  CHECK(b->dev.error.address == (rows - 1) * 64);
  CHECK_CODE(&b->dev, openkpu_download(&b->dev, rows, 4, 1, 16, back), OPENKPU_NO_ROOM);
  CHECK_CODE(&b->dev, openkpu_init(&b->dev, b->hw, HW_BASE, HW_MEMORY), OPENKPU_OK);
  CHECK(b->dev.rows == 32768);
  /* the network itself is refused by a device whose AI RAM is smaller */
  enum openkpu_status code = openkpu_run(&b->dev, &b->net, b->net.input, b->net.result, LIMIT);
  CHECK(code == OPENKPU_OK || code == OPENKPU_BAD_ADDR);
}

/* unusual requests: each is performed or refused with the right code, and the device is usable afterwards */
static void unusual(struct bench *b) {
  struct openkpu_network net = b->net;
  uint32_t finished = 0, odd = HW_BASE + HW_MEMORY / 2 + 1;
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, net.input, net.result, 0), OPENKPU_TIMEOUT);
  usable(b);
  /* a stop whose limit passes says what is stored all the same */
  CHECK_CODE(&b->dev, run_stream(b, 2, &finished), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_stream(&b->dev, &net, IMAGES, net.input, 0, net.result, net.result_stride), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_wait(&b->dev, 0, LIMIT), OPENKPU_OK);
  finished = 99;
  CHECK_CODE(&b->dev, openkpu_stop(&b->dev, &finished, 0), OPENKPU_TIMEOUT);
  CHECK(finished >= 1 && finished < IMAGES);
  finished = 0;
  usable(b);
  /* an image again and again, its results on top of each other */
  forget_results(b);
  CHECK_CODE(&b->dev, openkpu_stream(&b->dev, &net, 3, net.input, 0, net.result, 0), OPENKPU_OK);
  while (finished < 3) CHECK_CODE(&b->dev, openkpu_wait(&b->dev, &finished, LIMIT), OPENKPU_OK);
  CHECK(right(b, 0, 0));
  /* an image at an odd address */
  memcpy(hw_memory(b->hw, odd), b->inputs.data + net.input_bytes, net.input_bytes);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, odd, net.result, LIMIT), OPENKPU_OK);
  CHECK(right(b, 0, 1));
  /* lists and weights that are not there, filled in by hand */
  net.list = HW_BASE + HW_MEMORY;
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, net.input, net.result, LIMIT), OPENKPU_BUS_ERROR);
  usable(b);
  net = b->net;
  net.list += 2; /* words that are no layer: which rule they break is up to the network */
  CHECK(openkpu_run(&b->dev, &net, net.input, net.result, LIMIT) != OPENKPU_OK && b->dev.error.code <= OPENKPU_LOCKED);
  usable(b);
  net = b->net;
  net.weights = 0;
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, net.input, net.result, LIMIT), OPENKPU_BUS_ERROR);
  usable(b);
  net = b->net;
  net.layers++; /* what lies behind the list is none either */
  CHECK(openkpu_run(&b->dev, &net, net.input, net.result, LIMIT) != OPENKPU_OK && b->dev.error.code <= OPENKPU_LOCKED);
  usable(b);
  /* a driver that begins anew in the middle of a run, and a stream that ends as soon as it has begun */
  CHECK_CODE(&b->dev, openkpu_start(&b->dev, &b->net, b->net.input, b->net.result), OPENKPU_OK);
  hw_run(b->hw, 200);
  CHECK_CODE(&b->dev, openkpu_init(&b->dev, b->hw, HW_BASE, HW_MEMORY), OPENKPU_OK);
  usable(b);
  CHECK_CODE(&b->dev, openkpu_stream(&b->dev, &b->net, IMAGES, b->net.input, b->net.input_stride, b->net.result,
                                     b->net.result_stride), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_stop(&b->dev, &finished, LIMIT), OPENKPU_OK);
  CHECK(finished >= 1 && finished < IMAGES && right(b, 0, 0));
  usable(b);
}

static void lost_interrupt(struct bench *b) {
  uint32_t finished = 99;
  openkpu_use_irq(&b->dev, 1);
  hw_lose_irq(b->hw, 1);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &b->net, b->net.input, b->net.result, 500), OPENKPU_TIMEOUT);
  CHECK_CODE(&b->dev, openkpu_layer(&b->dev, words_of(b, 0), 1, 500), OPENKPU_TIMEOUT);
  CHECK_CODE(&b->dev, openkpu_layers(&b->dev, words_of(b, 0), 14, 1, 500), OPENKPU_TIMEOUT);
  hw_lose_irq(b->hw, 0);
  usable(b);
  /* a run that takes longer: where it was */
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &b->net, b->net.input, b->net.result, 3), OPENKPU_TIMEOUT);
  CHECK(b->dev.error.state & OPENKPU_AI_STATUS_BUSY_MASK);
  usable(b);
  forget_results(b);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &b->net, b->net.input, b->net.result, 1), OPENKPU_TIMEOUT);
  hw_run(b->hw, 20000);
  CHECK(!right(b, 0, 0)); /* the reset has ended it */
  CHECK_CODE(&b->dev, openkpu_stream(&b->dev, &b->net, IMAGES, b->net.input, b->net.input_stride, b->net.result,
                                     b->net.result_stride), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_stop(&b->dev, &finished, 1), OPENKPU_TIMEOUT);
  uint8_t *map = malloc(MOST);
  CHECK_CODE(&b->dev, openkpu_layer_out(&b->dev, words_of(b, 0), 1, map, size_of(place(b, 1)), 0), OPENKPU_TIMEOUT);
  free(map);
  usable(b);
}

static void stuck(struct bench *b) {
  CHECK_CODE(&b->dev, openkpu_watchdog(&b->dev, 100000), OPENKPU_OK);
  b->dev.reset_limit = 10;
  hw_dead(b->hw, 1);
  /* a reset that does not end hides neither the timeout nor the device's own error */
  CHECK(openkpu_run(&b->dev, &b->net, b->net.input, b->net.result, 10) == OPENKPU_STUCK);
  CHECK(b->dev.error.code == OPENKPU_TIMEOUT && b->dev.error.state & OPENKPU_AI_STATUS_BUSY_MASK);
  CHECK_CODE(&b->dev, openkpu_reset(&b->dev), OPENKPU_STUCK);
  (void)hw_read32(b->hw, OPENKPU_FIFO_DATA_OUT);
  CHECK(openkpu_check(&b->dev) == OPENKPU_STUCK && b->dev.error.code == OPENKPU_FIFO_UNDERRUN);
  b->dev.reset_limit = 1000000;
  CHECK_CODE(&b->dev, openkpu_reset(&b->dev), OPENKPU_OK); /* the watchdog ends it */
  hw_dead(b->hw, 0);
  usable(b);
}

static void two_runs(struct bench *b) {
  CHECK_CODE(&b->dev, openkpu_start(&b->dev, &b->net, b->net.input, b->net.result), OPENKPU_OK);
  struct openkpu_network net;
  uint8_t byte = 0;
  CHECK_CODE(&b->dev, openkpu_start(&b->dev, &b->net, b->net.input, b->net.result), OPENKPU_BUSY);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &b->net, b->net.input, b->net.result, LIMIT), OPENKPU_BUSY);
  CHECK_CODE(&b->dev, openkpu_open(&b->dev, &net, b->image.data, HW_BASE, OPENKPU_CHECK_ALL), OPENKPU_BUSY);
  CHECK_CODE(&b->dev, openkpu_layer(&b->dev, words_of(b, 0), 1, LIMIT), OPENKPU_BUSY);
  CHECK_CODE(&b->dev, openkpu_layer_moved(&b->dev, words_of(b, 0), 1, 2, 2, LIMIT), OPENKPU_BUSY);
  CHECK_CODE(&b->dev, openkpu_layers(&b->dev, words_of(b, 0), 2, 1, LIMIT), OPENKPU_BUSY);
  CHECK_CODE(&b->dev, openkpu_layer_out(&b->dev, words_of(b, 0), 1, &byte, 1, LIMIT), OPENKPU_BUSY);
  CHECK_CODE(&b->dev, openkpu_upload(&b->dev, 0, 1, 1, 1, &byte), OPENKPU_BUSY);
  CHECK_CODE(&b->dev, openkpu_download(&b->dev, 0, 1, 1, 1, &byte), OPENKPU_BUSY);
  CHECK_CODE(&b->dev, openkpu_confine(&b->dev, 0, 1024, 0, 1024, 0), OPENKPU_BUSY);
  CHECK_CODE(&b->dev, openkpu_wait(&b->dev, 0, LIMIT), OPENKPU_OK); /* the first run is not disturbed */
  CHECK(right(b, 0, 0));
  usable(b);
}

static void wrong_order(struct bench *b) {
  struct openkpu fresh;
  struct openkpu_network net = b->net;
  uint32_t finished;
  uint8_t byte = 0;
  memset(&fresh, 0, sizeof fresh);
  CHECK_CODE(&fresh, openkpu_start(&fresh, &net, net.input, net.result), OPENKPU_WRONG_ORDER);
  CHECK_CODE(&fresh, openkpu_open(&fresh, &net, b->image.data, HW_BASE, OPENKPU_CHECK_ALL), OPENKPU_WRONG_ORDER);
  CHECK_CODE(&fresh, openkpu_wait(&fresh, &finished, LIMIT), OPENKPU_WRONG_ORDER);
  CHECK_CODE(&fresh, openkpu_layer(&fresh, words_of(b, 0), 1, LIMIT), OPENKPU_WRONG_ORDER);
  CHECK_CODE(&fresh, openkpu_upload(&fresh, 0, 1, 1, 1, &byte), OPENKPU_WRONG_ORDER);
  CHECK_CODE(&fresh, openkpu_reset(&fresh), OPENKPU_WRONG_ORDER);
  CHECK_CODE(&fresh, openkpu_watchdog(&fresh, 1), OPENKPU_WRONG_ORDER);
  CHECK_CODE(&fresh, openkpu_layer_moved(&fresh, words_of(b, 0), 1, 2, 2, LIMIT), OPENKPU_WRONG_ORDER);
  CHECK_CODE(&fresh, openkpu_check(&fresh), OPENKPU_WRONG_ORDER);
  CHECK(!openkpu_irq(&fresh) && !openkpu_taken(&fresh)); /* of another device on the line */
  CHECK_CODE(&b->dev, run_stream(b, 2, &finished), OPENKPU_OK);
  finished = 99;
  CHECK_CODE(&b->dev, openkpu_wait(&b->dev, &finished, LIMIT), OPENKPU_WRONG_ORDER);
  CHECK(finished == 2);
  finished = 99;
  CHECK_CODE(&b->dev, openkpu_stop(&b->dev, &finished, LIMIT), OPENKPU_WRONG_ORDER);
  CHECK(finished == 2);
  CHECK_CODE(&b->dev, openkpu_next(&b->dev, net.input), OPENKPU_WRONG_ORDER);
  CHECK_CODE(&b->dev, openkpu_stream(&b->dev, &net, 0, net.input, 0, net.result, 0), OPENKPU_BAD_COUNT);
  CHECK_CODE(&b->dev, openkpu_layers(&b->dev, words_of(b, 0), 0, 1, LIMIT), OPENKPU_BAD_COUNT);
  CHECK_CODE(&b->dev, openkpu_upload(&b->dev, 0, 0, 1, 1, &byte), OPENKPU_BAD_COUNT);
  CHECK_CODE(&b->dev, openkpu_upload(&b->dev, 0, 9217, 1, 1, &byte), OPENKPU_BAD_COUNT);
  net.layers = 0;
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, net.input, net.result, LIMIT), OPENKPU_BAD_COUNT);
  usable(b);
}

/* two devices, a context each, at work at a time */
static void two_devices(struct bench *b) {
  struct bench other;
  set_up(&other);
  openkpu_use_irq(&other.dev, 1);
  forget_results(b);
  forget_results(&other);
  CHECK_CODE(&b->dev, openkpu_start(&b->dev, &b->net, b->net.input, b->net.result), OPENKPU_OK);
  CHECK_CODE(&other.dev, openkpu_run(&other.dev, &other.net, other.net.input + other.net.input_stride, other.net.result,
                                     LIMIT), OPENKPU_OK);
  hw_bus_error(other.hw, HW_BASE, HW_BASE + HW_MEMORY - 1, 0);
  CHECK_CODE(&other.dev, openkpu_run(&other.dev, &other.net, other.net.input, other.net.result, LIMIT), OPENKPU_BUS_ERROR);
  CHECK_CODE(&b->dev, openkpu_wait(&b->dev, 0, LIMIT), OPENKPU_OK);
  CHECK(right(b, 0, 0) && right(&other, 0, 1) && b->dev.error.code == OPENKPU_OK);
  tear_down(&other);
}

/* a second input and output inside of the image, through the cache, and a constant under the checksum */
static void maps_inside(struct bench *b) {
  struct bytes two = contents("two.bin"), maps = contents("two.maps");
  struct openkpu_network net;
  const uint8_t *at = maps.data;
  memcpy(hw_memory(b->hw, HW_BASE), two.data, two.size);
  CHECK_CODE(&b->dev, openkpu_open(&b->dev, &net, hw_memory(b->hw, HW_BASE), HW_BASE, OPENKPU_CHECK_ALL), OPENKPU_OK);
  uint32_t constant = net.stored + net.stored_bytes - HW_BASE, list = net.list - HW_BASE;
  CHECK(net.loaded_bytes && net.stored_bytes && constant < list);
  for (uint32_t i = constant; i < list; i++) {
    two.data[i] ^= 0x10;
    CHECK_CODE(&b->dev, openkpu_open(&b->dev, &net, two.data, HW_BASE, OPENKPU_CHECK_ALL), OPENKPU_DAMAGED);
    two.data[i] ^= 0x10;
  }
  uint32_t out = size_of(place(b, 8)); /* the second output is the map of layer 7 */
  uint32_t second = maps.size / 2 - net.input_bytes - net.result_bytes - out;
  CHECK(second <= net.loaded_bytes && out <= net.stored_bytes);
  for (int inference = 0; inference < 2; inference++) {
    memset(hw_memory(b->hw, net.stored), 0x5A, net.stored_bytes);
    memcpy(hw_memory(b->hw, net.input), at, net.input_bytes);
    memcpy(hw_memory(b->hw, net.loaded), at + net.input_bytes, second);
    at += net.input_bytes + second;
    CHECK_CODE(&b->dev, openkpu_run(&b->dev, &net, net.input, net.result, LIMIT), OPENKPU_OK);
    CHECK(!memcmp(hw_memory(b->hw, net.result), at, net.result_bytes));
    CHECK(!memcmp(hw_memory(b->hw, net.stored), at + net.result_bytes, out));
    at += net.result_bytes + out;
    /* open again: what a run writes is under no checksum */
    CHECK_CODE(&b->dev, openkpu_open(&b->dev, &net, hw_memory(b->hw, HW_BASE), HW_BASE, OPENKPU_CHECK_ALL), OPENKPU_OK);
  }
  free(two.data);
  free(maps.data);
}

/* a start that the device refuses: no results, those of the run before are not counted again */
static void refused_start(struct bench *b) {
  for (int irq = 0; irq < 2; irq++) {
    uint32_t finished;
    openkpu_use_irq(&b->dev, irq);
    CHECK_CODE(&b->dev, run_stream(b, 2, &finished), OPENKPU_OK);
    hw_write32(b->hw, OPENKPU_AI_CNN_MODE, 2);
    hw_write32(b->hw, OPENKPU_AI_INF_LEFT, 3);
    hw_write32(b->hw, OPENKPU_AI_CTRL, OPENKPU_AI_CTRL_START_MASK); /* another host's */
    for (uint32_t i = 0; !hw_read32(b->hw, OPENKPU_PERF_INFERENCES); i++) {
      CHECK(i < LIMIT);
      hw_run(b->hw, 1);
    }
    uint64_t before = hw_invalidated(b->hw);
    CHECK_CODE(&b->dev, openkpu_start(&b->dev, &b->net, b->net.input, b->net.result), OPENKPU_START_BUSY);
    CHECK(b->dev.finished == 0 && hw_invalidated(b->hw) - before == b->net.result_bytes);
    CHECK_CODE(&b->dev, openkpu_wait(&b->dev, &finished, LIMIT), OPENKPU_WRONG_ORDER);
    CHECK(finished == 0);
    usable(b);
  }
  /* strides of one inference do not matter */
  forget_results(b);
  CHECK_CODE(&b->dev, openkpu_stream(&b->dev, &b->net, 1, b->net.input, 7, b->net.result, 10), OPENKPU_OK);
  CHECK_CODE(&b->dev, openkpu_wait(&b->dev, 0, LIMIT), OPENKPU_OK);
  CHECK(right(b, 0, 0));
}

static void until_idle(struct bench *b, int line) {
  for (uint32_t i = 0; hw_read32(b->hw, OPENKPU_AI_STATUS) & OPENKPU_AI_STATUS_BUSY_MASK; i++) {
    CHECK(i < 100 * LIMIT);
    CHECK(line || !hw_irq(b->hw));
  }
  hw_run(b->hw, 2);
  CHECK(hw_irq(b->hw) == line);
}

/* a polled device raises no interrupt, and a handler of a line that it shares sees nothing of it */
static void polled(struct bench *b) {
  forget_results(b);
  CHECK_CODE(&b->dev, openkpu_start(&b->dev, &b->net, b->net.input, b->net.result), OPENKPU_OK);
  until_idle(b, 0);
  CHECK(!openkpu_irq(&b->dev) && !openkpu_pending(&b->dev));
  CHECK_CODE(&b->dev, openkpu_wait(&b->dev, 0, 0), OPENKPU_OK);
  CHECK(right(b, 0, 0));
  /* the kind of waiting changes during a run, before and behind its end */
  for (int late = 0; late < 2; late++) {
    for (int irq = 0; irq < 2; irq++) {
      openkpu_use_irq(&b->dev, irq);
      forget_results(b);
      CHECK_CODE(&b->dev, openkpu_start(&b->dev, &b->net, b->net.input, b->net.result), OPENKPU_OK);
      if (late) until_idle(b, irq);
      openkpu_use_irq(&b->dev, !irq);
      hw_run(b->hw, 2);
      CHECK(hw_irq(b->hw) == (late && !irq));
      CHECK_CODE(&b->dev, openkpu_wait(&b->dev, 0, LIMIT), OPENKPU_OK);
      CHECK(right(b, 0, 0));
    }
  }
}

/* a limit passes while the device has recorded why: its error, not the timeout */
static void error_behind_a_timeout(struct bench *b) {
  openkpu_use_irq(&b->dev, 1);
  hw_lose_irq(b->hw, 1);
  hw_bus_error(b->hw, b->net.input, b->net.input + 3, 0);
  CHECK_CODE(&b->dev, openkpu_run(&b->dev, &b->net, b->net.input, b->net.result, 500), OPENKPU_BUS_ERROR);
  CHECK(b->dev.error.address == b->net.input && b->dev.error.stream == 3);
  hw_lose_irq(b->hw, 0);
  hw_bus_error(b->hw, 1, 0, 0);
  usable(b);
}

/* a second openkpu_init at any time, beside a handler that runs at any time */
static void begun_anew(struct bench *b) {
  uint32_t first = 0; /* cycles to the first result */
  openkpu_use_irq(&b->dev, 1);
  CHECK_CODE(&b->dev, openkpu_start(&b->dev, &b->net, b->net.input, b->net.result), OPENKPU_OK);
  for (; !hw_irq(b->hw); first++) hw_run(b->hw, 1);
  CHECK_CODE(&b->dev, openkpu_wait(&b->dev, 0, LIMIT), OPENKPU_OK);
  hw_handler(b->hw, &b->dev);
  for (uint32_t wait = first - 60; wait < first + 20; wait++) {
    openkpu_use_irq(&b->dev, 1);
    CHECK_CODE(&b->dev, openkpu_start(&b->dev, &b->net, b->net.input, b->net.result), OPENKPU_OK);
    hw_run(b->hw, wait);
    CHECK_CODE(&b->dev, openkpu_init(&b->dev, b->hw, HW_BASE, HW_MEMORY), OPENKPU_OK);
    usable(b);
    openkpu_use_irq(&b->dev, 1);
    usable(b);
  }
}

/* a result that is noted as openkpu_stop begins does not keep the port from waiting */
static void late_event(struct bench *b) {
  uint32_t finished;
  openkpu_use_irq(&b->dev, 1);
  CHECK_CODE(&b->dev, openkpu_stream(&b->dev, &b->net, IMAGES, b->net.input, b->net.input_stride, b->net.result,
                                     b->net.result_stride), OPENKPU_OK);
  hw_event_at(b->hw, &b->dev, OPENKPU_AI_CTRL);
  CHECK_CODE(&b->dev, openkpu_stop(&b->dev, &finished, PASSES), OPENKPU_OK);
  CHECK(finished >= 1 && finished < IMAGES);
  usable(b);
}

/* every code has a text of its own */
static void texts(struct bench *b) {
  (void)b;
  for (int one = 0; one <= OPENKPU_STUCK; one++) {
    const char *text = openkpu_text((enum openkpu_status)one);
    int known = one <= 15 || one >= OPENKPU_NO_DEVICE;
    CHECK(known == (strcmp(text, "unknown code") != 0));
    for (int other = 0; known && other < one; other++) CHECK(strcmp(text, openkpu_text((enum openkpu_status)other)) != 0);
  }
  CHECK(!strcmp(openkpu_text((enum openkpu_status)200), "unknown code"));
  CHECK(!strcmp(openkpu_waits_text(8), "unknown"));
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(struct bench *b);
  } tests[] = {
#define TEST(name) {#name, name}
      TEST(single), TEST(by_interrupt), TEST(stream), TEST(next_pixels), TEST(stop), TEST(layers), TEST(burst),
      TEST(bits_of_another_driver), TEST(spare_rows_of_one), TEST(between_results), TEST(left_behind), TEST(moved), TEST(tensors), TEST(refused_layers), TEST(bus_error), TEST(bus_error_in_stream), TEST(host_errors),
      TEST(list_changed), TEST(watchdog), TEST(windows), TEST(no_device), TEST(other_configuration), TEST(corrupted),
      TEST(addresses), TEST(misplaced), TEST(no_room), TEST(small_ram), TEST(unusual), TEST(lost_interrupt), TEST(stuck),
      TEST(two_runs), TEST(wrong_order), TEST(two_devices), TEST(texts),
      TEST(maps_inside), TEST(refused_start), TEST(polled), TEST(error_behind_a_timeout), TEST(begun_anew), TEST(late_event),
  };
  if (argc == 1) {
    for (uint32_t i = 0; i < sizeof tests / sizeof *tests; i++) printf("%s\n", tests[i].name);
    return 0;
  }
  for (uint32_t i = 0; argc == 3 && i < sizeof tests / sizeof *tests; i++) {
    if (!strcmp(tests[i].name, argv[2])) {
      struct bench b;
      folder = argv[1];
      set_up(&b);
      tests[i].run(&b);
      CHECK(!hw_irq(b.hw));
      tear_down(&b);
      return 0;
    }
  }
  printf("usage: driver_tests [FOLDER TEST]\n");
  return 2;
}
