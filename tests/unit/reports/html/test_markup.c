// Nothing that comes from outside can become markup.

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "reports/html/markup.h"
#include "tests/unit/reports/fixture.h"

static Status print_text(const Fixture *unused, FILE *out, Error *error) {
    (void)unused;
    (void)error;
    markup_text("<b a=\"1\" c='2'>&amp;</b>", out);
    return STATUS_OK;
}

static Status print_json(const Fixture *unused, FILE *out, Error *error) {
    (void)unused;
    return markup_json(json_pack("{s:s}", "k", "</script><!--&\xE2\x80\xA8"), out, error);
}

static Status print_nothing(const Fixture *unused, FILE *out, Error *error) {
    (void)unused;
    cr_assert_eq(markup_json(json_pack("s", "\xff"), out, error), STATUS_INTERNAL);
    cr_assert_not_null(strstr(error->message, "UTF-8"));
    return STATUS_OK;
}

static Status print_table(const Fixture *unused, FILE *out, Error *error) {
    (void)unused;
    (void)error;
    MarkupTable table = table_begin("t", "\"c\"", "<a>|#n", out);
    table_row(&table, NULL);
    table_cell(&table, "%s", "<x>");
    table_cell(&table, "%d", 7);
    table_end(&table);
    return STATUS_OK;
}

Test(markup, the_five_characters_of_html_are_escaped) {
    char *text = fixture_printed(NULL, print_text);
    cr_assert_str_eq(text, "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;&lt;/b&gt;");
    free(text);
}

Test(markup, json_cannot_end_or_comment_out_its_element) {
    char *text = fixture_printed(NULL, print_json);
    cr_assert_str_eq(text, "{\"k\":\"\\u003c/script\\u003e\\u003c!--\\u0026\\u2028\"}");
    free(text);
}

Test(markup, what_is_not_utf_8_is_an_error_in_words) {
    free(fixture_printed(NULL, print_nothing));
}

Test(markup, a_table_has_headers_that_screen_readers_find_and_escaped_cells) {
    char *text = fixture_printed(NULL, print_table);
    cr_assert_not_null(strstr(text, "<caption>&quot;c&quot;</caption>"), "%s", text);
    cr_assert_not_null(strstr(text, "<th scope=\"col\">&lt;a&gt;</th>"), "%s", text);
    cr_assert_not_null(
        strstr(text, "<tr><th scope=\"row\">&lt;x&gt;</th><td class=\"number\">7</td></tr>\n</tbody></table>"), "%s",
        text);
    free(text);
}
