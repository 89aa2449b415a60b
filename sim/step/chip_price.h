// What some work costs on a chip, as a device of the executor measured it: the library's choice and its time. Keyed by
// text, so that it outlives the run.

#pragma once

typedef struct ChipPrice {
    const char *chip;    // and whatever else the choice depends on: "NVIDIA H200, driver 13000, cuBLASLt 130100"
    const char *what;    // "4096x4096x14336 nt bf16>bf16 set plain align 256 sms 0"
    const char *choice;  // opaque outside the device
    double seconds;
} ChipPrice;
