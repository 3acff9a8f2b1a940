#include <sqlite3.h>
#include <stdio.h>

#include "tests/bench/alternatives.h"

static sqlite3 *database;
static sqlite3_stmt *insert, *newest;

bool sqlite_open(const char *folder)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/alternative.db", folder);
    return sqlite3_open(path, &database) == SQLITE_OK &&
           sqlite3_exec(
               database,
               "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"
               "CREATE TABLE event(id INTEGER PRIMARY KEY, t INTEGER, job TEXT, node TEXT, name TEXT, value REAL, max REAL);",
               NULL, NULL, NULL) == SQLITE_OK &&
           sqlite3_prepare_v2(database,
                              "INSERT INTO event(t,job,node,name,value,max) VALUES(?1,'8f3c-prompt','3','KSampler',?2,20)", -1,
                              &insert, NULL) == SQLITE_OK &&
           sqlite3_prepare_v2(database, "SELECT * FROM event WHERE id=1", -1, &newest, NULL) == SQLITE_OK;
}

bool sqlite_insert(int number)
{
    sqlite3_bind_int64(insert, 1, number);
    sqlite3_bind_double(insert, 2, number * 0.25);
    bool done = sqlite3_step(insert) == SQLITE_DONE;
    return sqlite3_reset(insert) == SQLITE_OK && done;
}

bool sqlite_select(void)
{
    bool found = sqlite3_step(newest) == SQLITE_ROW && sqlite3_column_double(newest, 6) > 0;
    return sqlite3_reset(newest) == SQLITE_OK && found;
}

void sqlite_end(void)
{
    sqlite3_finalize(insert);
    sqlite3_finalize(newest);
    sqlite3_close(database);
}
