// validate --with TARGET -- COMMAND: the user's own framework runs the shapes, and its step times are read from what it
// prints.

#pragma once

#include "autotune/cli/cli.h"
#include "autotune/validate/validate.h"

// --with and a command go together; the target that is validated is that of --with.
Status validate_with_check(Cli *cli, Error *error);

// Fills the validation's runs.
Status validate_with(Cli *cli, Validation *validation, Error *error);
