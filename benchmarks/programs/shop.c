/* A workload for SQLite: a shop's orders in memory. shop ORDERS SEED WORDS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlite3.h"

static const char *const words[] = {
    "amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "hazel",
    "ivory", "jade", "khaki", "lemon", "maple", "north", "olive", "pearl",
};
static unsigned state;
static sqlite3 *db;

static unsigned below(unsigned limit) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % limit;
}

static void must(int code) {
    if (code != SQLITE_OK) {
        fprintf(stderr, "shop: %s\n", sqlite3_errmsg(db));
        exit(1);
    }
}

static sqlite3_stmt *prepared(const char *sql) {
    sqlite3_stmt *statement;
    must(sqlite3_prepare_v2(db, sql, -1, &statement, NULL));
    return statement;
}

/* Run a statement; the sum of its rows' first columns. */
static long long sum_of(sqlite3_stmt *statement) {
    long long sum = 0;
    while (sqlite3_step(statement) == SQLITE_ROW) sum += sqlite3_column_int64(statement, 0);
    must(sqlite3_reset(statement));
    return sum;
}

static void fill(int orders, int length) {
    sqlite3_stmt *insert = prepared("INSERT INTO orders VALUES (?, ?, ?, ?)");
    must(sqlite3_exec(db, "BEGIN", NULL, NULL, NULL));
    for (int i = 0; i < orders; i++) {
        char note[256] = "";
        for (int j = 0; j < length; j++) {
            strcat(note, words[below(16)]);
            strcat(note, " ");
        }
        sqlite3_bind_int(insert, 1, i);
        sqlite3_bind_int(insert, 2, below(orders / 8 + 1));
        sqlite3_bind_int(insert, 3, below(10000));
        sqlite3_bind_text(insert, 4, note, -1, SQLITE_TRANSIENT);
        sum_of(insert);
    }
    sqlite3_finalize(insert);
    must(sqlite3_exec(db,
        "INSERT INTO customers SELECT DISTINCT customer, 'name ' || customer, customer % 7"
        " FROM orders; CREATE INDEX by_customer ON orders(customer);"
        "CREATE INDEX by_price ON orders(price); COMMIT", NULL, NULL, NULL));
}

static long long look_up(int orders) {
    sqlite3_stmt *one = prepared("SELECT price FROM orders WHERE id = ?");
    sqlite3_stmt *range = prepared("SELECT id FROM orders WHERE price BETWEEN ? AND ? + 20");
    long long sum = 0;
    for (int i = 0; i < orders; i++) {
        sqlite3_bind_int(one, 1, below(orders));
        sum += sum_of(one);
        if (i % 4 == 0) {
            int price = below(10000);
            sqlite3_bind_int(range, 1, price);
            sqlite3_bind_int(range, 2, price);
            sum += sum_of(range);
        }
    }
    sqlite3_finalize(one);
    sqlite3_finalize(range);
    return sum;
}

static long long query(const char *sql) {
    sqlite3_stmt *statement = prepared(sql);
    long long sum = sum_of(statement);
    sqlite3_finalize(statement);
    return sum;
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    int orders = atoi(arguments[1]), length = atoi(arguments[3]);
    state = (unsigned)atoi(arguments[2]);
    if (orders < 1 || length < 1 || length > 32) return 2;
    must(sqlite3_open(":memory:", &db));
    must(sqlite3_exec(db,
        "CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INT, price INT, note TEXT);"
        "CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT, region INT)",
        NULL, NULL, NULL));
    fill(orders, length);
    long long sum = look_up(orders);
    sum += query("SELECT sum(price) FROM orders JOIN customers ON customer = customers.id"
                 " GROUP BY region ORDER BY 1");
    sum += query("SELECT count(*) FROM orders WHERE note LIKE '%maple olive%'");
    sum += query("SELECT max(price) - min(price) FROM orders GROUP BY customer"
                 " HAVING count(*) > 3");
    sum += query("SELECT length(note) FROM orders ORDER BY note");
    must(sqlite3_exec(db, "UPDATE orders SET price = price + 1 WHERE customer % 3 = 0;"
                      "DELETE FROM orders WHERE id % 5 = 0", NULL, NULL, NULL));
    printf("%lld\n", sum + query("SELECT sum(price) FROM orders"));
    return sqlite3_close(db);
}
