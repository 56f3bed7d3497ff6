/* SPDX-License-Identifier: Apache-2.0 */
/* One line of text for every code. */
#include "openkpu.h"

const char *openkpu_text(enum openkpu_status code) {
  switch (code) {
    case OPENKPU_OK: return "no error";
    case OPENKPU_BAD_SIZE: return "BAD_SIZE: sizes or channels of a layer are not legal";
    case OPENKPU_BAD_ADDR: return "BAD_ADDR: a map of a layer does not fit the AI RAM";
    case OPENKPU_BAD_POOL: return "BAD_POOL: pooling of a layer is not legal";
    case OPENKPU_BAD_KERNEL: return "BAD_KERNEL: kernel of a layer is not legal";
    case OPENKPU_BAD_WEIGHTS: return "BAD_WEIGHTS: weights of a layer do not fit the weight buffer";
    case OPENKPU_BAD_FLAGS: return "BAD_FLAGS: flags of a layer contradict each other, or this build has not what they ask for";
    case OPENKPU_BUS_ERROR: return "BUS_ERROR: the storage answered ERROR";
    case OPENKPU_FIFO_OVERRUN: return "FIFO_OVERRUN: a layer was pushed without room for it";
    case OPENKPU_START_BUSY: return "START_BUSY: a start while the device was busy";
    case OPENKPU_FIFO_UNDERRUN: return "FIFO_UNDERRUN: fifo_data_out was read while empty";
    case OPENKPU_BAD_CONFIG: return "BAD_CONFIG: mode 0, an empty list, a result that is not aligned, or rows beyond the AI RAM";
    case OPENKPU_LIST_CHANGED: return "LIST_CHANGED: the task list changed during a stream";
    case OPENKPU_WATCHDOG: return "WATCHDOG: no progress for AI_WATCHDOG cycles";
    case OPENKPU_BAD_ACCESS: return "BAD_ACCESS: a transfer would leave its address window";
    case OPENKPU_LOCKED: return "LOCKED: the address windows are locked";
    case OPENKPU_NO_DEVICE: return "AI_ID is not that of the device; is the base address right?";
    case OPENKPU_NO_IMAGE: return "no network image of a version that this driver reads";
    case OPENKPU_DAMAGED: return "a checksum of the network image is wrong";
    case OPENKPU_OTHER_CONFIG: return "the network image is for another configuration of the device (AI_CONFIG)";
    case OPENKPU_MISALIGNED: return "an address is not aligned";
    case OPENKPU_MISPLACED: return "the network image was exported for another address";
    case OPENKPU_NO_ROOM: return "the memory for runs is too small, or an address lies outside of it";
    case OPENKPU_BUSY: return "a run is at work";
    case OPENKPU_WRONG_ORDER: return "a call that needs another one before it";
    case OPENKPU_BAD_COUNT: return "a count is 0 or too large";
    case OPENKPU_TIMEOUT: return "the limit of a wait has passed; the device was reset";
    case OPENKPU_STUCK: return "the device does not end a soft reset";
  }
  return "unknown code";
}

const char *openkpu_stream_text(uint32_t stream) {
  static const char *const texts[] = {"list", "table and batch norm", "weights", "pixels", "result"};
  return stream < sizeof texts / sizeof *texts ? texts[stream] : "no transfer";
}

const char *openkpu_waits_text(uint32_t waits) {
  static const char *const texts[] = {"nothing", "bus grant", "a slave's answer", "grant after RETRY or SPLIT",
                                      "pixels", "the array", "output of a map", "control"};
  return waits < sizeof texts / sizeof *texts ? texts[waits] : "unknown";
}
