// Gives the values of a `pack` function their places: offsets in the sections
// of weights and constants, numbers of states, buffers of the arena.

#pragma once

#include "dialects/pack/Pack.h"
#include "dialects/plan/Plan.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

namespace izhc {

// What a kernel's argument is bound to.
struct Place {
  plan::Space space = plan::Space::Arena;
  int64_t offset = 0; // or the number of the state or input
  int64_t size = 0;
  mlir::Type type; // of the kernel's argument
};

class Placement {
public:
  // `maxOutputs`: rows of logits of one step.
  explicit Placement(int64_t maxOutputs) : maxOutputs(maxOutputs) {}

  // The place of a value. Weights, vectors, states and inputs are placed when
  // they are first asked for. Fails with a diagnostic at `user` if the value
  // has no place: an op made it that has no kernel, or it comes from outside.
  llvm::FailureOr<Place> find(mlir::Value value, mlir::Operation *user);
  // A new buffer for rows or activations, as many as `rows` may have, times
  // `perToken`; or for a table of routes.
  Place addBuffer(mlir::Type type, pack::RowSet rows, int64_t perToken = 1);
  Place addBuffer(mlir::Type type, int64_t rows);
  void set(mlir::Value value, const Place &place) { places[value] = place; }

  // Bytes of encoded weights of one 16-row tile of one matrix.
  static int64_t tileBytes(pack::WeightType type);

  // Writes the plan.weight, plan.constant and plan.state ops.
  void writeTables(mlir::OpBuilder &builder) const;

  int64_t arenaBytes() const { return arenaEnd; }
  int64_t weightBytes() const { return weightEnd; }
  int64_t constantBytes() const { return constantEnd; }

private:
  Place placeWeight(pack::PackWeightOp op);
  Place placeVector(pack::PackVectorOp op);
  Place placeState(pack::PackStateOp op);

  int64_t maxOutputs;
  int64_t arenaEnd = 0, weightEnd = 0, constantEnd = 0;
  llvm::DenseMap<mlir::Value, Place> places;
  // By the tensor's name and view, so that two ops that name one matrix share it.
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Attribute>, Place> weightPlaces;
  llvm::StringMap<int64_t> stateNumbers;
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Attribute>, Place> vectorPlaces;
  llvm::SmallVector<std::pair<pack::PackWeightOp, Place>> weights;
  llvm::SmallVector<std::pair<pack::PackVectorOp, Place>> vectors;
  llvm::SmallVector<pack::PackStateOp> states;
};

} // namespace izhc
