// Each number of the profile from the samples that determine it alone, by the formula of sim/cost that will read it.

#include "autotune/probe/probe_profile.h"

#include "autotune/probe/probe_builder.h"

Status probe_profile(const ProbeProfile *about, const ProbeResult *probe, Arena *arena, json_t **root, Error *error) {
    const ProbeHost *host = &probe->hosts[0];
    const char *machines =
        probe->nodes > 1 ? arena_format(arena, "%d machines like %s", probe->nodes, host->name) : host->name;
    ProbeBuilder builder = {.about = about, .probe = probe, .arena = arena};
    builder.root = json_pack(
        "{s:s, s:s, s:s, s:s, s:s}", "schema", "ndtune.cluster/1", "name", about->name, "extends", about->extends,
        "stack", arena_format(arena, "%s transport of %s", about->transport, about->program), "date", about->when);
    const Status status = probe->chip ? probe_gpu(&builder, error) : probe_cpu(&builder, error);
    if (status == STATUS_OK) {
        const char *chip = probe->chip
                               ? probe->chip
                               : arena_format(arena, "%s, OpenBLAS' kernels for %s", host->processor, host->core_type);
        const char *description = arena_format(arena, "%s, %s, as ndtune probe measured it with %d ranks%s", machines,
                                               chip, probe->world, builder.not_measured ? builder.not_measured : "");
        json_object_set_new(builder.root, "description", json_string(description));
        *root = builder.root;
    } else {
        json_decref(builder.root);
    }
    return status;
}
