// How to use ndtune, by user goal: printed by ndtune help TOPIC, and part of the manual page.

#pragma once

#include <stdio.h>

typedef struct Topic {
    const char *name, *title;
    const char *text;  // for topic_write
} Topic;

const Topic *topics(int *count);

// Writes its lines, with {{word}} placeholders filled in.
void topic_write(const Topic *topic, void (*write)(FILE *out, const char *text), FILE *out);
