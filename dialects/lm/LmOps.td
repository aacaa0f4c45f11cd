#ifndef IZHC_DIALECTS_LM_LMOPS
#define IZHC_DIALECTS_LM_LMOPS
include "mlir/IR/OpBase.td"
def LmDialect : Dialect { let name = "lm"; let cppNamespace = "::izhc::lm"; }
#endif
