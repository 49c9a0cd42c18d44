// LLVM's opt, from the static libraries of llvm-22-dev.
//
//   passes -O2 -S one.ll -o optimised.ll

#include "llvm/ADT/ArrayRef.h"
#include <functional>

namespace llvm {
class PassBuilder;
}
extern "C" int optMain(int argc, char **argv,
                       llvm::ArrayRef<std::function<void(llvm::PassBuilder &)>> callbacks);

int main(int argc, char **argv) { return optMain(argc, argv, {}); }
