// Reads in two passes: the cells, then the stages and micro-batches they name. The text that is kept has only the
// actions. PyTorch 2.15 numbers the forwards of the last rank of 1F1B from 1 (Schedule1F1B._get_pipeline_order): such a
// rank is read as if numbered from 0.

#include "sim/step/schedules/order_file.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/escape.h"
#include "sim/base/hash.h"
#include "sim/base/open.h"
#include "sim/plan/plan_fields.h"

typedef struct Cell {
    int64_t stage, micro_step;
    char kind;  // F, B, I or W
    int32_t line, at;
} Cell;

typedef struct Reader {
    const char *path;
    Arena *arena;
    Cell *cells;
    size_t count, capacity;
    int32_t lines;
    int32_t *first;  // first cell of each line; lines + 1 entries once all are read
    size_t line_capacity;
    char *text;  // actions of the current line
    size_t length, text_capacity;
    const char **texts;  // per line
    size_t text_count, texts_capacity;
    PpOrder *file;
} Reader;

static Status at_cell(const Reader *reader, const Cell *cell, Error *error, const char *what) {
    return error_set(error, STATUS_USAGE, "%s, line %d, cell %d: %s", reader->path, cell->line, cell->at, what);
}

// ---- cells

// Messages, gathers and reductions.
static bool is_left_out(const char *word) {
    static const char *const words[] = {"UNSHARD", "RESHARD", "REDUCE_GRAD", "WAIT_REDUCE_GRAD",
                                        "SEND_",   "RECV_",   "WAIT_SEND_"};
    bool known = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i]);
        known |= words[i][length - 1] == '_' ? strncmp(word, words[i], length) == 0 : strcmp(word, words[i]) == 0;
    }
    return known;
}

static bool read_number(const char **text, int64_t *number) {
    enum { MOST = 1 << 20 };
    char *end;
    if (**text < '0' || **text > '9') {
        return false;
    }
    *number = strtoll(*text, &end, 10);
    *text = end;
    return *number < MOST;
}

static Status add_action(Reader *reader, const char *word, Cell cell, Error *error) {
    const char *rest = word;
    if (read_number(&rest, &cell.stage) && is_left_out(rest)) {
        return STATUS_OK;
    }
    cell.kind = *rest;
    const bool known = rest > word && *rest && strchr("FBIW", *rest++) != NULL;
    FAIL_IF(!known || !read_number(&rest, &cell.micro_step) || *rest != '\0', error, STATUS_USAGE,
            "%s, line %d, cell %d: \"%.40s\" is no action of a pipeline, such as 2F0, 2B0, 2I0 or 2W0", reader->path,
            cell.line, cell.at, word);
    ARENA_PUSH(reader->arena, reader->cells, reader->count, &reader->capacity) = cell;
    return STATUS_OK;
}

// Overlapped forward and backward of two micro-batches, "(0F7;7B3)OVERLAP_F_B", run one after the other here.
static Status add_cell(Reader *reader, char *word, Cell cell, Error *error) {
    char *end = strchr(word, ')');
    if (*word != '(' || !end || strcmp(end + 1, "OVERLAP_F_B") != 0) {
        return *word ? add_action(reader, word, cell, error) : STATUS_OK;
    }
    *end = '\0';
    char *rest = NULL;
    for (char *part = strtok_r(word + 1, ";", &rest); part; part = strtok_r(NULL, ";", &rest)) {
        TRY(add_action(reader, part, cell, error));
    }
    return STATUS_OK;
}

static char *trimmed(char *word) {
    word += strspn(word, " \t\"");
    size_t length = strlen(word);
    while (length > 0 && strchr(" \t\"\r\n", word[length - 1])) {
        word[--length] = '\0';
    }
    return word;
}

static void keep_text(Reader *reader, const char *text) {
    for (; *text; text++) {
        ARENA_PUSH(reader->arena, reader->text, reader->length, &reader->text_capacity) = *text;
    }
}

static Status read_line(Reader *reader, char *line, Error *error) {
    Cell cell = {.line = reader->lines + 1};
    const size_t first = reader->count;
    ARENA_PUSH(reader->arena, reader->first, reader->lines, &reader->line_capacity) = (int32_t)reader->count;
    for (char *word = line; word;) {
        char *comma = strchr(word, ',');
        if (comma) {
            *comma = '\0';
        }
        cell.at++;
        const size_t before = reader->count;
        const char *said = arena_text(reader->arena, trimmed(word));
        TRY(add_cell(reader, trimmed(word), cell, error));
        if (reader->count > before) {
            keep_text(reader, before > first ? "," : "");
            keep_text(reader, said);
        }
        word = comma ? comma + 1 : NULL;
    }
    ARENA_PUSH(reader->arena, reader->texts, reader->text_count, &reader->texts_capacity) =
        arena_format(reader->arena, "%.*s", (int)reader->length, reader->length > 0 ? reader->text : "");
    reader->length = 0;
    return STATUS_OK;
}

static Status read_cells(Reader *reader, const char *text, Error *error) {
    char *rest = arena_text(reader->arena, text_behind_mark(text));
    while (*rest) {
        char *line = rest, *end = strchr(line, '\n');
        rest = end ? end + 1 : line + strlen(line);
        if (end) {
            *end = '\0';
        }
        TRY(read_line(reader, line, error));
    }
    return STATUS_OK;
}

// ---- stages and micro-batches

static Status find_sizes(Reader *reader, Error *error) {
    PpOrder *file = reader->file;
    int64_t most_stage = -1, most = -1;
    for (size_t i = 0; i < reader->count; i++) {
        const Cell *cell = &reader->cells[i];
        most_stage = cell->stage > most_stage ? cell->stage : most_stage;
        most = cell->kind != 'F' && cell->micro_step > most ? cell->micro_step : most;
        file->splits |= cell->kind == 'I' || cell->kind == 'W';
    }
    file->stages = reader->lines;
    file->chunks = (int32_t)((most_stage + 1) / (reader->lines > 0 ? reader->lines : 1));
    file->micro_steps = (int32_t)(most + 1);
    FAIL_IF(reader->count == 0 || file->stages < 2, error, STATUS_USAGE,
            "%s is no order of a pipeline: a line for each of two or more ranks", reader->path);
    FAIL_IF((int64_t)file->chunks * file->stages != most_stage + 1, error, STATUS_USAGE,
            "%s has %d stages on %d ranks: as many on each rank, or it is no order", reader->path, (int)most_stage + 1,
            file->stages);
    FAIL_IF(file->micro_steps == 0, error, STATUS_USAGE, "%s has no backward: that is no order of a training step",
            reader->path);
    const Cell *cells = reader->cells;
    for (int32_t i = reader->first[0]; file->chunks == 2 && i < reader->first[1]; i++) {
        file->folded |= cells[i].stage == 2 * file->stages - 1;
    }
    return STATUS_OK;
}

static bool counts_from_one(const Reader *reader, int32_t line) {
    int64_t least = INT64_MAX, most = -1;
    for (int32_t i = reader->first[line]; i < reader->first[line + 1]; i++) {
        const Cell *cell = &reader->cells[i];
        least = cell->kind == 'F' && cell->micro_step < least ? cell->micro_step : least;
        most = cell->kind == 'F' && cell->micro_step > most ? cell->micro_step : most;
    }
    return least == 1 && most == reader->file->micro_steps;
}

static int32_t part_of(const PpOrder *file, int32_t rank, int32_t chunk) {
    return chunk * file->stages + (file->folded && chunk == 1 ? file->stages - 1 - rank : rank);
}

typedef struct Taker {
    const Reader *reader;
    int32_t rank, shift;
    bool *done;  // by work, chunk and micro-step
} Taker;

static Status take(const Taker *taker, const Cell *cell, Work work, int32_t chunk, Error *error) {
    PpOrder *file = taker->reader->file;
    const int64_t micro_step = cell->micro_step - (work == WORK_FORWARD ? taker->shift : 0);
    if (micro_step < 0 || micro_step >= file->micro_steps) {
        return at_cell(taker->reader, cell, error, "a micro-batch that has no backward");
    }
    const int32_t place = chunk * file->micro_steps + (int32_t)micro_step, works = file->chunks * file->micro_steps;
    if (taker->done[(int32_t)work * works + place]) {
        return at_cell(taker->reader, cell, error, "done before");
    }
    if (work > WORK_FORWARD && !taker->done[((int32_t)work - 1) * works + place]) {
        return at_cell(taker->reader, cell, error,
                       work == WORK_BACKWARD ? "backward before its forward"
                                             : "gradients of weights before those of inputs");
    }
    taker->done[(int32_t)work * works + place] = true;
    file->actions[taker->rank][file->count[taker->rank]++] = (ScheduleAction){work, chunk, (int32_t)micro_step};
    return STATUS_OK;
}

static Status take_cell(const Taker *taker, const Cell *cell, Error *error) {
    const PpOrder *file = taker->reader->file;
    const int32_t stage = (int32_t)cell->stage, chunk = stage / file->stages, at = stage % file->stages;
    const int32_t rank = file->folded && chunk == 1 ? file->stages - 1 - at : at;
    FAIL_IF(rank != taker->rank, error, STATUS_USAGE, "%s, line %d, cell %d: stage %d is rank %d's",
            taker->reader->path, cell->line, cell->at, stage, rank);
    if (cell->kind == 'F') {
        return take(taker, cell, WORK_FORWARD, chunk, error);
    }
    if (cell->kind != 'W') {
        TRY(take(taker, cell, WORK_BACKWARD, chunk, error));
    }
    const bool weights = cell->kind == 'W' || (cell->kind == 'B' && file->splits);
    return weights ? take(taker, cell, WORK_WEIGHTS, chunk, error) : STATUS_OK;
}

static char letter(const PpOrder *order, Work work) {
    return work == WORK_FORWARD ? 'F' : work == WORK_WEIGHTS ? 'W' : order->splits ? 'I' : 'B';
}

// Names the first missing one.
static Status check_complete(const Taker *taker, int32_t all, Error *error) {
    const PpOrder *order = taker->reader->file;
    for (int32_t place = 0; place < all; place++) {
        const int32_t micro_step = place % order->micro_steps, chunk = place / order->micro_steps % order->chunks;
        const int32_t work = place / order->micro_steps / order->chunks;
        FAIL_IF(!taker->done[place], error, STATUS_USAGE,
                "%s, line %d: rank %d does %d of the %d works of %d micro-batches of %d chunks: %d%c%d is missing",
                taker->reader->path, taker->rank + 1, taker->rank, order->count[taker->rank], all, order->micro_steps,
                order->chunks, part_of(order, taker->rank, chunk), letter(order, (Work)work), micro_step);
    }
    return STATUS_OK;
}

static Status take_rank(const Reader *reader, int32_t rank, Error *error) {
    PpOrder *file = reader->file;
    const int32_t works = (file->splits ? WORK_WEIGHTS : WORK_BACKWARD) + 1;
    const int32_t all = works * file->chunks * file->micro_steps;
    const Taker taker = {reader, rank, counts_from_one(reader, rank), ARENA_ARRAY(reader->arena, bool, all)};
    file->actions[rank] = ARENA_ARRAY(reader->arena, ScheduleAction, all);
    for (int32_t i = reader->first[rank]; i < reader->first[rank + 1]; i++) {
        TRY(take_cell(&taker, &reader->cells[i], error));
    }
    return check_complete(&taker, all, error);
}

// ---- dependencies between ranks

typedef struct Replay {
    const PpOrder *file;
    bool *done;  // by forward or backward, part and micro-step
    int32_t *next;
} Replay;

static bool *done_at(const Replay *replay, bool backward, int32_t part, int32_t micro_step) {
    const PpOrder *file = replay->file;
    return &replay->done[((backward ? 1 : 0) * file->stages * file->chunks + part) * file->micro_steps + micro_step];
}

static bool may_go(const Replay *replay, const ScheduleAction *action, int32_t part) {
    const int32_t last = replay->file->stages * replay->file->chunks - 1;
    if (action->work == WORK_FORWARD) {
        return part == 0 || *done_at(replay, false, part - 1, action->micro_step);
    }
    return action->work == WORK_WEIGHTS || part == last || *done_at(replay, true, part + 1, action->micro_step);
}

static bool go_on(const Replay *replay, int32_t rank) {
    const PpOrder *file = replay->file;
    const int32_t before = replay->next[rank];
    while (replay->next[rank] < file->count[rank]) {
        const ScheduleAction *action = &file->actions[rank][replay->next[rank]];
        const int32_t part = part_of(file, rank, action->chunk);
        if (!may_go(replay, action, part)) {
            break;
        }
        if (action->work != WORK_WEIGHTS) {
            *done_at(replay, action->work == WORK_BACKWARD, part, action->micro_step) = true;
        }
        replay->next[rank]++;
    }
    return replay->next[rank] > before;
}

static Status check_waits(const Reader *reader, Error *error) {
    const PpOrder *file = reader->file;
    Replay replay = {.file = file,
                     .done = ARENA_ARRAY(reader->arena, bool, 2 * file->stages * file->chunks * file->micro_steps),
                     .next = ARENA_ARRAY(reader->arena, int32_t, file->stages)};
    for (bool moved = true; moved;) {
        moved = false;
        for (int32_t rank = 0; rank < file->stages; rank++) {
            moved |= go_on(&replay, rank);
        }
    }
    for (int32_t rank = 0; rank < file->stages; rank++) {
        if (replay.next[rank] < file->count[rank]) {
            const ScheduleAction *action = &file->actions[rank][replay.next[rank]];
            return error_set(error, STATUS_USAGE, "%s: ranks wait for each other; rank %d never gets to %d%c%d",
                             reader->path, rank, part_of(file, rank, action->chunk),
                             action->work == WORK_FORWARD ? 'F' : 'B', action->micro_step);
        }
    }
    return STATUS_OK;
}

// The action on another rank that receives what this one sends; false = none does.
static bool is_sent(const PpOrder *order, int32_t rank, const ScheduleAction *action, int32_t *to,
                    ScheduleAction *taken) {
    const int32_t part = part_of(order, rank, action->chunk), last = order->stages * order->chunks - 1;
    const int32_t next = action->work == WORK_FORWARD ? part + 1 : part - 1;
    if (next < 0 || next > last) {
        return false;
    }
    *taken = *action;
    taken->chunk = next / order->stages;
    *to = next % order->stages;
    *to = order->folded && taken->chunk == 1 ? order->stages - 1 - *to : *to;
    return *to != rank;
}

static bool takes_from(const PpOrder *order, int32_t rank, const ScheduleAction *action, Work work, int32_t from) {
    const int32_t part = part_of(order, rank, action->chunk), last = order->stages * order->chunks - 1;
    const int32_t before = action->work == WORK_FORWARD ? part - 1 : part + 1;
    const int32_t chunk = before / order->stages, at = before % order->stages;
    const int32_t of = order->folded && chunk == 1 ? order->stages - 1 - at : at;
    return action->work == work && before >= 0 && before <= last && of == from && of != rank;
}

// Activations from one rank to another stay in the order in which they are sent, and so do gradients, each on its own
// link: the receiver must take them in that order.
static Status check_messages(const Reader *reader, Work work, int32_t from, int32_t to, Error *error) {
    const PpOrder *order = reader->file;
    int32_t next = 0;
    for (int32_t i = 0; i < order->count[from]; i++) {
        int32_t where;
        ScheduleAction sent;
        const ScheduleAction *action = &order->actions[from][i];
        if (action->work != work || !is_sent(order, from, action, &where, &sent) || where != to) {
            continue;
        }
        while (!takes_from(order, to, &order->actions[to][next], work, from)) {
            next++;
        }
        const ScheduleAction *taken = &order->actions[to][next++];
        const int32_t part = part_of(order, to, sent.chunk);
        FAIL_IF(taken->chunk != sent.chunk || taken->micro_step != sent.micro_step, error, STATUS_USAGE,
                "%s, line %d: rank %d does %d%c%d before %d%c%d, for which rank %d sends first: messages are taken in "
                "the order in which they are sent",
                reader->path, to + 1, to, part_of(order, to, taken->chunk), letter(order, taken->work),
                taken->micro_step, part, letter(order, sent.work), sent.micro_step, from);
    }
    return STATUS_OK;
}

static Status check_all_messages(const Reader *reader, Error *error) {
    const int32_t stages = reader->file->stages;
    for (int32_t from = 0; from < stages; from++) {
        for (Work work = WORK_FORWARD; work <= WORK_BACKWARD; work++) {
            TRY(check_messages(reader, work, from, (from + 1) % stages, error));
            TRY(check_messages(reader, work, from, (from + stages - 1) % stages, error));
        }
    }
    return STATUS_OK;
}

// As a schedule, like the built-in ones.
static void finish(const Reader *reader) {
    PpOrder *order = reader->file;
    Schedule *schedule = ARENA_NEW(reader->arena, Schedule);
    *schedule = (Schedule){.name = pp_schedule_names[PP_FILE],
                           .folded = order->folded,
                           .splits = order->splits,
                           .written = order->actions};
    order->schedule = schedule;
    order->lines = reader->texts;
    Hash hash = hash_begin();
    for (int32_t rank = 0; rank < order->stages; rank++) {
        hash_text(&hash, order->lines[rank]);
    }
    order->hash = hash_end(&hash);
}

Status order_text_read(const char *path, const char *text, Arena *arena, PpOrder *order, Error *error) {
    *order = (PpOrder){.path = arena_text(arena, path)};
    Reader reader = {.path = path, .arena = arena, .file = order};
    TRY(read_cells(&reader, text, error));
    reader.first = arena_grow(arena, reader.first, (size_t)reader.lines, &reader.line_capacity, sizeof *reader.first);
    reader.first[reader.lines] = (int32_t)reader.count;
    TRY(find_sizes(&reader, error));
    order->actions = ARENA_ARRAY(arena, ScheduleAction *, order->stages);
    order->count = ARENA_ARRAY(arena, int32_t, order->stages);
    for (int32_t rank = 0; rank < order->stages; rank++) {
        TRY(take_rank(&reader, rank, error));
    }
    TRY(check_waits(&reader, error));
    TRY(check_all_messages(&reader, error));
    finish(&reader);
    return STATUS_OK;
}

Status order_file_read(const char *path, Arena *arena, PpOrder *order, Error *error) {
    enum { MOST_BYTES = 64 << 20 };
    const char *why;
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_to_read(path, &why);
    why = file ? read_and_close(file, MOST_BYTES, arena, &text, &bytes) : why;
    FAIL_IF(why, error, STATUS_USAGE, "%s cannot be read: %s", path, why);
    FAIL_IF(bytes != strlen(text), error, STATUS_USAGE, "%s: not text", path);
    return order_text_read(path, text, arena, order, error);
}

// ---- matching known schedules

static bool has_order(const PpOrder *file, const Schedule *schedule, Arena *arena) {
    ScheduleShape shape = {.stages = file->stages, .chunks = file->chunks, .micro_steps = file->micro_steps};
    const int32_t count = schedule_action_count(schedule, &shape);
    ScheduleAction *actions = ARENA_ARRAY(arena, ScheduleAction, count);
    bool same = true;
    for (; shape.stage < file->stages && same; shape.stage++) {
        schedule->order(&shape, actions);
        for (int32_t i = 0; i < count && same; i++) {
            const ScheduleAction *a = &actions[i], *b = &file->actions[shape.stage][i];
            same = a->work == b->work && a->chunk == b->chunk && a->micro_step == b->micro_step;
        }
    }
    return same;
}

const Schedule *order_file_schedule(const PpOrder *file, Arena *arena) {
    for (int i = 0; i < schedule_count; i++) {
        const Schedule *schedule = schedules[i];
        if (schedule->folded == file->folded && schedule->splits == file->splits && has_order(file, schedule, arena)) {
            return schedule;
        }
    }
    return NULL;
}

const Schedule *order_file_named(const PpOrder *order, Arena *arena) {
    const Schedule *known = order_file_schedule(order, arena);
    const bool of_chunks = known && pp_own_chunks((PpSchedule)plan_field_value(PLAN_PP_SCHEDULE, known->name)) == 0;
    return of_chunks && order->chunks < 2 ? NULL : known;
}
