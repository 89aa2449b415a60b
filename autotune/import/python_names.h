// The words of a Python file, and which assignment a name in it stands for.

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/base/arena.h"

size_t dotted_length(const char *text);       // of the name that begins here, "a.b.c"; 0: none
const char *behind_string(const char *at);    // a triple-quoted one spans lines
const char *behind_value(const char *text);   // the expression's end: a line end, comma, closing bracket, "=" outside
const char *behind_brackets(const char *at);  // those that begin here

typedef struct PythonNames PythonNames;

PythonNames *python_names(const char *text, Arena *arena);
// The only assignment to the name where it is used, in that function or else around it; NULL where there are several,
// it is a parameter, or there is none. Places go forward, from one call to the next; NULL = the end of the file.
const char *python_set_at(PythonNames *names, const char *at, const char *name);
// The function around `at` has **name: what its callers add.
bool python_takes_more(PythonNames *names, const char *at, const char *name);
