// Values as a script has them: a call is a map with its class as "_target_" (autotune/import/python_values.h).

#pragma once

#include "sim/frameworks/import.h"

// Where variables of the environment are that a script sets, and what it joins that is known when it runs.
#define ENVIRON "environ"
#define ENVIRON_UNREAD "joined"

// What a call is given by **name of which nothing is known, beside its arguments.
#define PYTHON_MORE "more"

const char *python_class(const ConfigNode *node);                          // that it calls; NULL: it is no call
bool python_is_made_by(const ConfigNode *node, const char *name);          // whose class begins so, behind its module
const char *python_written(const Import *import, const ConfigNode *node);  // name(...) for a call

void python_forget(ConfigNode *node);  // as if it were not said

// What is known when the script runs, as args.steps and int(args.steps) are, is said, with `words` for what to do, and
// forgotten: true where it is such a value. The other names the option that says it instead.
bool python_leave(Import *import, const char *path, const char *words);
bool python_leave_to(Import *import, const char *path, const char *option);
bool python_leave_choice(Import *import, const char *path, PlanFieldId choice);  // to that one's option
