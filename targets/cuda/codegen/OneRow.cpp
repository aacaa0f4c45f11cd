// Which products can make their own record: those that are the only readers of
// what a `quantize` leaves, while its input is as it was; the same for experts and the
// ratings that they are chosen by. And which attention can merge its spans: where that
// is what follows.

#include "targets/cuda/codegen/OneRow.h"
#include "dialects/pack/ActLayout.h"
#include "targets/cuda/codegen/AttentionRow.h"
#include "targets/cuda/codegen/ExpertRow.h"
#include "targets/cuda/codegen/FloatRow.h"
#include "targets/cuda/codegen/Lowering.h"
#include "targets/cuda/codegen/PairProducts.h"

namespace izhc::cuda {

using namespace mlir;

namespace {

// Of the memory that a block may share.
constexpr int64_t kMostRecordBytes = 32 << 10;
// Columns of a row from which on blocks that each make its record wait longer for
// the row than one that leaves the record takes for that.
constexpr int64_t kLeastLeft = 4096;

struct Range {
  int64_t begin, end;
  bool overlaps(const Range &other) const { return begin < other.end && other.begin < end; }
  bool operator==(const Range &other) const { return begin == other.begin && end == other.end; }
  bool operator!=(const Range &other) const { return !(*this == other); }
};

struct Dispatch {
  // A handle: its getters change nothing.
  mutable plan::DispatchOp dispatch;
  Operation *op;

  // Where argument `number` of the kernel lies in the arena.
  std::optional<Range> range(unsigned number) const {
    if (dispatch.getSpaces()[number] != int32_t(plan::Space::Arena))
      return std::nullopt;
    int64_t begin = dispatch.getOffsets()[number];
    return Range{begin, begin + dispatch.getSizes()[number]};
  }
  std::optional<Range> range(Value operand) const {
    return range(cast<BlockArgument>(operand).getArgNumber());
  }
  // Space and offset of an operand.
  std::pair<int64_t, int64_t> binding(Value operand) const {
    unsigned number = cast<BlockArgument>(operand).getArgNumber();
    return {dispatch.getSpaces()[number], dispatch.getOffsets()[number]};
  }
  unsigned bindings() const { return dispatch.getOffsets().size(); }
};

OneRowShape shapeOf(pack::MatmulOp op, bool streams) {
  OneRowShape shape = oneRowShape(op, streams);
  return shape.units ? shape : float_row::shape(op);
}

// The activations that a product for one row would read; null for other ops.
Value activationsOf(Operation *op) {
  if (auto matmul = dyn_cast<pack::MatmulOp>(op))
    return shapeOf(matmul, /*streams=*/false).units ? matmul.getAct() : Value();
  if (auto heads = dyn_cast<pack::MatmulHeadsOp>(op); heads && isPaired(heads))
    return heads.getAct();
  return {};
}

pack::RowSet rowSetOf(Operation *op) {
  auto set = op->getAttrOfType<pack::RowSetAttr>("row_set");
  return set ? set.getValue() : pack::RowSet::Tokens;
}

bool isRouted(pack::QuantizeOp op) {
  return op.getIndices() && isa<pack::RoutesType>(op.getIndices().getType());
}

Value destinationOf(Operation *op) {
  if (auto matmul = dyn_cast<pack::MatmulOp>(op))
    return matmul.getInto();
  if (auto heads = dyn_cast<pack::MatmulHeadsOp>(op))
    return heads.getQueries();
  return cast<pack::QuantizeOp>(op).getInto();
}

class Chooser {
public:
  Chooser(ModuleOp module, bool streams) : streams(streams) {
    SymbolTable symbols(module);
    for (auto dispatch : module.getOps<plan::DispatchOp>()) {
      auto kernel = symbols.lookup<plan::KernelOp>(dispatch.getKernel());
      list.push_back({dispatch, kernel ? opOf(kernel) : dispatch.getOperation()});
    }
    forms.resize(list.size());
  }

  std::vector<OneRowForm> run() {
    for (size_t i = 0; i < list.size(); ++i)
      if (activationsOf(list[i].op)) {
        OneRowShape shape = shapeOf(list[i]);
        forms[i] = {.hasKernel = true,
                    .rows = rowSetOf(list[i].op),
                    .units = shape.units,
                    .atOnce = shape.atOnce,
                    .threads = shape.threads,
                    .together = shape.together};
      }
    for (size_t i = 0; i < list.size(); ++i) {
      if (auto gate = dyn_cast<pack::ExpertGateOp>(list[i].op))
        useExperts(i, expert_row::shape(gate), 0);
      else if (auto sum = dyn_cast<pack::ExpertSumOp>(list[i].op))
        useExperts(i, expert_row::shape(sum), expert_row::scratchBytes(sum));
      else if (isa<pack::RouteOp>(list[i].op))
        forms[i] = {.hasKernel = true, .units = 1, .threads = kWarp};
    }
    for (size_t i = 0; i + 1 < list.size(); ++i)
      if (auto attention = dyn_cast<pack::AttentionOp>(list[i].op))
        fuse(i, attention);
    for (size_t i = 0; i < list.size(); ++i)
      if (auto quantize = dyn_cast<pack::QuantizeOp>(list[i].op))
        fuse(i, quantize);
    for (size_t i = 0; i < list.size(); ++i)
      if (auto route = dyn_cast<pack::RouteOp>(list[i].op))
        fuse(i, route);
    return std::move(forms);
  }

private:
  void useExperts(size_t number, const OneRowShape &shape, int64_t scratchBytes) {
    if (shape.units)
      forms[number] = {.hasKernel = true,
                       .units = shape.units,
                       .scratchBytes = scratchBytes,
                       .threads = shape.threads,
                       .together = shape.together};
  }

  OneRowShape shapeOf(const Dispatch &one) const {
    if (auto matmul = dyn_cast<pack::MatmulOp>(one.op))
      return cuda::shapeOf(matmul, streams);
    return {int64_t(one.dispatch.getUnits()), threadsOf(one.op)};
  }

  void fuse(size_t number, pack::QuantizeOp quantize) {
    auto type = cast<pack::ActType>(quantize.getInto().getType());
    if (isRouted(quantize))
      return leaveForExperts(number, quantize);
    if (quantize.getPerToken() != 1)
      return makeInSum(number, quantize);
    if (pack::ActLayout(type).stride > kMostRecordBytes)
      return;
    auto readers = readersOf(number, quantize);
    if (!readers || readers->empty())
      return;
    bool isLeft = leave(number, quantize);
    for (size_t reader : *readers) {
      forms[reader].prologue = isLeft ? -1 : int64_t(number);
      forms[reader].readsLeft = isLeft;
    }
    forms[number] = {.skipped = true, .rows = quantize.getRowSet()};
  }

  // Lets the dispatch that stores what `quantize` reads leave its record, if it can.
  bool leave(size_t number, pack::QuantizeOp quantize) {
    auto type = cast<pack::ActType>(quantize.getInto().getType());
    if (!streams || number == 0 || quantize.getNorm() || quantize.getIndices() ||
        type.getKind() != pack::ActKind::Block32 || type.getWidth() % 32 != 0 ||
        type.getWidth() < kLeastLeft)
      return false;
    size_t before = number - 1;
    if (isa<pack::MergeOp>(list[before].op) && forms[before].skipped && before)
      --before;
    auto matmul = dyn_cast<pack::MatmulOp>(list[before].op);
    bool can = matmul && canLeaveRecord(matmul);
    OneRowForm &form = forms[before];
    if (!form.hasKernel || !can || rowSetOf(list[before].op) != quantize.getRowSet())
      return false;
    auto record = list[number].range(quantize.getInto());
    auto stored = list[before].range(matmul.getInto());
    if (!record || !stored || stored != list[number].range(quantize.getInput()) ||
        reads(before, *record) || (form.prologue >= 0 && reads(form.prologue, *record)))
      return false;
    form.leaves = int64_t(number);
    form.recordOffset = record->begin - stored->begin;
    form.units /= 2;
    return true;
  }

  // Lets the products of experts make the choice themselves, if nothing else reads it.
  void fuse(size_t number, pack::RouteOp route) {
    auto table = list[number].range(route.getInto());
    auto all = list[number].range(route.getRatings());
    if (!table || !all)
      return;
    Range ratings = {all->begin, all->begin + 4 * route.getRoutes().getExperts()};
    bool unchanged = true;
    SmallVector<size_t> readers;
    for (size_t i = number + 1; i < list.size(); ++i) {
      Touch touch = touchOf(list[i], *table, route.getRoutes());
      if (touch == Touch::Reads && !(isa<pack::QuantizeOp>(list[i].op) && forms[i].skipped)) {
        bool can = isa<pack::ExpertGateOp, pack::ExpertSumOp>(list[i].op) && unchanged &&
                   forms[i].hasKernel && forms[i].prologue < 0;
        if (!can)
          return;
        readers.push_back(i);
      }
      if (touch == Touch::Ends)
        break;
      unchanged &= !writes(i, ratings);
    }
    for (size_t reader : readers)
      forms[reader].prologue = int64_t(number);
    forms[number] = {.skipped = true};
    if (streams && readers.size() == 2 && !route.getBias())
      chooseEarly(readers[0], readers[1]);
  }

  // Where nothing is launched between gate and sum: the ratings are there when the gate's
  // inputs are, and the gate leaves them alone.
  void chooseEarly(size_t gate, size_t sum) {
    if (!isa<pack::ExpertGateOp>(list[gate].op) || !isa<pack::ExpertSumOp>(list[sum].op))
      return;
    for (size_t i = gate + 1; i < sum; ++i)
      if (!forms[i].skipped)
        return;
    forms[gate].launchesLate = forms[sum].choosesEarly = true;
  }

  // Whether a dispatch may write where `range` is, in a step of one row.
  bool writes(size_t number, const Range &range) const {
    const Dispatch &one = list[number];
    if (auto quantize = dyn_cast<pack::QuantizeOp>(one.op); quantize && forms[number].skipped)
      return false;
    if (auto gate = dyn_cast<pack::ExpertGateOp>(one.op)) {
      auto stored = storedBy(number, gate);
      return !stored || stored->overlaps(range);
    }
    for (unsigned i = 0; i < one.bindings(); ++i) {
      auto touched = one.range(i);
      if (touched && touched->overlaps(range))
        return true;
    }
    return false;
  }

  // What a gate of experts stores in a step of one row.
  std::optional<Range> storedBy(size_t number, pack::ExpertGateOp gate) const {
    auto all = list[number].range(gate.getInto());
    if (!all)
      return std::nullopt;
    int64_t pairs = cast<pack::RoutesType>(gate.getRoutes().getType()).getChosen();
    return Range{all->begin, all->begin + 4 * pairs * Block::widthOf(gate.getInto())};
  }

  // Lets the sum of experts' products make the record of its pair, if that is of what the
  // gate before it stores.
  void makeInSum(size_t number, pack::QuantizeOp quantize) {
    if (!number || number + 1 == list.size() || quantize.getNorm() || quantize.getIndices())
      return;
    auto gate = dyn_cast<pack::ExpertGateOp>(list[number - 1].op);
    auto sum = dyn_cast<pack::ExpertSumOp>(list[number + 1].op);
    if (!gate || !sum || !forms[number + 1].hasKernel)
      return;
    auto stored = storedBy(number - 1, gate);
    auto input = list[number].range(quantize.getInput());
    auto record = list[number].range(quantize.getInto());
    auto type = cast<pack::ActType>(quantize.getInto().getType());
    auto into = list[number + 1].range(sum.getInto());
    if (!stored || !input || !record || !into || stored->begin != input->begin ||
        list[number + 1].range(sum.getAct()) != record || into->overlaps(*stored) ||
        Block::widthOf(gate.getInto()) != type.getWidth())
      return;
    for (size_t i = number + 2; i < list.size(); ++i) {
      Touch touch = touchOf(list[i], *record, type);
      if (touch == Touch::Reads)
        return;
      if (touch == Touch::Ends)
        break;
    }
    forms[number + 1].makes = int64_t(number);
    forms[number + 1].inputOffset = input->begin - record->begin;
    forms[number] = {.skipped = true};
  }

  // Lets the ratings of experts leave the record that these read, which all pairs of a row
  // share, if the two are of one row, normalized alike.
  void leaveForExperts(size_t number, pack::QuantizeOp quantize) {
    if (number < 2 || !isa<pack::RouteOp>(list[number - 1].op))
      return;
    OneRowForm &form = forms[number - 2];
    auto matmul = dyn_cast<pack::MatmulOp>(list[number - 2].op);
    if (!matmul || !float_row::shape(matmul).units || form.prologue < 0 ||
        rowSetOf(matmul) != quantize.getRowSet())
      return;
    const Dispatch &made = list[form.prologue], &one = list[number], &routes = list[number - 1];
    auto before = cast<pack::QuantizeOp>(made.op);
    Value norm = quantize.getNorm(), normBefore = before.getNorm();
    if (before.getIndices() ||
        made.binding(before.getInput()) != one.binding(quantize.getInput()) ||
        !norm != !normBefore || (norm && made.binding(normBefore) != one.binding(norm)) ||
        before.getEps() != quantize.getEps())
      return;
    auto all = one.range(quantize.getInto()), stored = list[number - 2].range(matmul.getInto());
    auto input = one.range(quantize.getInput());
    auto table = routes.range(cast<pack::RouteOp>(routes.op).getInto());
    if (!all || !stored || !input || !table || table->overlaps(*input) || stored->overlaps(*input))
      return;
    auto type = cast<pack::ActType>(quantize.getInto().getType());
    Range record = {all->begin, all->begin + pack::ActLayout(type).stride};
    if (reads(number - 2, record) || reads(form.prologue, record) || reads(number - 1, record))
      return;
    SmallVector<size_t> readers;
    for (size_t i = number + 1; i < list.size(); ++i) {
      Touch touch = touchOf(list[i], *all, type);
      if (touch == Touch::Ends)
        break;
      if (touch == Touch::None)
        continue;
      auto gate = dyn_cast<pack::ExpertGateOp>(list[i].op);
      if (!gate || !forms[i].hasKernel || list[i].range(gate.getAct()) != all)
        return;
      readers.push_back(i);
    }
    for (size_t reader : readers)
      forms[reader].readsLeft = true;
    form.leaves = int64_t(number);
    form.recordOffset = record.begin - stored->begin;
    form.units += 1;
    forms[number] = {.skipped = true, .rows = quantize.getRowSet()};
  }

  // Whether something that a dispatch reads or writes lies where `range` does. Records
  // that are made in shared memory don't.
  bool reads(size_t number, const Range &range) const {
    auto quantize = dyn_cast<pack::QuantizeOp>(list[number].op);
    Value made;
    if (quantize && forms[number].skipped)
      made = quantize.getInto();
    else if (forms[number].prologue >= 0)
      made = activationsOf(list[number].op);
    for (unsigned i = 0; i < list[number].bindings(); ++i) {
      auto one = list[number].range(i);
      if (one && one->overlaps(range) && list[number].op->getBlock()->getArgument(i) != made)
        return true;
    }
    return false;
  }

  void fuse(size_t number, pack::AttentionOp attention) {
    auto merge = dyn_cast<pack::MergeOp>(list[number + 1].op);
    if (!merge || !attention_row::takes(attention) || !mergesOf(number, attention, merge))
      return;
    forms[number] = {.hasKernel = true,
                     .units = attention_row::units(attention),
                     .extent = plan::Extent::Tiles,
                     .scratchBytes = attention_row::scratchBytes(attention),
                     .threads = threadsOf(attention),
                     .together = attention_row::kTogether};
    forms[number + 1] = {.skipped = true};
    auto heads = number ? dyn_cast<pack::MatmulHeadsOp>(list[number - 1].op) : nullptr;
    if (!heads || !isPaired(heads) || !isReadyFor(heads, number, attention))
      return;
    forms[number].prologue = int64_t(number) - 1;
    OneRowForm &before = forms[number - 1];
    before.isRaw = true;
    OneRowShape shape = rawHeadsShape(heads, streams);
    before.units = shape.units;
    before.threads = shape.threads;
    before.together = shape.together;
    before.scratchBytes = rawHeadsScratch(heads);
  }

  // Whether attention number `number` alone reads the queries of the matmul_heads
  // before it, and has their keys and values.
  bool isReadyFor(pack::MatmulHeadsOp heads, size_t number, pack::AttentionOp attention) const {
    const Dispatch &first = list[number - 1], &second = list[number];
    auto cache = cast<pack::KvType>(attention.getCache().getType());
    if (heads.getWeights().size() != 3 || !heads.getQueries() ||
        first.binding(heads.getQueries()) != second.binding(attention.getQueries()) ||
        first.binding(heads.getCache()) != second.binding(attention.getCache()) ||
        heads.getCache().getType() != cache || int64_t(heads.getHeadDim()) != cache.getDim() ||
        cache.getDim() != cache.getValueDim())
      return false;
    auto queries = second.range(attention.getQueries());
    if (!queries)
      return false;
    // Until something else takes their place.
    for (size_t i = number + 1; i < list.size(); ++i) {
      const Dispatch &one = list[i];
      for (unsigned argument = 0; argument < one.bindings(); ++argument) {
        auto range = one.range(argument);
        if (!range || !range->overlaps(*queries))
          continue;
        if (*range != *queries)
          return true;
        auto later = dyn_cast<pack::MatmulHeadsOp>(one.op);
        return later && later.getQueries() == later->getBlock()->getArgument(argument);
      }
    }
    return true;
  }

  // Whether the merge that follows attention number `number` is of its spans.
  bool mergesOf(size_t number, pack::AttentionOp attention, pack::MergeOp merge) const {
    const Dispatch &first = list[number], &second = list[number + 1];
    auto same = [&](Value one, Value other) {
      return !one == !other && (!one || first.binding(one) == second.binding(other));
    };
    return attention.getPartials() && same(attention.getPartials(), merge.getPartials()) &&
           same(attention.getInto(), merge.getInto()) &&
           same(attention.getSinks(), merge.getSinks()) &&
           attention.getHeads() == merge.getHeads() && attention.getWindow() == merge.getWindow();
  }

  // Dispatches that read what number `number` leaves; none if one of them can't
  // do its work.
  std::optional<SmallVector<size_t>> readersOf(size_t number, pack::QuantizeOp quantize) {
    auto record = list[number].range(quantize.getInto());
    auto input = list[number].range(quantize.getInput());
    if (!record || !input)
      return std::nullopt;
    SmallVector<size_t> readers;
    // Whether all dispatches since leave the input as it is, and whether that is known.
    bool unchanged = true;
    for (size_t i = number + 1; i < list.size(); ++i) {
      const Dispatch &one = list[i];
      if (isa<pack::MatmulOp, pack::MatmulHeadsOp, pack::QuantizeOp>(one.op)) {
        auto written = one.range(destinationOf(one.op));
        unchanged &= !written || !written->overlaps(*input);
      } else {
        unchanged = false;
      }
      Touch touch = touchOf(one, *record, quantize.getInto().getType());
      if (touch == Touch::Ends)
        break;
      if (touch == Touch::None)
        continue;
      Value act = activationsOf(one.op);
      if (!act || !unchanged || one.range(act) != record ||
          rowSetOf(one.op) != quantize.getRowSet())
        return std::nullopt;
      readers.push_back(i);
    }
    return readers;
  }

  enum class Touch { None, Reads, Ends };

  // What a later dispatch does with the record: what lies in its place, but is
  // something else or is written, is not the record any more.
  Touch touchOf(const Dispatch &one, const Range &record, Type type) {
    // A kernel that is not there can't be launched.
    if (isa<plan::DispatchOp>(one.op))
      return Touch::None;
    auto arguments = one.op->getBlock()->getArguments();
    for (unsigned i = 0; i < one.bindings(); ++i) {
      auto range = one.range(i);
      if (!range || !range->overlaps(record))
        continue;
      auto quantize = dyn_cast<pack::QuantizeOp>(one.op);
      bool isNew = quantize && quantize.getInto() == arguments[i];
      return *range == record && arguments[i].getType() == type && !isNew ? Touch::Reads
                                                                          : Touch::Ends;
    }
    return Touch::None;
  }

  bool streams;
  std::vector<Dispatch> list;
  std::vector<OneRowForm> forms;
};

} // namespace

Operation *opOf(plan::KernelOp kernel) { return &kernel.getBody().front().front(); }

std::vector<OneRowForm> chooseOneRowForms(ModuleOp module, bool streams) {
  return Chooser(module, streams).run();
}

} // namespace izhc::cuda
