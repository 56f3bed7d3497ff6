/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver needs of a platform. These defaults are for bare metal: `port` is the address of the device's slave
   window, and there are no caches. A port puts its own definitions into a header and compiles with
   -DOPENKPU_PORT='"my_port.h"'; each macro that it leaves out stays as it is here. */
#ifndef OPENKPU_PORT_H
#define OPENKPU_PORT_H

#include <stdint.h>

struct openkpu;

#ifdef OPENKPU_PORT
#include OPENKPU_PORT
#endif

/* page: port */
/* 32-bit accesses at the base of the device plus an offset, in program order */
#ifndef OPENKPU_READ32
#define OPENKPU_READ32(port, offset) (*(volatile const uint32_t *)((uintptr_t)(port) + (offset)))
#endif
#ifndef OPENKPU_WRITE32
#define OPENKPU_WRITE32(port, offset, value) (*(volatile uint32_t *)((uintptr_t)(port) + (offset)) = (value))
#endif

/* memory that was written before is visible to the device when it gets later accesses to registers, and memory that is
   read later is as it was when registers were read before: a fence of memory alone is not enough */
#ifndef OPENKPU_BARRIER
#if defined(__GNUC__) && defined(__riscv)
#define OPENKPU_BARRIER(port) __asm__ volatile("fence iorw, iorw" ::: "memory")
#elif defined(__GNUC__) && (defined(__ARM_ARCH_6M__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7))
#define OPENKPU_BARRIER(port) __asm__ volatile("dsb sy" ::: "memory")
#elif defined(__GNUC__)
#define OPENKPU_BARRIER(port) __sync_synchronize()
#else
#error "define OPENKPU_BARRIER(port) in the port for this compiler"
#endif
#endif

/* cache maintenance for `bytes` of memory at a bus address: before the device reads, after it has written */
#ifndef OPENKPU_CLEAN
#define OPENKPU_CLEAN(port, address, bytes) ((void)(address), (void)(bytes))
#endif
#ifndef OPENKPU_INVALIDATE
#define OPENKPU_INVALIDATE(port, address, bytes) ((void)(address), (void)(bytes))
#endif

/* one pass of a waiting loop; a port with interrupts sleeps here while openkpu_pending(dev) is 0, and wakes without an
   interrupt from time to time, so that limits count */
#ifndef OPENKPU_PAUSE
#define OPENKPU_PAUSE(dev) ((void)(dev))
#endif
/* page end */

#endif
