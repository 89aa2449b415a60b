// The hash: a known value of the algorithm, and adjacent fields that must not be confused.

#include <criterion/criterion.h>

#include "sim/base/hash.h"

static uint64_t of_text(const char *a, const char *b) {
    Hash hash = hash_begin();
    hash_text(&hash, a);
    hash_text(&hash, b);
    return hash_end(&hash);
}

static uint64_t of_double(double value) {
    Hash hash = hash_begin();
    hash_double(&hash, value);
    return hash_end(&hash);
}

Test(hash, bytes_follow_the_published_fnv_1a_vectors) {
    Hash hash = hash_begin();
    hash_bytes(&hash, "foobar", 6);
    cr_assert_eq(hash.state, UINT64_C(0x85944171f73967e8));  // draft-eastlake-fnv, 64-bit FNV-1a of "foobar"
}

Test(hash, an_empty_hash_is_the_mixed_offset_basis_and_stays_the_same) {
    const Hash hash = hash_begin();
    char text[HASH_TEXT_BYTES];
    // fmix64(0xcbf29ce484222325) worked out with Python integers; a change breaks every stored cache key
    cr_assert_str_eq(hash_hex(hash_end(&hash), text), "efd01f60ba992926");
}

Test(hash, neighbouring_texts_keep_their_border) {
    cr_assert_neq(of_text("ab", "c"), of_text("a", "bc"));
    cr_assert_neq(of_text("", "abc"), of_text("abc", ""));
}

Test(hash, minus_zero_is_zero) {
    cr_assert_eq(of_double(0.0), of_double(-0.0));
    cr_assert_neq(of_double(0.0), of_double(4.9e-324));
}

Test(hash, order_of_fields_matters) {
    Hash one = hash_begin();
    Hash two = hash_begin();
    hash_int(&one, 1);
    hash_int(&one, 2);
    hash_int(&two, 2);
    hash_int(&two, 1);
    cr_assert_neq(hash_end(&one), hash_end(&two));
}

Test(hash, ending_does_not_change_the_state) {
    Hash hash = hash_begin();
    hash_int(&hash, 42);
    const uint64_t first = hash_end(&hash);
    cr_assert_eq(hash_end(&hash), first);
}

Test(hash, hexadecimal_has_sixteen_digits) {
    char text[HASH_TEXT_BYTES];
    cr_assert_str_eq(hash_hex(0, text), "0000000000000000");
    cr_assert_str_eq(hash_hex(UINT64_MAX, text), "ffffffffffffffff");
    cr_assert_str_eq(hash_hex(UINT64_C(0x0123456789abcdef), text), "0123456789abcdef");
}
