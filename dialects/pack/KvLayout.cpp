// The arithmetic of KvLayout.h.

#include "dialects/pack/KvLayout.h"
#include "llvm/Support/MathExtras.h"

namespace izhc::pack {

KvLayout::KvLayout(KvType type) : bits(type.getBits()), page(type.getPage()) {
  bool blocks = bits < 16;
  keyPairs = llvm::divideCeil(type.getDim(), 2);
  keyPanelBytes =
      blocks ? type.getDim() / kBlock * keyBlockBytes() : keyPairs * kLanes * 2 * bits / 8;
  keyHeadBytes = page / kLanes * keyPanelBytes;
  valuePanels = llvm::divideCeil(type.getValueDim(), kLanes);
  valuePanelBytes = blocks ? 2 * page + kBlock * page * bits / 8 : 2 * kLanes * page;
  valueHeadBytes = (blocks ? valuePanels / 2 : valuePanels) * valuePanelBytes;
  valuesOffset = type.getHeads() * keyHeadBytes;
  pageBytes = valuesOffset + type.getHeads() * valueHeadBytes;
}

int64_t KvType::getPageBytes() const { return KvLayout(*this).pageBytes; }

llvm::LogicalResult KvType::verify(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                   int64_t heads, int64_t dim, int64_t page, int64_t values,
                                   int64_t bits) {
  if (heads < 1 || dim < 1 || values < 0)
    return emitError() << "a cache needs at least one head and one value a head";
  if (page < 1 || page % KvLayout::kLanes != 0 || KvLayout::kSpan % page != 0)
    return emitError() << "a page of " << page << " tokens is no whole part of a span of "
                       << KvLayout::kSpan << " in panels of " << KvLayout::kLanes;
  if (bits != 16 && bits != 8 && bits != 4)
    return emitError() << "a cache has 16, 8 or 4 bits a value, not " << bits;
  if (bits != 16 && (dim % KvLayout::kBlock != 0 || values % KvLayout::kBlock != 0))
    return emitError() << "heads of " << dim << " values can't be cut into blocks of "
                       << KvLayout::kBlock;
  return mlir::success();
}

} // namespace izhc::pack
