// Pickles as data: every supported opcode, and that everything else is refused with its place.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "autotune/blame/dump_value.h"

static Arena arena;
static Error error;

static void end(void) {
    arena_free(&arena);
}

TestSuite(pickle_read, .fini = end);

static Status read(const char *bytes, size_t size, const DumpValue **root) {
    error = (Error){0};
    return dump_read_pickle((const uint8_t *)bytes, size, &arena, root, &error);
}

// As Python would print it, tuples as lists.
static void print(const DumpValue *value, FILE *out) {
    switch (value->type) {
    case DUMP_NONE:
        fputs("None", out);
        break;
    case DUMP_BOOL:
        fputs(value->truth ? "True" : "False", out);
        break;
    case DUMP_INT:
        fprintf(out, "%lld", (long long)value->integer);
        break;
    case DUMP_FLOAT:
        fprintf(out, "%g", value->number);
        break;
    case DUMP_TEXT:
        fprintf(out, "'%s'", value->text);
        break;
    case DUMP_LIST:
    case DUMP_DICT:
        fputc(value->type == DUMP_LIST ? '[' : '{', out);
        for (size_t i = 0; i < value->count; i++) {
            fputs(i == 0 ? "" : value->type == DUMP_DICT && i % 2 ? ": " : ", ", out);
            print(value->items[i], out);
        }
        fputc(value->type == DUMP_LIST ? ']' : '}', out);
    }
}

static void means(const char *bytes, size_t size, const char *expected) {
    const DumpValue *root = NULL;
    char text[512] = "";
    cr_assert_eq(read(bytes, size, &root), STATUS_OK, "%s: %s", expected, error.message);
    FILE *out = fmemopen(text, sizeof text, "w");
    print(root, out);
    fclose(out);
    cr_expect_str_eq(text, expected);
}

#define MEANS(bytes, expected) means(bytes, sizeof(bytes) - 1, expected)

static void refuses(const char *bytes, size_t size, const char *words) {
    const DumpValue *root = NULL;
    cr_assert_eq(read(bytes, size, &root), STATUS_USAGE, "%s", words);
    cr_expect_not_null(strstr(error.message, words), "%s does not say %s", error.message, words);
}

#define REFUSES(bytes, words) refuses(bytes, sizeof(bytes) - 1, words)

Test(pickle_read, constants_are_read) {
    MEANS("N.", "None");
    MEANS("\x80\x02\x88.", "True");
    MEANS("\x89.", "False");
    MEANS("I01\n.", "True");
    MEANS("I00\n.", "False");
}

Test(pickle_read, integers_of_every_width_are_read) {
    MEANS("K\xff.", "255");
    MEANS("M\x01\x02.", "513");
    MEANS("J\xff\xff\xff\xff.", "-1");
    MEANS("I-17\n.", "-17");
    MEANS("L12L\n.", "12");
    MEANS("\x8a\x00.", "0");
    MEANS("\x8a\x01\xff.", "-1");
    MEANS("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.", "-9223372036854775808");
    MEANS("\x8b\x02\x00\x00\x00\x00\x01.", "256");
}

Test(pickle_read, floats_of_both_forms_are_read) {
    MEANS("G\x3f\xf8\x00\x00\x00\x00\x00\x00.", "1.5");
    MEANS("F0.25\n.", "0.25");
}

Test(pickle_read, texts_and_bytes_of_every_length_are_read) {
    MEANS("X\x03\x00\x00\x00"
          "abc.",
          "'abc'");
    MEANS("\x8c\x02hi.", "'hi'");
    MEANS("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi.", "'hi'");
    MEANS("C\x02hi.", "'hi'");
    MEANS("B\x02\x00\x00\x00hi.", "'hi'");
    MEANS("\x8e\x02\x00\x00\x00\x00\x00\x00\x00hi.", "'hi'");
    MEANS("U\x02hi.", "'hi'");
    MEANS("T\x02\x00\x00\x00hi.", "'hi'");
    MEANS("Vhi\n.", "'hi'");
}

Test(pickle_read, containers_of_every_form_are_read) {
    MEANS("].", "[]");
    MEANS(").", "[]");
    MEANS("}.", "{}");
    MEANS("]K\x01"
          "a.",
          "[1]");
    MEANS("](K\x01K\x02"
          "e.",
          "[1, 2]");
    MEANS("(K\x01K\x02l.", "[1, 2]");
    MEANS("(K\x01K\x02t.", "[1, 2]");
    MEANS("K\x01\x85.", "[1]");
    MEANS("K\x01K\x02\x86.", "[1, 2]");
    MEANS("K\x01K\x02K\x03\x87.", "[1, 2, 3]");
    MEANS("}K\x01K\x02s.", "{1: 2}");
    MEANS("}(K\x01K\x02u.", "{1: 2}");
    MEANS("(K\x01K\x02"
          "d.",
          "{1: 2}");
    MEANS("(K\x01K\x02K\x03"
          "1K\x04.",
          "4");  // POP_MARK
    MEANS("K\x04K\x01"
          "0.",
          "4");
}

Test(pickle_read, the_memo_gives_back_what_was_put) {
    MEANS("K\x07p0\n0g0\n.", "7");
    MEANS("](K\x07q\x05h\x05"
          "e.",
          "[7, 7]");
    MEANS("](K\x07r\x05\x00\x00\x00j\x05\x00\x00\x00"
          "e.",
          "[7, 7]");
    MEANS("\x80\x04\x95\x0a\x00\x00\x00\x00\x00\x00\x00](\x8c\x01x\x94h\x00"
          "e.",
          "['x', 'x']");
}

// c os system, and the other ways to call something.
Test(pickle_read, what_would_run_something_is_refused_with_its_place) {
    REFUSES("cos\nsystem\n(S'true'\ntR.", "byte 0: opcode GLOBAL (0x63) is refused");
    REFUSES("K\x01R.", "byte 2: opcode REDUCE (0x52) is refused");
    REFUSES("\x80\x04\x8c\x02os\x8c\x06system\x93.", "byte 14: opcode STACK_GLOBAL (0x93) is refused");
    static const unsigned char refused[] = {'2',  'P',  'Q',  'R',  'S',  'b',  'c',  'i',  'o',  0x81, 0x82,
                                            0x83, 0x84, 0x8f, 0x90, 0x91, 0x92, 0x93, 0x96, 0x97, 0x98};
    for (size_t i = 0; i < sizeof refused; i++) {
        refuses((const char *)&refused[i], 1, "is refused: a dump is data, and nothing of it is run");
    }
    REFUSES("\xff.", "byte 0: 0xff is no opcode");
}

Test(pickle_read, every_prefix_of_a_pickle_is_refused) {
    static const char whole[] = "\x80\x02}q\x00(X\x01\x00\x00\x00"
                                "a](K\x01M\x01\x02J\x01\x02\x03\x04"
                                "e"
                                "X\x01\x00\x00\x00"
                                "bG\x3f\xf8\x00\x00\x00\x00\x00\x00u.";
    MEANS(whole, "{'a': [1, 513, 67305985], 'b': 1.5}");
    for (size_t size = 0; size < sizeof whole - 2; size++) {
        const DumpValue *root = NULL;
        cr_expect_eq(read(whole, size, &root), STATUS_USAGE, "%zu bytes", size);
    }
}

Test(pickle_read, sizes_that_are_not_there_are_refused) {
    REFUSES("X\xff\xff\xff\x7fhi.", "ends in the middle of a value");
    REFUSES("\x8d\xff\xff\xff\xff\xff\xff\xff\xffhi.", "ends in the middle of a value");
    REFUSES("\x8b\xff\xff\xff\xff.", "ends in the middle of a value");
    REFUSES("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.", "more than 64 bits");
    REFUSES("K\x01\xfe", "byte 2: 0xfe is no opcode");
    REFUSES("I12", "in the middle of a line");
}

Test(pickle_read, a_stack_that_does_not_fit_is_refused) {
    REFUSES(".", "more or less than one value");
    REFUSES("NN.", "more or less than one value");
    REFUSES("(N.", "more or less than one value");
    REFUSES("a.", "too few values");
    REFUSES("N(a.", "too few values");
    REFUSES("t.", "finds no mark");
    REFUSES("(e.", "nothing is there");
    REFUSES("N(Ne.", "what is no list");
    REFUSES("](NNu.", "no dictionary");
    REFUSES("}(Nu.", "key without a value");
    REFUSES("(Nd.", "key without a value");
    REFUSES("h\x03.", "memo that was never made");
    REFUSES("Nr\xff\xff\xff\xff.", "memo of a number that no dump has");
    REFUSES("\x80\x06N.", "protocol newer than 5");
    REFUSES("Ix\n.", "a number that is none");
}

Test(pickle_read, endless_nesting_is_refused) {
    char marks[300];
    memset(marks, '(', sizeof marks);
    refuses(marks, sizeof marks, "deeper in one another");
}

// l = []; l.append(l)
Test(pickle_read, a_list_that_holds_itself_is_a_value_like_any_other) {
    static const char own[] = "]q\x00h\x00"
                              "a.";
    const DumpValue *root = NULL;
    cr_assert_eq(read(own, sizeof own - 1, &root), STATUS_OK);
    cr_expect_eq(root->items[0], root);
}
