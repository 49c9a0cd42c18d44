// Links objects as `ld.lld` does, and compiles those that are LLVM IR.
//
// linker OPTION... FILE...

#include "lld/Common/Driver.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  return !lld::elf::link({argv, argv + argc}, llvm::outs(), llvm::errs(),
                         /*exitEarly=*/false, /*disableOutput=*/false);
}
