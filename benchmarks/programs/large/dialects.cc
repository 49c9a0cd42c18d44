// Lowers modules of MLIR, and prints them: mlir-opt.
//
// dialects PASS... FILE

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Support/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::registerAllPasses();
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  return failed(mlir::MlirOptMain(argc, argv, "dialects", registry));
}
