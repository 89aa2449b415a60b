// What trains by transformers' Trainer extends it.

#pragma once

#include "sim/frameworks/framework.h"

extern const TargetVersion trainer_5_23;
