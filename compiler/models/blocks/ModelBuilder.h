// Builds the `lm` ops of one step. Tensors are checked against the source as
// they are named.
//
// Errors are sticky: the first one is kept, later calls still return values of
// the type asked for (the module is thrown away), so that architectures read
// like the model and not like error handling. Loops over layers should stop
// when failed() says so.

#pragma once

#include "compiler/import/ModelSource.h"
#include "compiler/support/Error.h"
#include "dialects/lm/Lm.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace izhc {

enum class Bias { None, Optional, Required };

// A part of the rows of a tensor of `total` rows: row r of the part is row
// first + (r / run) * stride + r % run.
struct RowView {
  int64_t first, run, stride, total;
  // `count` rows that lie together.
  static RowView together(int64_t first, int64_t count, int64_t total) {
    return {first, count, count, total};
  }
};

class ModelBuilder {
public:
  // `tokens` as in buildModel.
  ModelBuilder(const ModelSource &source, mlir::MLIRContext &context, int64_t tokens = 0);
  ~ModelBuilder();

  const ModelSource &source() const { return from; }
  int64_t tokens() const { return wantedTokens; }
  bool failed() const { return hasError; }
  // Keeps `error` unless there is one already.
  void fail(llvm::Error error);
  template <typename T> T unwrap(llvm::Expected<T> value, T otherwise) {
    if (value)
      return std::move(*value);
    fail(value.takeError());
    return otherwise;
  }

  // The number at `key`, or `otherwise` without it; one outside of low..high is
  // an error.
  double number(const std::string &key, double otherwise, double low, double high);
  // One number a layer: of the array at `key`, or the number there, or `otherwise`.
  std::vector<int64_t> layerNumbers(const std::string &key, int64_t layers, int64_t otherwise);
  bool hasTensor(const llvm::Twine &name) const;
  // Counts a tensor as used though no op names it.
  void markUsed(const llvm::Twine &name);
  // The tensor `name` with exactly this shape. One op for each name.
  mlir::Value matrix(const llvm::Twine &name, int64_t rows, int64_t cols);
  mlir::Value vector(const llvm::Twine &name, int64_t count);
  // `rows` rows of a larger matrix.
  mlir::Value matrix(const llvm::Twine &name, int64_t rows, int64_t cols, const RowView &view);
  // The values of a vector, for what the compiler computes from them.
  std::vector<float> readVector(const llvm::Twine &name, int64_t count);
  // `count` matrices of that shape one after the other.
  mlir::Value stack(const llvm::Twine &name, int64_t count, int64_t rows, int64_t cols);
  // A matrix in the file, as one vector of all its values.
  mlir::Value vectors(const llvm::Twine &name, int64_t rows, int64_t cols);

  mlir::Value input(lm::InputKind kind);
  mlir::Value constant(llvm::StringRef name, llvm::ArrayRef<float> values);
  mlir::Value state(const llvm::Twine &name, int64_t heads, int64_t dim);
  mlir::Value state(const llvm::Twine &name, mlir::Type type);

  // Uses the tensors NAME.weight and, as `bias` says, NAME.bias.
  mlir::Value linear(mlir::Value input, const llvm::Twine &name, int64_t rows,
                     Bias bias = Bias::Optional);
  // The product with some rows of NAME.weight; without bias.
  mlir::Value linear(mlir::Value input, const llvm::Twine &name, int64_t rows, const RowView &view);
  // Uses the tensor NAME.weight of `over` values.
  mlir::Value rmsNorm(mlir::Value input, const llvm::Twine &name, int64_t over, float eps);
  mlir::Value add(mlir::Value lhs, mlir::Value rhs);
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs);
  // A factor of 1 adds no op.
  mlir::Value scale(mlir::Value input, float factor);

  // For ops that have no function here.
  template <typename Op, typename... Args> Op create(Args &&...args) {
    return Op::create(builder, location, std::forward<Args>(args)...);
  }
  mlir::MLIRContext *context() { return builder.getContext(); }
  // What diagnostics about the ops that follow call them.
  void describe(const llvm::Twine &place);

  // Closes the function with `logits` as its result. Fails with the first
  // error met, or if the file has tensors that nothing used.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> finish(mlir::Value logits);

private:
  mlir::Value named(const std::string &name, llvm::ArrayRef<int64_t> shape,
                    const RowView *view = nullptr, bool isVector = false);
  bool hasBias(llvm::StringRef name, Bias bias);
  llvm::Error checkAllUsed() const;

  const ModelSource &from;
  int64_t wantedTokens;
  mlir::OpBuilder builder;
  mlir::Location location;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  llvm::StringMap<mlir::Value> values;
  llvm::StringSet<> used;
  // Whether a product has a bias, by its name without the layer.
  llvm::StringMap<bool> biases;
  llvm::Error error;
  bool hasError = false;
};

} // namespace izhc
