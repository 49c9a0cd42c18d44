// clang without its driver, from the static libraries of libclang-22-dev and llvm-22-dev.
//
//   front -triple x86_64-linux-gnu -O2 -S one.c -o one.s      as clang -cc1

#include "clang/Basic/DiagnosticOptions.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/TextDiagnosticBuffer.h"
#include "clang/FrontendTool/Utils.h"
#include "llvm/Support/TargetSelect.h"

int main(int argc, char **argv) {
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  llvm::InitializeAllAsmPrinters();
  llvm::InitializeAllAsmParsers();
  clang::CompilerInstance compiler;
  compiler.createVirtualFileSystem();
  compiler.createDiagnostics();
  llvm::ArrayRef<const char *> words(argv + 1, argc - 1);
  if (!clang::CompilerInvocation::CreateFromArgs(compiler.getInvocation(), words,
                                                 compiler.getDiagnostics()))
    return 1;
  return !clang::ExecuteCompilerInvocation(&compiler);
}
