// Sine and cosine of a non-negative angle, rounded to float: reduced by pi/2 in three parts (Cody and Waite 1980) and
// summed as Taylor series, in double. Exact to float rounding for angles below 2^20. Plain arithmetic, so that it
// vectorises and gives the same bits on every device.

#pragma once

#include <stdint.h>

#include "kernels/inline.h"

KERNEL_INLINE void angle_sine(double angle, float *sine, float *cosine) {
    const int32_t quarter = (int32_t)(angle * 0.63661977236758134308 + 0.5);  // 2/pi
    const double n = (double)quarter;
    // pi/2 = 1.5707963267341256 (33 bits) + 6.077100506303966e-11 (33 bits) + 2.0222662487959506e-21, as in fdlibm
    const double r =
        angle - n * 1.57079632673412561417e+00 - n * 6.07710050630396597660e-11 - n * 2.02226624879595063154e-21;
    const double z = r * r;
    const double s = r + r * z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 - z / 39916800))));
    const double c =
        1 + z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 + z / 479001600)))));
    const double sin_part = quarter & 1 ? c : s, cos_part = quarter & 1 ? s : c;
    *sine = (float)(quarter & 2 ? -sin_part : sin_part);
    *cosine = (float)((quarter + 1) & 2 ? -cos_part : cos_part);
}
