// The topics of ndtune help, whose texts are in pages/. To add one: a file, its name in CMakeLists.txt, an #include and
// a row; the manual page and the completion have it then.

#include "autotune/cli/topics.h"

#include "autotune/cli/page_text.h"
#include "autotune/cli/topic_batch.h"
#include "autotune/cli/topic_cluster.h"
#include "autotune/cli/topic_hang.h"
#include "autotune/cli/topic_logs.h"
#include "autotune/cli/topic_memory.h"
#include "autotune/cli/topic_shape.h"
#include "autotune/cli/topic_slow.h"
#include "autotune/cli/topic_words.h"

static const Topic table[] = {
    {"shape", "Which shape, and is mine wrong?", topic_shape},
    {"batch", "What is my batch size once dimensions split?", topic_batch},
    {"memory", "It does not fit, or only just", topic_memory},
    {"hang", "A job hangs: which rank, and where?", topic_hang},
    {"slow", "Why is my job slow?", topic_slow},
    {"cluster", "Describing a cluster that is not in the list", topic_cluster},
    {"logs", "Using the logs of your own runs", topic_logs},
    {"words", "What the words mean", topic_words},
};

const Topic *topics(int *count) {
    *count = (int)(sizeof table / sizeof table[0]);
    return table;
}

void topic_write(const Topic *topic, void (*write)(FILE *out, const char *text), FILE *out) {
    Arena arena = {0};
    write(out, page_text(topic->text, &arena));
    arena_free(&arena);
}
