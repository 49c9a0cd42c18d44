// A workload for LevelDB: a store in memory, without snappy. store KEYS SEED BYTES
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "helpers/memenv/memenv.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"

namespace {

unsigned state;

unsigned Below(unsigned limit) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % limit;
}

std::string Key(unsigned number) {
  char text[32];
  std::snprintf(text, sizeof text, "user%09u", number * 7919u % 1000000007u);
  return text;
}

void Must(const leveldb::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "store: %s\n", status.ToString().c_str());
  std::exit(1);
}

void Fill(leveldb::DB* db, unsigned keys, unsigned bytes) {
  for (unsigned i = 0; i < keys; i++) {
    std::string value(1 + Below(bytes), static_cast<char>('a' + Below(26)));
    Must(db->Put(leveldb::WriteOptions(), Key(Below(keys)), value));
    if (i % 16 == 0) Must(db->Delete(leveldb::WriteOptions(), Key(Below(keys))));
  }
}

unsigned long Read(leveldb::DB* db, unsigned keys) {
  unsigned long sum = 0;
  std::string value;
  for (unsigned i = 0; i < keys; i++) {
    leveldb::Status status = db->Get(leveldb::ReadOptions(), Key(Below(keys * 2)), &value);
    if (!status.IsNotFound()) Must(status);
    if (status.ok()) sum += value.size();
  }
  return sum;
}

unsigned long Iterate(leveldb::DB* db) {
  std::unique_ptr<leveldb::Iterator> each(db->NewIterator(leveldb::ReadOptions()));
  unsigned long sum = 0;
  for (each->SeekToFirst(); each->Valid(); each->Next()) sum += each->key()[8];
  for (each->SeekToLast(); each->Valid(); each->Prev()) sum += each->value().size();
  Must(each->status());
  return sum;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const unsigned keys = std::atoi(arguments[1]), bytes = std::atoi(arguments[3]);
  state = std::atoi(arguments[2]);
  if (keys < 1 || bytes < 1) return 2;
  std::unique_ptr<leveldb::Env> memory(leveldb::NewMemEnv(leveldb::Env::Default()));
  std::unique_ptr<const leveldb::FilterPolicy> filter(leveldb::NewBloomFilterPolicy(10));
  leveldb::Options options;
  options.env = memory.get();
  options.create_if_missing = true;
  options.compression = leveldb::kNoCompression;
  options.filter_policy = filter.get();
  options.write_buffer_size = 64 << 20;  // so that compactions come when they are asked for
  leveldb::DB* opened;
  Must(leveldb::DB::Open(options, "/store", &opened));
  std::unique_ptr<leveldb::DB> db(opened);
  unsigned long sum = 0;
  for (int round = 0; round < 3; round++) {
    Fill(db.get(), keys, bytes);
    sum += Read(db.get(), keys);
    db->CompactRange(nullptr, nullptr);
    sum += Read(db.get(), keys) + Iterate(db.get());
  }
  std::printf("%lu\n", sum);
}
