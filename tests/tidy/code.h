// Lightweight scanning of C: no parser, only what a house rule needs. Relies on balanced braces outside comments and
// literals.

#pragma once

#include <stdbool.h>

// A copy in which comments, literals and preprocessor lines are blanks; line numbers stay. The caller frees it.
char *code_blank(const char *text);

// The line number (from 1) of a place in text.
int code_line(const char *text, const char *place);

// Calls visit for every function body of blanked code: line of the opening and of the closing brace.
typedef void (*FunctionVisit)(void *context, int open_line, int close_line);
void code_functions(const char *blanked, FunctionVisit visit, void *context);

// Calls visit for every declaration of blanked code that makes a variable living as long as the program: at file scope,
// or static inside a function; functions, prototypes, types and extern declarations are not variables.
typedef void (*VariableVisit)(void *context, int line, const char *declaration, bool is_constant);
void code_static_variables(const char *blanked, VariableVisit visit, void *context);

// The next call of the named function at or after place, as a whole word followed by "("; NULL when there is none.
const char *code_find_call(const char *place, const char *function);
