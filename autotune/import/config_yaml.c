// YAML by libyaml, event by event. Anchors, aliases and multiple documents in a file are refused: the config files of
// training frameworks have none, and an alias could expand a small file into a huge tree.

#include <string.h>
#include <yaml.h>

#include "autotune/import/config_load.h"

typedef struct YamlReader {
    const ConfigSource *source;
    yaml_parser_t parser;
} YamlReader;

static int event_line(const yaml_event_t *event) {
    return (int)event->start_mark.line + 1;
}

static Status next_event(YamlReader *reader, yaml_event_t *event) {
    if (yaml_parser_parse(&reader->parser, event)) {
        return STATUS_OK;
    }
    const yaml_parser_t *parser = &reader->parser;
    const size_t line = parser->problem_mark.line > 0 ? parser->problem_mark.line : parser->context_mark.line;
    return config_malformed(reader->source, (int)line + 1, "no YAML: %s%s%s", parser->problem ? parser->problem : "?",
                            parser->context ? " " : "", parser->context ? parser->context : "");
}

static bool is_null(const char *text) {
    return strcmp(text, "null") == 0 || strcmp(text, "~") == 0 || strcmp(text, "Null") == 0 ||
           strcmp(text, "NULL") == 0;
}

static Status read_node(YamlReader *reader, yaml_event_t *event, int depth, ConfigNode **node);

// Children up to the end of a map or list; consumes that end.
static Status read_children(YamlReader *reader, ConfigNode *parent, int depth) {
    const yaml_event_type_t end = parent->kind == NODE_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    for (;;) {
        yaml_event_t event;
        TRY(next_event(reader, &event));
        if (event.type == end) {
            yaml_event_delete(&event);
            return STATUS_OK;
        }
        ConfigNode *child = NULL;
        TRY(read_node(reader, &event, depth, &child));
        if (parent->kind == NODE_MAP) {
            FAIL_WITH(child->kind != NODE_SCALAR,
                      config_malformed(reader->source, child->line, "a key has to be a word"));
            const ConfigNode key = *child;
            TRY(next_event(reader, &event));
            TRY(read_node(reader, &event, depth, &child));
            child->key = key.text;
            child->line = key.line;
        }
        config_append(reader->source->arena, parent, child);
    }
}

// Takes ownership of the event.
static Status read_node(YamlReader *reader, yaml_event_t *event, int depth, ConfigNode **node) {
    const int line = event_line(event);
    const yaml_event_type_t type = event->type;
    const bool anchored = type == YAML_ALIAS_EVENT || (type == YAML_SCALAR_EVENT && event->data.scalar.anchor) ||
                          (type == YAML_MAPPING_START_EVENT && event->data.mapping_start.anchor) ||
                          (type == YAML_SEQUENCE_START_EVENT && event->data.sequence_start.anchor);
    const NodeKind kind = type == YAML_SCALAR_EVENT          ? NODE_SCALAR
                          : type == YAML_MAPPING_START_EVENT ? NODE_MAP
                                                             : NODE_LIST;
    *node = config_node(reader->source->arena, kind, line);
    if (type == YAML_SCALAR_EVENT) {
        const bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        const char *text = (const char *)event->data.scalar.value;
        (*node)->text = plain && is_null(text) ? "" : arena_text(reader->source->arena, text);
    }
    yaml_event_delete(event);
    FAIL_WITH(anchored,
              config_malformed(reader->source, line, "anchors and aliases are not read: write the value out"));
    if (depth == CONFIG_MAX_DEPTH) {
        return config_malformed(reader->source, line, "nested deeper than %d levels", CONFIG_MAX_DEPTH);
    }
    return kind == NODE_SCALAR ? STATUS_OK : read_children(reader, *node, depth + 1);
}

static Status read_document(YamlReader *reader, ConfigNode **root) {
    yaml_event_t event;
    yaml_event_type_t type;
    do {  // stream and document begin
        TRY(next_event(reader, &event));
        type = event.type;
        if (type == YAML_STREAM_START_EVENT || type == YAML_DOCUMENT_START_EVENT) {
            yaml_event_delete(&event);
        }
    } while (type == YAML_STREAM_START_EVENT || type == YAML_DOCUMENT_START_EVENT);
    if (type == YAML_STREAM_END_EVENT) {
        yaml_event_delete(&event);
        return config_malformed(reader->source, 1, "empty");
    }
    TRY(read_node(reader, &event, 0, root));
    do {
        TRY(next_event(reader, &event));
        type = event.type;
        const int line = event_line(&event);
        yaml_event_delete(&event);
        FAIL_WITH(type == YAML_DOCUMENT_START_EVENT,
                  config_malformed(reader->source, line, "a second document begins: a config file is one"));
    } while (type != YAML_STREAM_END_EVENT);
    return STATUS_OK;
}

Status config_yaml(const ConfigSource *source, ConfigNode **root) {
    YamlReader reader = {.source = source};
    FAIL_IF(!yaml_parser_initialize(&reader.parser), source->error, STATUS_INTERNAL, "no memory to read %s",
            source->path);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)source->text, strlen(source->text));
    const Status status = read_document(&reader, root);
    yaml_parser_delete(&reader.parser);
    return status;
}
