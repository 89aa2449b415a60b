// The schema versions in order; a new one is its .sql file, a name in CMakeLists.txt and a row here.

#include "autotune/store/migrations.h"
#include "autotune/store/migration_001_init_sql.h"
#include "autotune/store/migration_002_choices_sql.h"
#include "autotune/store/migration_003_measured_sql.h"
#include "autotune/store/migration_004_tune_sql.h"
#include "autotune/store/migration_005_prices_sql.h"
#include "autotune/store/migration_006_calibrations_sql.h"
#include "autotune/store/migration_007_preflights_sql.h"
#include "autotune/store/migration_008_executor_sql.h"
#include "autotune/store/migration_009_exposed_sql.h"
#include "autotune/store/migration_010_core_type_sql.h"
#include "autotune/store/migration_011_alike_sql.h"
#include "autotune/store/migration_012_run_stages_sql.h"

const Migration store_migrations[] = {
    {"001_init", migration_001_init_sql},
    {"002_choices", migration_002_choices_sql},
    {"003_measured", migration_003_measured_sql},
    {"004_tune", migration_004_tune_sql},
    {"005_prices", migration_005_prices_sql},
    {"006_calibrations", migration_006_calibrations_sql},
    {"007_preflights", migration_007_preflights_sql},
    {"008_executor", migration_008_executor_sql},
    {"009_exposed", migration_009_exposed_sql},
    {"010_core_type", migration_010_core_type_sql},
    {"011_alike", migration_011_alike_sql},
    {"012_run_stages", migration_012_run_stages_sql},
};
const int store_migration_count = (int)(sizeof store_migrations / sizeof store_migrations[0]);
