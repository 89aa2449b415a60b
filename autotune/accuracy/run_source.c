// What a row cites: its source_locator, "OWNER/NAME@commit:path L12".

#include "autotune/accuracy/run_source.h"

#include <string.h>

bool row_cites(const RunRow *row, const char *part) {
    return row->source_locator && strstr(row->source_locator, part) != NULL;
}

bool row_cites_any(const RunRow *row, const char *const *parts) {
    while (*parts && !row_cites(row, *parts)) {
        parts++;
    }
    return *parts != NULL;
}

bool row_is_of_course(const RunRow *row) {
    static const char *const projects[] = {"lai-proj@", "Large-Scale-AI-Engineering-Project@", "large-scale-AI-engg@",
                                           NULL};
    return row_cites_any(row, projects);
}
