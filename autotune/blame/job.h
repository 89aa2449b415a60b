// All ranks of one job: their dumps, their shared process groups, and for each group every member's collectives by
// number. Point-to-point traffic from one member to another is a channel: a group of these two, whose k-th collective
// is the k-th message, a send on one rank and a receive on the other.

#pragma once

#include "autotune/blame/dump.h"

// What one member issued as one collective; a coalesced batch is one.
typedef struct Turn {
    int64_t seq;
    DumpOp op;
    int64_t in, out, bytes;
    const char *dtype;
    int entry;       // index in its dump, the first
    int last_entry;  // and the last
    bool done;       // it has completed on this rank
    bool failed;     // it ended, but cannot have succeeded
} Turn;

typedef struct Member {
    int rank;
    Turn *turns;  // by ascending seq
    int count;
} Member;

typedef struct JobGroup {
    const char *name, *desc;
    Member *members;  // by ascending rank
    int count;
    bool whole;                // the dumps list its members; else those that used it are taken as all
    int parent;                // >= 0: a channel between members of that process group; -1 = a process group
    int from, to;              // of a channel: ranks,
    int from_index, to_index;  // and their indices in the process group
    bool stages;               // the process group's members are pipeline stages
    int kind;                  // groups of one kind are the same mesh dimension at other coordinates
    int64_t first;             // the first seq that every member's recorder still holds
    int64_t last;              // the highest seq that any member issued
} JobGroup;

typedef struct RankGroup {
    int group, member;
} RankGroup;

// The channel on which a rank sends to, or receives from, that index of a process group.
typedef struct RankChannel {
    int parent, peer;
    bool sends;
    int group;  // index into the job's groups
} RankChannel;

typedef struct JobRank {
    const Dump *dump;   // NULL = no dump
    RankGroup *groups;  // the groups it is a member of
    int group_count;
    int *group_of;  // maps its dump's groups to the job's
    RankChannel *channels;
    int channel_count;
    int stage;                  // pipeline stage; -1 = it is in no pipeline
    int64_t first_ns, last_ns;  // of its entries
} JobRank;

typedef struct Job {
    JobRank *ranks;
    int world;
    JobGroup *groups;  // process groups, then the channels
    int group_count, process_groups, kind_count;
    int dump_count;
    const char *folder;
    const char **notes;  // sentences about skipped files
    int note_count;
} Job;

// Reads every dump in a folder and its subfolders, whose names are then the hosts. A file's rank is the number at the
// end of its name, before .json, .pickle or .pkl.
// The job has at least `world` ranks.
Status job_read(const char *folder, int world, Arena *arena, Job *job, Error *error);

// The same from parsed dumps, one per rank.
Status job_of_dumps(Dump *dumps, int count, int world, Arena *arena, Job *job, Error *error);

// The channels of a job whose process groups and members are known, and the stages of its ranks.
void channels_find(Job *job, Arena *arena);
void channels_find_kinds(Job *job, Arena *arena);  // once those of the process groups are known
// Aligns numbers where rings have lost the first messages: the last completed message is the same for both ends.
void channels_align(Job *job);
int channel_of(const Job *job, int rank, const DumpEntry *message);  // index into the job's groups; -1 = unknown

// "0 to 3, 5"; long lists end with the number of further ones.
const char *job_rank_list(const int *ranks, int count, Arena *arena);

const Turn *member_turn(const Member *member, int64_t seq);   // NULL = not issued yet, or lost from the ring
const Member *group_member(const JobGroup *group, int rank);  // NULL = it is not a member

static inline const DumpEntry *turn_entry(const Job *job, const Member *member, const Turn *turn) {
    return &job->ranks[member->rank].dump->entries[turn->entry];
}
