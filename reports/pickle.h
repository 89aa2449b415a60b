// Python's pickle, protocol 2, as far as numbers, texts, lists and dictionaries need it.

#pragma once

#include <stdint.h>
#include <stdio.h>

enum { PICKLE_WORDS = 64 };

typedef struct Pickle {
    FILE *out;
    const char *words[PICKLE_WORDS];  // written once, then named by their number
    int word_count;
} Pickle;

Pickle pickle_begin(FILE *out);
void pickle_end(Pickle *pickle);

void pickle_dict_begin(Pickle *pickle);  // then alternating keys and values
void pickle_dict_end(Pickle *pickle);
void pickle_list_begin(Pickle *pickle);
void pickle_list_more(Pickle *pickle);  // periodically in a long list: readers take a list in batches
void pickle_list_end(Pickle *pickle);

void pickle_word(Pickle *pickle, const char *literal);  // a text that comes again, known by its address
void pickle_text(Pickle *pickle, const char *text);     // UTF-8
void pickle_integer(Pickle *pickle, int64_t value);
