// Optimizes modules of LLVM IR, and prints them.
//
// passes PIPELINE FILE...

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

int main(int argc, char **argv) {
  for (int number = 2; number < argc; number++) {
    LLVMContext context;
    SMDiagnostic wrong;
    std::unique_ptr<Module> module = parseIRFile(argv[number], wrong, context);
    if (!module) {
      wrong.print(argv[0], errs());
      return 1;
    }
    LoopAnalysisManager loops;
    FunctionAnalysisManager functions;
    CGSCCAnalysisManager components;
    ModuleAnalysisManager modules;
    PassBuilder builder;
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    ModulePassManager passes;
    if (Error error = builder.parsePassPipeline(passes, argv[1])) {
      errs() << toString(std::move(error)) << "\n";
      return 1;
    }
    passes.run(*module, modules);
    module->print(outs(), nullptr);
  }
}
