/* Intel GPUs as files of a test's tree: every file with a sound value, an Arc behind the bridges that it has on its board. */
#ifndef GPUTAP_TESTS_TREE_INTEL_H
#define GPUTAP_TESTS_TREE_INTEL_H

#include "tree.h"

/* An awake B580 under xe at 0000:03:00.0: a GT for graphics at 2400 of 2850 MHz, one for media, 16 GT/s x8. */
void tree_xe_card(const struct tree *tree);
#define XE_BRIDGE "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
#define XE_CARD XE_BRIDGE "/0000:02:01.0/0000:03:00.0"
#define XE_HWMON XE_CARD "/hwmon/hwmon4"
#define XE_GT0 XE_CARD "/tile0/gt0"
#define XE_GT1 XE_CARD "/tile0/gt1"

/* An awake A380 under i915 at 0000:03:00.0, card1. */
void tree_i915_card(const struct tree *tree);
#define I915_CARD XE_CARD
#define I915_HWMON I915_CARD "/hwmon/hwmon1"
#define I915_GT I915_CARD "/drm/card1/gt/gt0"

/* The graphics of a Tiger Lake processor at 0000:00:02.0. */
void tree_integrated(const struct tree *tree, const char *driver);
#define INTEGRATED "/sys/devices/pci0000:00/0000:00:02.0"

#endif
