// Stands for libgit2 beside Criterion, which draws with it how two strings differ; no test asks for that. The real one
// would load 15 libraries and read the machine's certificates in every process that runs a test.

int git_libgit2_init(void);
int git_libgit2_shutdown(void);
int git_diff_buffers(void);

int git_libgit2_init(void) {
    return 1;
}

int git_libgit2_shutdown(void) {
    return 0;
}

// No difference could be drawn.
int git_diff_buffers(void) {
    return -1;
}
