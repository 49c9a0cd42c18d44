// A key-value store in memory: writes, flushes, merges runs, reads and walks over ranges.
//
// store SEED KEYS LENGTH READS RANGES
//
// Prints a sum of what was read, which shows that builds do the same work.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/table.h"
#include "rocksdb/write_batch.h"

using namespace rocksdb;

static uint64_t state;

static uint64_t chance() {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static std::string key_of(uint64_t number) {
  char text[24];
  snprintf(text, sizeof text, "%016llx", (unsigned long long)(number * 0x9E3779B97F4A7C15));
  return text;
}

static void check(const Status& status) {
  if (!status.ok()) {
    fprintf(stderr, "%s\n", status.ToString().c_str());
    exit(1);
  }
}

int main(int, char** argv) {
  state = strtoull(argv[1], nullptr, 10) * 2654435761u + 1;
  const uint64_t keys = atoi(argv[2]), length = atoi(argv[3]);
  const int reads = atoi(argv[4]), ranges = atoi(argv[5]);
  std::unique_ptr<Env> memory(NewMemEnv(Env::Default()));
  Options options;
  options.env = memory.get();
  options.create_if_missing = true;
  options.compression = kNoCompression;
  options.disable_auto_compactions = true;
  options.stats_dump_period_sec = options.stats_persist_period_sec = 0;
  BlockBasedTableOptions table;
  table.filter_policy.reset(NewBloomFilterPolicy(10));
  options.table_factory.reset(NewBlockBasedTableFactory(table));
  DB* db = nullptr;
  check(DB::Open(options, "/store", &db));
  for (int part = 0; part < 4; part++) {
    for (uint64_t number = 0; number < keys / 4; number += 10) {
      WriteBatch batch;
      for (int each = 0; each < 10; each++) {
        uint64_t place = chance() % keys;
        if (chance() % 16)
          check(batch.Put(key_of(place), std::string(1 + chance() % length, 'a' + place % 26)));
        else
          check(batch.Delete(key_of(place)));
      }
      check(db->Write(WriteOptions(), &batch));
    }
    check(db->Flush(FlushOptions()));
    if (part % 2) check(db->CompactRange(CompactRangeOptions(), nullptr, nullptr));
  }
  uint64_t sum = 0;
  for (int read = 0; read < reads; read++) {
    std::string value;
    Status status = db->Get(ReadOptions(), key_of(chance() % (keys + keys / 4)), &value);
    if (status.ok()) sum += value.size() * (read | 1) + value[0];
  }
  for (int range = 0; range < ranges; range++) {
    std::unique_ptr<Iterator> it(db->NewIterator(ReadOptions()));
    int steps = 0;
    for (it->Seek(key_of(chance() % keys)); it->Valid() && steps < 50; it->Next(), steps++)
      sum += it->key()[steps % 16] * it->value().size();
    check(it->status());
  }
  printf("%llu\n", (unsigned long long)sum);
  check(db->Close());
  delete db;
}
