// What a command of a launch script starts, and with which config file.

#pragma once

#include "autotune/import/shell_words.h"

// The last file that ends as a config does, by itself or as the value of an option that is for one; else unchanged.
void shell_config(const ShellList *words, ShellWord *config);

// The position after the command's program, "train.py"; 0: it names none.
int shell_behind_program(const ShellList *words);

// "train.py", "-m train", or a program and what it is to do, "NAME sft"; NULL: none of them. behind: of
// shell_behind_program.
const char *shell_program(const ShellList *words, int behind, Arena *arena);

// The file of "source FILE"; NULL: it is none, or an environment of packages, which sets no options.
const ShellWord *shell_sourced(const ShellList *words);
