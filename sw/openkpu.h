/* SPDX-License-Identifier: Apache-2.0 */
/* Driver of the device. docs/driver.md explains it, docs/programming.md the registers.

   A context (struct openkpu) serves one device. Nothing is allocated and nothing is static, so several devices work at
   a time. A context is used by one thread and by its interrupt handler. Addresses are bus addresses. Limits count passes
   of the waiting loop (OPENKPU_PAUSE). */
#ifndef OPENKPU_H
#define OPENKPU_H

#include <stdint.h>

#include "openkpu_regs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* major, minor, patch: 8 bits each */
#define OPENKPU_DRIVER_VERSION 0x010100u

enum { OPENKPU_WORDS = 12, OPENKPU_BURST = 12 }; /* 64-bit words of a layer; layers pushed at a time */

/* 1 to 15 are the device's own, AI_ERR_CODE */
enum openkpu_status {
  OPENKPU_OK = 0,
  OPENKPU_BAD_SIZE = OPENKPU_ERR_BAD_SIZE,
  OPENKPU_BAD_ADDR = OPENKPU_ERR_BAD_ADDR,
  OPENKPU_BAD_POOL = OPENKPU_ERR_BAD_POOL,
  OPENKPU_BAD_KERNEL = OPENKPU_ERR_BAD_KERNEL,
  OPENKPU_BAD_WEIGHTS = OPENKPU_ERR_BAD_WEIGHTS,
  OPENKPU_BAD_FLAGS = OPENKPU_ERR_BAD_FLAGS,
  OPENKPU_BUS_ERROR = OPENKPU_ERR_BUS_ERROR,
  OPENKPU_FIFO_OVERRUN = OPENKPU_ERR_FIFO_OVERRUN,
  OPENKPU_START_BUSY = OPENKPU_ERR_START_BUSY,
  OPENKPU_FIFO_UNDERRUN = OPENKPU_ERR_FIFO_UNDERRUN,
  OPENKPU_BAD_CONFIG = OPENKPU_ERR_BAD_CONFIG,
  OPENKPU_LIST_CHANGED = OPENKPU_ERR_LIST_CHANGED,
  OPENKPU_WATCHDOG = OPENKPU_ERR_WATCHDOG,
  OPENKPU_BAD_ACCESS = OPENKPU_ERR_BAD_ACCESS,
  OPENKPU_LOCKED = OPENKPU_ERR_LOCKED,
  /* the driver's */
  OPENKPU_NO_DEVICE = 32, /* AI_ID is another */
  OPENKPU_NO_IMAGE,       /* no network image, or of another version */
  OPENKPU_DAMAGED,        /* a checksum of the image is wrong */
  OPENKPU_OTHER_CONFIG,   /* the image is for another configuration */
  OPENKPU_MISALIGNED,     /* an address that is not aligned */
  OPENKPU_MISPLACED,      /* the image was exported for another address */
  OPENKPU_NO_ROOM,        /* more than the memory that openkpu_init was given */
  OPENKPU_BUSY,           /* a run is at work */
  OPENKPU_WRONG_ORDER,    /* a call that needs another one before it */
  OPENKPU_BAD_COUNT,      /* a count of nothing, or of too much */
  OPENKPU_TIMEOUT,        /* the limit of a wait has passed; the device was reset */
  OPENKPU_STUCK           /* the device does not end a soft reset */
};

/* the last failure of a context; fields that do not apply are 0, `stream` 7. When the reset behind a failure does not
   end, the call returns STUCK and this is the failure */
struct openkpu_error {
  enum openkpu_status code;
  uint32_t layer, stream, waits, inference; /* AI_ERR_INFO; with TIMEOUT `layer` is that of AI_STATUS, 8 bits */
  uint32_t address;                         /* AI_ERR_ADDR, or the address that was refused */
  uint32_t state;                           /* AI_STATUS before the reset */
};

/* page: network */
/* a network in memory: from openkpu_open, or filled in by hand */
struct openkpu_network {
  uint32_t list, layers;    /* bus address of the list, number of its layers */
  uint32_t weights, biases; /* bus addresses that the list's offsets are added to */
  uint32_t eight_bit;       /* weights of 8 bits */
  uint32_t input, input_bytes, input_stride;
  uint32_t result, result_bytes, result_stride;
  uint32_t spare; /* AI_SPARE_ROWS: rows of the AI RAM that no map uses; 0: none are named */
  /* memory, beside input and result, that layers read and that layers write: other inputs, other outputs */
  uint32_t loaded, loaded_bytes, stored, stored_bytes;
};
/* page end */

struct openkpu {
  void *port;
  uint32_t memory, size; /* that runs may use; size 0: everything */
  uint32_t config;       /* AI_CONFIG */
  uint32_t rows;         /* of the AI RAM: 32768 after openkpu_init, no register says it; a user sets fewer */
  uint32_t reset_limit;  /* passes of a wait for the end of a soft reset */
  struct openkpu_error error;
  volatile uint32_t events; /* what the interrupt handler has seen: AI_INT_STATUS, interrupt_status << 8 */
  uint32_t pixels, result, stride, bytes, count, finished; /* of the run */
  uint32_t stored, stored_bytes;
  uint8_t state, by_irq;
};

/* ---- openkpu.c: device, networks, streams */
uint32_t openkpu_version(void);
/* `port`: see openkpu_port.h. `memory`, `size`: what runs may use; size 0: the whole address space. Resets the device. */
enum openkpu_status openkpu_init(struct openkpu *dev, void *port, uint32_t memory, uint32_t size);
/* waits use interrupts: the handler of the interrupt line calls openkpu_irq. Without, the device raises none */
void openkpu_use_irq(struct openkpu *dev, int on);
/* serve the interrupt line; 0 when it was another device's */
int openkpu_irq(struct openkpu *dev);
/* has openkpu_irq seen anything that nobody has waited for yet? */
int openkpu_pending(const struct openkpu *dev);
/* everything stops; configuration, AI RAM and windows stay */
enum openkpu_status openkpu_reset(struct openkpu *dev);
/* cycles without progress that end a run; 0: none do */
enum openkpu_status openkpu_watchdog(struct openkpu *dev, uint32_t cycles);
/* address windows, multiples of 1 KiB, or four times 0 for everything; `lock`: until the hardware reset */
enum openkpu_status openkpu_confine(struct openkpu *dev, uint32_t read_base, uint32_t read_size, uint32_t write_base,
                                    uint32_t write_size, int lock);

/* a run of one inference, or of a stream; `pixels` and `results` are spaced by their strides */
enum openkpu_status openkpu_start(struct openkpu *dev, const struct openkpu_network *net, uint32_t pixels,
                                  uint32_t result);
enum openkpu_status openkpu_stream(struct openkpu *dev, const struct openkpu_network *net, uint32_t count,
                                   uint32_t pixels, uint32_t pixel_stride, uint32_t results, uint32_t result_stride);
/* until another result is stored, or an error; `finished` (may be NULL): results so far, with any code */
enum openkpu_status openkpu_wait(struct openkpu *dev, uint32_t *finished, uint32_t limit);
/* the same for one inference, start to result */
enum openkpu_status openkpu_run(struct openkpu *dev, const struct openkpu_network *net, uint32_t pixels,
                                uint32_t result, uint32_t limit);
/* of a stream: is the next image being fetched? Then openkpu_next sets the address of the one after it */
int openkpu_taken(const struct openkpu *dev);
enum openkpu_status openkpu_next(struct openkpu *dev, uint32_t pixels);
/* end a stream after the inference at work; `finished` (may be NULL): results that are stored, with any code */
enum openkpu_status openkpu_stop(struct openkpu *dev, uint32_t *finished, uint32_t limit);
/* code of an error of the device, described in dev->error, after recovery; OPENKPU_OK when there is none */
enum openkpu_status openkpu_check(struct openkpu *dev);

/* ---- openkpu_image.c: networks of `openkpu export` */
enum { OPENKPU_CHECK_HEAD, OPENKPU_CHECK_ALL }; /* checksums: of the header alone, of lists and weights too */
/* `image`: where the processor sees it, `address`: where the device does */
enum openkpu_status openkpu_open(struct openkpu *dev, struct openkpu_network *net, const void *image, uint32_t address,
                                 int check);
/* tensor `number` of the image, inputs first, between the model's order and its map's bytes, `map`; 0, BAD_COUNT, or
   DAMAGED for a table that openkpu_open would have refused with CHECK_ALL */
enum openkpu_status openkpu_pack(const void *image, uint32_t number, const void *tensor, uint8_t *map);
enum openkpu_status openkpu_unpack(const void *image, uint32_t number, const uint8_t *map, void *tensor);

/* ---- openkpu_layers.c: layer by layer, as on a K210; int_en and send_data_out of the words are the driver's */
enum openkpu_status openkpu_layer(struct openkpu *dev, const uint64_t *words, int eight_bit, uint32_t limit);
enum openkpu_status openkpu_layers(struct openkpu *dev, const uint64_t *words, uint32_t count, int eight_bit,
                                   uint32_t limit);
/* the map of the layer comes through fifo_data_out, `size` bytes */
enum openkpu_status openkpu_layer_out(struct openkpu *dev, const uint64_t *words, int eight_bit, uint8_t *map,
                                      uint32_t size, uint32_t limit);
/* input map from storage, output map to storage; `to` is a multiple of the bus word */
enum openkpu_status openkpu_layer_moved(struct openkpu *dev, const uint64_t *words, int eight_bit, uint32_t from,
                                        uint32_t to, uint32_t limit);
/* a dense map (c, y, x order; a 32-bit map has four times the channels) into the AI RAM from row `row` on, and back; at
   most 9216 channels, 512 lines, 1024 columns */
enum openkpu_status openkpu_upload(struct openkpu *dev, uint32_t row, uint32_t channels, uint32_t height,
                                   uint32_t width, const uint8_t *map);
enum openkpu_status openkpu_download(struct openkpu *dev, uint32_t row, uint32_t channels, uint32_t height,
                                     uint32_t width, uint8_t *map);

/* ---- openkpu_text.c: one line for people */
const char *openkpu_text(enum openkpu_status code);
const char *openkpu_stream_text(uint32_t stream); /* of openkpu_error */
const char *openkpu_waits_text(uint32_t waits);

#ifdef __cplusplus
}
#endif

#endif
