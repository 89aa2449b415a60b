// All ranks of one job: their dumps, the process groups they have in common, and of each group every member's
// collectives by their number. What one member of a group sends another is a channel: a group of these two, whose k-th
// collective is the k-th message, a send on one rank and a receive on the other.

#pragma once

#include "autotune/blame/dump.h"

// What one member issued as one collective; several that were issued together are one.
typedef struct Turn {
    int64_t seq;
    DumpOp op;
    int64_t in, out, bytes;
    const char *dtype;
    int entry;       // of its dump, the first
    int last_entry;  // and the last
    bool done;       // it is over on this rank
    bool failed;     // it ended, but cannot have succeeded
} Turn;

typedef struct Member {
    int rank;
    Turn *turns;  // ascending seq
    int count;
} Member;

typedef struct JobGroup {
    const char *name, *desc;
    Member *members;  // ascending rank
    int count;
    bool whole;    // the dumps list its members; else those that used it are taken for all
    int parent;    // >= 0: a channel, what one member of that process group sends another; -1 = a process group
    int from, to;  // of a channel: ranks,
    int from_index, to_index;  // and which members of the process group they are
    bool stages;               // that are stages of a pipeline
    int kind;                  // groups of one kind are the same dimension at other places
    int64_t first;             // seq from which on every member's recorder reaches back
    int64_t last;              // the highest seq that any member issued
} JobGroup;

typedef struct RankGroup {
    int group, member;
} RankGroup;

// The channel on which a rank sends to, or receives from, that index of a process group.
typedef struct RankChannel {
    int parent, peer;
    bool sends;
    int group;  // of the job
} RankChannel;

typedef struct JobRank {
    const Dump *dump;   // NULL = there is none
    RankGroup *groups;  // that it is a member of
    int group_count;
    int *group_of;  // by group of its dump: the job's
    RankChannel *channels;
    int channel_count;
    int stage;                  // of the pipeline; -1 = it is in none
    int64_t first_ns, last_ns;  // of its entries
} JobRank;

typedef struct Job {
    JobRank *ranks;
    int world;
    JobGroup *groups;  // process groups, behind them the channels
    int group_count, process_groups, kind_count;
    int dump_count;
    const char *folder;
    const char **notes;  // sentences about files that were left out
    int note_count;
} Job;

// Reads every dump in a folder, and in folders in it, whose names are then the hosts. A file's rank is the number at
// the end of its name, before .json, .pickle or .pkl.
// The job has at least `world` ranks.
Status job_read(const char *folder, int world, Arena *arena, Job *job, Error *error);

// The same from dumps, one a rank.
Status job_of_dumps(Dump *dumps, int count, int world, Arena *arena, Job *job, Error *error);

// The channels of a job whose process groups and members are known, and the stages of its ranks.
void channels_find(Job *job, Arena *arena);
void channels_find_kinds(Job *job, Arena *arena);  // once those of the process groups are known
// Numbers where rings have lost the first messages: the last that is over is the same one for both.
void channels_align(Job *job);
int channel_of(const Job *job, int rank, const DumpEntry *message);  // of the job's groups; -1 = unknown

const Turn *member_turn(const Member *member, int64_t seq);   // NULL = it has not issued it, or the ring lost it
const Member *group_member(const JobGroup *group, int rank);  // NULL = it is none

static inline const DumpEntry *turn_entry(const Job *job, const Member *member, const Turn *turn) {
    return &job->ranks[member->rank].dump->entries[turn->entry];
}
