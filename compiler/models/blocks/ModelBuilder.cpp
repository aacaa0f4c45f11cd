// The ops that name tensors, and the bookkeeping of errors and used tensors.

#include "compiler/models/blocks/ModelBuilder.h"
#include "compiler/support/Numbers.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

namespace izhc {

using mlir::Value;

ModelBuilder::ModelBuilder(const ModelSource &source, mlir::MLIRContext &context, int64_t tokens)
    : from(source), wantedTokens(tokens), builder(&context),
      location(mlir::UnknownLoc::get(&context)), error(llvm::Error::success()) {
  // Marks the success value as looked at.
  (void)!error;
  context.loadDialect<lm::LmDialect, mlir::func::FuncDialect>();
  module = mlir::ModuleOp::create(location);
  builder.setInsertionPointToEnd(module->getBody());
  auto function =
      mlir::func::FuncOp::create(builder, location, "step", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
}

ModelBuilder::~ModelBuilder() { llvm::consumeError(std::move(error)); }

void ModelBuilder::fail(llvm::Error next) {
  if (hasError) {
    llvm::consumeError(std::move(next));
    return;
  }
  hasError = true;
  error = std::move(next);
}

void ModelBuilder::describe(const llvm::Twine &place) {
  location = mlir::NameLoc::get(builder.getStringAttr(place));
}

double ModelBuilder::number(const std::string &key, double otherwise, double low, double high) {
  double value = unwrap<double>(from.getFloatOr(key, otherwise), otherwise);
  if (value >= low && value <= high)
    return value;
  fail(makeError("{0} is {1}, expected {2} to {3}", from.keyPlace(key), shortText(value),
                 shortText(low), shortText(high)));
  return otherwise;
}

std::vector<int64_t> ModelBuilder::layerNumbers(const std::string &key, int64_t layers,
                                                int64_t otherwise) {
  std::vector<int64_t> same(layers, otherwise);
  if (!from.hasKey(key))
    return same;
  if (!from.isArray(key)) {
    same.assign(layers, unwrap<std::optional<int64_t>>(from.getInt(key), otherwise).value());
    return same;
  }
  auto entries = unwrap<std::optional<std::vector<int64_t>>>(from.getIntArray(key), std::nullopt);
  if (entries && int64_t(entries->size()) == layers)
    return *entries;
  fail(makeError("{0} has {1} entries for {2} layers", from.keyPlace(key),
                 entries ? entries->size() : 0, layers));
  return same;
}

bool ModelBuilder::hasTensor(const llvm::Twine &name) const {
  return from.findTensor(name.str()) != nullptr;
}

void ModelBuilder::markUsed(const llvm::Twine &name) { used.insert(name.str()); }

// `shape` is in the order of the IR: rows, then columns. A vector is one of
// all values, whatever the shape.
Value ModelBuilder::named(const std::string &name, llvm::ArrayRef<int64_t> shape,
                          const RowView *view, bool isVector) {
  std::string key = name;
  if (view)
    key += llvm::formatv(" {0} {1} {2}", view->first, view->run, view->stride).str();
  auto [place, isNew] = values.try_emplace(key);
  if (!isNew)
    return place->second;
  llvm::SmallVector<int64_t> sizes(llvm::reverse(shape));
  if (view)
    sizes.back() = view->total;
  llvm::StringRef format = "f32";
  if (auto tensor = from.requireTensor(name, sizes)) {
    format = (*tensor)->format->name;
    // Vectors become constants; a quantized one would be no more than a typo.
    if (isVector && (*tensor)->format->kind == ElementKind::Quantized)
      fail(makeError(
          "{0}: tensor {1} is a vector in the format {2}; vectors must be in a float format",
          from.fileName(), quote(from.tensorName(name)), format));
  } else {
    fail(tensor.takeError());
  }
  used.insert(name);
  auto type = mlir::RankedTensorType::get(shape, builder.getF32Type());
  if (isVector)
    type = type.clone({type.getNumElements()});
  auto where = mlir::NameLoc::get(builder.getStringAttr(name));
  mlir::DenseI64ArrayAttr rows;
  if (view)
    rows = builder.getDenseI64ArrayAttr({view->first, view->run, view->stride});
  place->second = lm::WeightOp::create(builder, where, type, name, format, rows);
  return place->second;
}

Value ModelBuilder::matrix(const llvm::Twine &name, int64_t rows, int64_t cols) {
  return named(name.str(), {rows, cols});
}

Value ModelBuilder::matrix(const llvm::Twine &name, int64_t rows, int64_t cols,
                           const RowView &view) {
  return named(name.str(), {rows, cols}, &view);
}

Value ModelBuilder::vector(const llvm::Twine &name, int64_t count) {
  return named(name.str(), {count}, nullptr, /*isVector=*/true);
}

Value ModelBuilder::stack(const llvm::Twine &name, int64_t count, int64_t rows, int64_t cols) {
  return named(name.str(), {count, rows, cols});
}

Value ModelBuilder::vectors(const llvm::Twine &name, int64_t rows, int64_t cols) {
  return named(name.str(), {rows, cols}, nullptr, /*isVector=*/true);
}

std::vector<float> ModelBuilder::readVector(const llvm::Twine &name, int64_t count) {
  std::vector<float> values(count);
  used.insert(name.str());
  auto tensor = from.requireTensor(name.str(), {count});
  if (!tensor) {
    fail(tensor.takeError());
    return values;
  }
  const FormatSpec &format = *(*tensor)->format;
  if (format.kind == ElementKind::Quantized) {
    fail(makeError(
        "{0}: tensor {1} is a vector in the format {2}; vectors must be in a float format",
        from.fileName(), quote(from.tensorName(name.str())), format.name));
    return values;
  }
  // A vector is one row.
  std::vector<uint8_t> bytes((*tensor)->rowBytes());
  (*tensor)->readRows(0, 1, bytes.data());
  decodeBlocks(format, bytes.data(), count, values.data());
  return values;
}

Value ModelBuilder::input(lm::InputKind kind) {
  auto type = mlir::RankedTensorType::get({mlir::ShapedType::kDynamic}, builder.getI32Type());
  return create<lm::InputOp>(type, kind);
}

Value ModelBuilder::constant(llvm::StringRef name, llvm::ArrayRef<float> numbers) {
  auto type = mlir::RankedTensorType::get({int64_t(numbers.size())}, builder.getF32Type());
  return create<lm::ConstantOp>(type, name, numbers);
}

Value ModelBuilder::state(const llvm::Twine &name, mlir::Type type) {
  return create<lm::StateOp>(type, builder.getStringAttr(name));
}

Value ModelBuilder::state(const llvm::Twine &name, int64_t heads, int64_t dim) {
  auto type = lm::KvCacheType::get(context(), heads, dim);
  return create<lm::StateOp>(type, builder.getStringAttr(name));
}

// A bias may be left out, but then in all layers: one that only some have is
// lost, not another kind of model.
bool ModelBuilder::hasBias(llvm::StringRef name, Bias bias) {
  if (bias != Bias::Optional)
    return bias == Bias::Required;
  bool has = hasTensor(name + ".bias");
  llvm::StringRef kind = name;
  if (kind.consume_front("blk."))
    kind = kind.split('.').second;
  if (biases.try_emplace(kind, has).first->second != has)
    fail(makeError("{0}: the tensor {1} is {2}, unlike that of other layers; is the file "
                   "complete?",
                   from.fileName(), quote(from.tensorName((name + ".bias").str())),
                   has ? "there" : "missing"));
  return has;
}

Value ModelBuilder::linear(Value input, const llvm::Twine &name, int64_t rows, Bias bias) {
  Value weight = matrix(name + ".weight", rows, lm::widthOf(input));
  llvm::SmallVector<Value, 1> biases;
  if (hasBias(name.str(), bias))
    biases.push_back(vector(name + ".bias", rows));
  auto where = mlir::NameLoc::get(builder.getStringAttr(name));
  auto op = lm::LinearOp::create(builder, where, mlir::TypeRange{lm::rowsType(context(), rows)},
                                 input, mlir::ValueRange{weight}, mlir::ValueRange(biases));
  return op.getResult(0);
}

Value ModelBuilder::linear(Value input, const llvm::Twine &name, int64_t rows,
                           const RowView &view) {
  Value weight = matrix(name + ".weight", rows, lm::widthOf(input), view);
  auto where = mlir::NameLoc::get(builder.getStringAttr(name));
  auto op = lm::LinearOp::create(builder, where, mlir::TypeRange{lm::rowsType(context(), rows)},
                                 input, mlir::ValueRange{weight}, mlir::ValueRange());
  return op.getResult(0);
}

Value ModelBuilder::rmsNorm(Value input, const llvm::Twine &name, int64_t over, float eps) {
  Value scale = vector(name + ".weight", over);
  return create<lm::RmsNormOp>(input.getType(), input, scale, uint64_t(over), llvm::APFloat(eps));
}

Value ModelBuilder::add(Value lhs, Value rhs) { return create<lm::AddOp>(lhs.getType(), lhs, rhs); }

Value ModelBuilder::mul(Value lhs, Value rhs) { return create<lm::MulOp>(lhs.getType(), lhs, rhs); }

Value ModelBuilder::scale(Value input, float factor) {
  if (factor == 1.0f)
    return input;
  return create<lm::ScaleOp>(input.getType(), input, llvm::APFloat(factor));
}

llvm::Error ModelBuilder::checkAllUsed() const {
  for (const TensorInfo &tensor : from.tensors())
    if (!used.contains(tensor.name))
      return makeError("{0}: tensor {1} has no place in this architecture; without it the model "
                       "would compute something else, so it is not compiled",
                       from.fileName(), quote(from.tensorName(tensor.name)));
  return llvm::Error::success();
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> ModelBuilder::finish(Value logits) {
  if (!hasError)
    fail(checkAllUsed());
  if (error) {
    hasError = false;
    return std::move(error);
  }
  auto function = llvm::cast<mlir::func::FuncOp>(module->getBody()->front());
  function.setFunctionType(builder.getFunctionType({}, {logits.getType()}));
  mlir::func::ReturnOp::create(builder, location, logits);
  if (mlir::failed(mlir::verify(*module)))
    return makeError("{0}: the model can't be expressed, see the message above", from.fileName());
  return std::move(module);
}

} // namespace izhc
