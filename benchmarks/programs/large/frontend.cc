// Compiles files as `clang -cc1` does, with no driver before it.
//
// frontend OPTION... FILE

#include "clang/Basic/Diagnostic.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/TextDiagnosticBuffer.h"
#include "clang/FrontendTool/Utils.h"
#include "llvm/Support/TargetSelect.h"

using namespace clang;

int main(int argc, char **argv) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  CompilerInstance compiler;
  DiagnosticsEngine early(new DiagnosticIDs, new DiagnosticOptions, new TextDiagnosticBuffer);
  if (!CompilerInvocation::CreateFromArgs(compiler.getInvocation(),
                                          {argv + 1, argv + argc}, early))
    return 2;
  compiler.createDiagnostics();
  return !ExecuteCompilerInvocation(&compiler);
}
