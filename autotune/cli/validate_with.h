// validate --with TARGET -- COMMAND: the user's own framework runs the shapes, and its step times are parsed from its
// output.

#pragma once

#include "autotune/cli/cli.h"
#include "autotune/validate/validate.h"

// --with and a command require each other; the validated target is that of --with.
Status validate_with_check(Cli *cli, Error *error);

// Fills the validation's runs.
Status validate_with(Cli *cli, Validation *validation, Error *error);
