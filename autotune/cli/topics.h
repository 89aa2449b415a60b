// What to do with ndtune, by what a user wants: printed by ndtune help TOPIC, and part of the manual page.

#pragma once

#include <stdio.h>

typedef struct Topic {
    const char *name, *title;
    const char *text;  // for topic_write
} Topic;

const Topic *topics(int *count);

// Its lines, with what {{word}} stands for.
void topic_write(const Topic *topic, void (*write)(FILE *out, const char *text), FILE *out);
