// What some work costs on a chip, as a device of the executor found out: a library's way and how long it takes. Known
// again by words, so that it outlives the run.

#pragma once

typedef struct ChipPrice {
    const char *chip;    // and what else the choice hangs on: "NVIDIA H200, driver 13000, cuBLASLt 130100"
    const char *what;    // "4096x4096x14336 nt bf16>bf16 set plain align 256 sms 0"
    const char *choice;  // the device's own business
    double seconds;
} ChipPrice;
