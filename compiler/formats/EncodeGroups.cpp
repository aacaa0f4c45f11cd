// Blocks without sub-blocks: the best scale (and minimum), rounded as it is
// stored, then the nearest codes. Others: SuperBlocks.h.

#include "compiler/formats/EncodeGroups.h"
#include "compiler/formats/SuperBlocks.h"

using namespace izhc;
using namespace izhc::formats;

template <bool kWeighed, typename Codes>
IZH_INLINE void encodePlain(const FormatSpec &format, const Groups<kWeighed> &groups,
                            const Codes &codes, RawBlock *raws, Bytes *to) {
  Line line;
  if constexpr (std::is_same_v<Codes, Range>)
    line = format.hasMin ? fitLine(groups, codes, /*below=*/false) : Line{fitScale(groups, codes)};
  else
    line.step = fitScale(groups, codes);
  for (int lane = 0; lane < kLanes; ++lane) {
    raws[lane].scale = finiteHalf(line.step[lane]);
    raws[lane].min = finiteHalf(line.base[lane]);
    line.step[lane] = halfToFloat(raws[lane].scale);
    line.base[lane] = halfToFloat(raws[lane].min);
  }
  storeCodes(groups, codes, line, to);
}

template <bool kWeighed, typename Codes>
IZH_INLINE void encodeWith(const FormatSpec &format, const Groups<kWeighed> &groups,
                           const Codes &codes, RawBlock *raws, Bytes *to) {
  if (format.subWeights)
    SuperBlocks<kWeighed, Codes>(format, groups, codes).encode(raws, to);
  else
    encodePlain(format, groups, codes, raws, to);
}

template <bool kWeighed>
IZH_INLINE void encodeWeighed(const FormatSpec &format, const Groups<kWeighed> &groups,
                              RawBlock *raws, Bytes *to) {
  if (format.codebook.empty())
    encodeWith(format, groups, Range(format), raws, to);
  else
    encodeWith(format, groups, Book(format.codebook), raws, to);
}

IZH_INLINE void encodeGroupsBody(const FormatSpec &format, const Floats *x, const Floats *w,
                                 int count, RawBlock *raws, Bytes *codes) {
  if (w)
    encodeWeighed(format, Groups<true>{x, w, count}, raws, codes);
  else
    encodeWeighed(format, Groups<false>{x, w, count}, raws, codes);
}

IZH_CLONES(encodeGroups,
           (const FormatSpec &format, const Floats *x, const Floats *w, int count, RawBlock *raws,
            Bytes *codes),
           (format, x, w, count, raws, codes))
