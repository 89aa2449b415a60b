// Which group crosses which link: the nodes with their ranks, those that rank 0 communicates with marked with a letter,
// and a line per kind of link with the bytes of a step's collectives over it. Plain SVG: it prints, and needs no
// script; the table holds the same data. Bytes are payloads (the whole tensor of a gather or reduction), as in --spans.

#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "sim/base/text.h"
#include "sim/cost/cost.h"

enum { NODES_SHOWN = 4, RANKS_SHOWN = 72, PER_ROW = 8, CELL = 22, PAD = 10, GAP = 22, LINE = 20, LEAST_WIDTH = 640 };

// Groups with the same ranks, because the axes they differ in are 1, are merged.
typedef struct Traffic {
    AxisMask axes;  // larger than 1
    GroupPlacement placement;
    int64_t collectives;
    double payload_bytes;  // of one rank
} Traffic;

static Traffic *traffic_of_groups(const HtmlReport *report, int per_node) {
    const StepProgram *program = report->simulated.program;
    const Mesh *mesh = &report_best(report)->plan.mesh;
    Traffic *traffic = ARENA_ARRAY(report->arena, Traffic, program->group_count);
    int *same = ARENA_ARRAY(report->arena, int, program->group_count);  // the first group of the same ranks
    for (int32_t i = 0; i < program->group_count; i++) {
        const AxisMask axes = mesh_real_axes(mesh, program->groups[i].axes);
        traffic[i] = (Traffic){.axes = axes, .placement = mesh_group_placement(mesh, axes, per_node)};
        for (same[i] = 0; traffic[same[i]].axes != axes; same[i]++) {
        }
    }
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    while (step_cursor_next(&cursor, &instance)) {
        const Task *task = &program->tasks[instance.task];
        if (task_is_collective(task)) {
            Traffic *of_group = &traffic[same[task->group]];
            of_group->collectives++;
            of_group->payload_bytes += (double)task->payload_bytes;
        }
    }
    return traffic;
}

static bool is_used(const Traffic *traffic) {
    return traffic->placement.size > 1 && traffic->collectives > 0;
}

// How rank 0 reaches it: 0 itself, the letter of their common group, or none.
static char mark_of(const Mesh *mesh, int rank) {
    const MeshCoordinates at = mesh_coordinates(mesh, rank);
    AxisMask apart = 0;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        apart |= at.at[axis] > 0 ? AXIS_BIT(axis) : 0;
    }
    return apart == 0                             ? '0'
           : apart == AXIS_BIT(AXIS_TP)           ? 't'
           : apart == AXIS_BIT(AXIS_CP)           ? 'c'
           : (apart & ~AXES_SHARD_GROUP) == 0     ? 's'
           : apart == AXIS_BIT(AXIS_DP_REPLICATE) ? 'r'
                                                  : '\0';
}

static void draw_rank(const Mesh *mesh, int rank, int x, int y, FILE *out) {
    const char mark = mark_of(mesh, rank);
    fprintf(out, "<rect%s x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", mark ? " class=\"peer\"" : "", x, y,
            CELL - 4, CELL - 4);
    if (mark) {
        fprintf(out, "<text class=\"mark\" x=\"%d\" y=\"%d\">%c</text>", x + (CELL - 4) / 2, y + CELL - 8, mark);
    }
}

static int lower(int a, int b) {
    return a < b ? a : b;
}

// The traffic of all groups of a kind, in one line.
static void draw_line(const HtmlReport *report, const Traffic *traffic, bool between, int y, FILE *out) {
    const StepProgram *program = report->simulated.program;
    fprintf(out, "<text x=\"%d\" y=\"%d\">%s: ", PAD, y, between ? "between nodes" : "inside a node");
    const char *comma = "";
    for (int32_t i = 0; i < program->group_count; i++) {
        if (is_used(&traffic[i]) && (traffic[i].placement.nodes > 1) == between) {
            markup_format(out, "%s%s %s", comma, mesh_axes_words(traffic[i].axes, report->arena),
                          text_bytes(UNIT_BUFFER, traffic[i].payload_bytes));
            comma = ", ";
        }
    }
    fprintf(out, "%s</text>\n", *comma ? " per rank and step" : "nothing");
}

static void draw_node(const Mesh *mesh, int node, int per_node, int x, int y, FILE *out) {
    const int ranks = lower(lower(per_node, mesh_world(mesh) - node * per_node), RANKS_SHOWN);
    const int columns = lower(per_node, PER_ROW), rows = (lower(per_node, RANKS_SHOWN) + PER_ROW - 1) / PER_ROW;
    fprintf(out, "<rect class=\"node\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", x, y, columns * CELL + 2 * PAD,
            rows * CELL + LINE + PAD);
    fprintf(out, "<text x=\"%d\" y=\"%d\">node %d</text>", x + PAD, y + LINE - 4, node);
    for (int i = 0; i < ranks; i++) {
        draw_rank(mesh, node * per_node + i, x + PAD + i % PER_ROW * CELL, y + LINE + 2 + i / PER_ROW * CELL, out);
    }
    fputc('\n', out);
}

static void draw(const HtmlReport *report, const Traffic *traffic, int per_node, FILE *out) {
    const Mesh *mesh = &report_best(report)->plan.mesh;
    const int nodes = (mesh_world(mesh) + per_node - 1) / per_node, shown = lower(nodes, NODES_SHOWN);
    const int wide = lower(per_node, PER_ROW) * CELL + 2 * PAD + GAP;
    const int high = (lower(per_node, RANKS_SHOWN) + PER_ROW - 1) / PER_ROW * CELL + LINE + PAD;
    const int top = nodes > 1 ? 2 * LINE + PAD : 0, width = shown * wide < LEAST_WIDTH ? LEAST_WIDTH : shown * wide;
    fprintf(out,
            "<svg class=\"topology\" width=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
            "aria-labelledby=\"topology-caption\">\n",
            width, width, top + high + 2 * LINE);
    if (nodes > 1) {
        draw_line(report, traffic, true, LINE - 4, out);
        fprintf(out, "<path d=\"M%d %dH%d", PAD, LINE + 6, shown * wide - GAP);
        for (int i = 0; i < shown; i++) {
            fprintf(out, "M%d %dV%d", i * wide + (wide - GAP) / 2, LINE + 6, top);
        }
        fputs("\"/>\n", out);
    }
    for (int i = 0; i < shown; i++) {
        draw_node(mesh, i, per_node, i * wide + 1, top, out);
    }
    draw_line(report, traffic, false, top + high + LINE, out);
    fputs("</svg>\n", out);
    if (shown < nodes) {
        fprintf(out, "<p>%d more nodes are arranged alike.</p>\n", nodes - shown);
    }
}

static void write_table(const HtmlReport *report, const Traffic *traffic, FILE *out) {
    const StepProgram *program = report->simulated.program;
    MarkupTable table =
        table_begin("table-topology", "What the groups of a rank carry in a step",
                    "group over|#ranks|#nodes it touches|its traffic|#collectives of a step|#their payload", out);
    for (int32_t i = 0; i < program->group_count; i++) {
        const GroupPlacement *placement = &traffic[i].placement;
        if (is_used(&traffic[i])) {
            table_row(&table, NULL);
            table_cells(&table, "sddsIb", mesh_axes_words(traffic[i].axes, report->arena), placement->size,
                        placement->nodes, placement->nodes > 1 ? "crosses node borders" : "stays inside a node",
                        traffic[i].collectives, traffic[i].payload_bytes);
        }
    }
    table_end(&table);
}

void section_topology(const HtmlReport *report, FILE *out) {
    if (!report->simulated.program) {
        return;
    }
    const Mesh *mesh = &report_best(report)->plan.mesh;
    const int per_node = cost_ranks_per_node(&report->result->request->cluster, mesh);
    const Traffic *traffic = traffic_of_groups(report, per_node);
    fputs("<figure class=\"chart\" id=\"topology\">\n<figcaption id=\"topology-caption\">The ranks on their nodes. "
          "Letters "
          "mark whom rank 0 talks to: t by tp, c by cp, s by dp_shard (with cp: the group of both), r by dp_replicate. "
          "The table below holds what travels.</figcaption>\n",
          out);
    draw(report, traffic, per_node, out);
    fputs("</figure>\n", out);
    write_table(report, traffic, out);
}
