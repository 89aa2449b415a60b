// Opcodes of pickletools (protocol 2), only those that memory_viz's own reader in JavaScript knows too.

#include "reports/pickle.h"

#include <string.h>

static void put(Pickle *pickle, int byte) {
    fputc(byte, pickle->out);
}

static void put_little(Pickle *pickle, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) {
        put(pickle, (int)(value >> (8 * i) & 0xff));
    }
}

Pickle pickle_begin(FILE *out) {
    Pickle pickle = {.out = out};
    put(&pickle, 0x80);  // PROTO
    put(&pickle, 2);
    return pickle;
}

void pickle_end(Pickle *pickle) {
    put(pickle, '.');  // STOP
}

void pickle_dict_begin(Pickle *pickle) {
    fputs("}(", pickle->out);  // EMPTY_DICT MARK
}

void pickle_dict_end(Pickle *pickle) {
    put(pickle, 'u');  // SETITEMS
}

void pickle_list_begin(Pickle *pickle) {
    fputs("](", pickle->out);  // EMPTY_LIST MARK
}

void pickle_list_more(Pickle *pickle) {
    fputs("e(", pickle->out);  // APPENDS MARK
}

void pickle_list_end(Pickle *pickle) {
    put(pickle, 'e');  // APPENDS
}

void pickle_text(Pickle *pickle, const char *text) {
    const size_t bytes = strlen(text);
    put(pickle, 'X');  // BINUNICODE
    put_little(pickle, bytes, 4);
    fwrite(text, 1, bytes, pickle->out);
}

void pickle_word(Pickle *pickle, const char *literal) {
    for (int i = 0; i < pickle->word_count; i++) {
        if (pickle->words[i] == literal) {
            put(pickle, 'h');  // BINGET
            put(pickle, i);
            return;
        }
    }
    pickle_text(pickle, literal);
    if (pickle->word_count < PICKLE_WORDS) {
        put(pickle, 'q');  // BINPUT
        put(pickle, pickle->word_count);
        pickle->words[pickle->word_count++] = literal;
    }
}

void pickle_integer(Pickle *pickle, int64_t value) {
    if (value >= 0 && value < 0x100) {
        put(pickle, 'K');  // BININT1
        put_little(pickle, (uint64_t)value, 1);
    } else if (value >= 0 && value < 0x10000) {
        put(pickle, 'M');  // BININT2
        put_little(pickle, (uint64_t)value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        put(pickle, 'J');  // BININT
        put_little(pickle, (uint64_t)value, 4);
    } else {
        put(pickle, 0x8a);  // LONG1
        put(pickle, 8);
        put_little(pickle, (uint64_t)value, 8);
    }
}
