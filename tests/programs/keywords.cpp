// Comparisons in a row, of which clang makes one switch over the sizes: so the comparison itself has
// no probe any more, and what is inlined into it has.

extern "C" int memcmp(const void *, const void *, unsigned long);

struct Text {
  const char *data;
  unsigned long size;
};
inline unsigned long length(const char *text) { return __builtin_strlen(text); }
inline bool equals(Text a, Text b) {
  return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}
inline bool operator==(Text a, Text b) { return equals(a, b); }
inline Text of(const char *text) { return {text, length(text)}; }

__attribute__((noinline)) int keyword(Text word) {
#define KEYWORD(name)                                                                              \
  if (word == of(#name))                                                                           \
    return sizeof #name * 3;
  KEYWORD(if)
  KEYWORD(for)
  KEYWORD(else)
  KEYWORD(while)
  KEYWORD(switch)
  KEYWORD(do)
  KEYWORD(int)
  KEYWORD(long)
  KEYWORD(float)
  KEYWORD(double)
  KEYWORD(auto)
  KEYWORD(break)
  KEYWORD(return)
  return 0;
}

const char *const words[] = {"if", "long", "break", "some", "else", "return", "which", "double"};

int main() {
  int sum = 0;
  for (int i = 0; i < 400000; i++)
    sum += keyword(of(words[i & 7]));
  return sum == 7;
}
