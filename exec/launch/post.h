// The launcher's side of the post: listens, hands out the request, keeps every rank's row and what ranks brought.
// Private to exec/launch.

#pragma once

#include "exec/launch/post_wire.h"

typedef struct PostRank {
    int fd;           // -1 before hello and after the end
    bool came, done;  // said hello; said goodbye
    bool lost;        // ended without goodbye
    double silent_s;  // since its last row
} PostRank;

typedef struct Post Post;

// address: to listen on (post_address.h). request: its text. Lives in
// the arena, except for what post_close frees.
Status post_open(int world, uint32_t address, const char *request, Arena *arena, Post **post, Error *error);
void post_lines_close(Post *post);  // ranks that are still there end at once; the board stays
void post_close(Post *post);
const char *post_setting(const Post *post);  // for POST_VARIABLE
BoardRank *post_board(const Post *post);     // a row per rank

// Serves what has come, waits at most wait_s for it.
void post_serve(Post *post, double wait_s);

const PostRank *post_rank(const Post *post, int rank);
const char *post_failure(const Post *post);  // JSON of the first rank that failed; NULL = none
const char *post_result(const Post *post);   // JSON; NULL before it came
int post_first_lost(const Post *post);       // -1 = none
