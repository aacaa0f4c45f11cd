// pack.route, pack.expert_gate and pack.expert_sum of every target against
// sums in double precision, and against themselves with rows and units divided
// otherwise.

#include "dialects/pack/RoutesLayout.h"
#include "test/conformance/operands.h"
#include <cmath>
#include <numeric>

using namespace izhc;
using namespace izhc::conformance;

namespace {

constexpr double kTolerance = 1e-5;

struct Choice {
  int expert;
  double weight;
};
using Choices = std::vector<std::vector<Choice>>; // of each row, in order

enum Score { Softmax, Sigmoid, SoftmaxChosen };

struct Rule {
  int experts, chosen;
  Score score = Softmax;
  bool normalize = false, biased = false;
  float scale = 1;
  int groups = 1, groupChosen = 1, groupBest = 1;

  std::string type() const {
    return "!pack.routes<" + number(experts) + " x " + number(chosen) + ">";
  }
  pack::RoutesLayout layout() const {
    return pack::RoutesLayout(pack::RoutesType::get(&context(), experts, chosen));
  }
};

// The choice for one row, from the documentation of lm.route.
std::vector<Choice> choose(const Rule &rule, const float *ratings, const float *bias) {
  int n = rule.experts;
  std::vector<double> p(ratings, ratings + n);
  if (rule.score == Softmax) {
    double all = 0;
    for (double &x : p)
      all += x = std::exp(x);
    for (double &x : p)
      x /= all;
  } else if (rule.score == Sigmoid) {
    for (double &x : p)
      x = 1 / (1 + std::exp(-x));
  }
  std::vector<double> s = p;
  for (int i = 0; i < n && rule.biased; ++i)
    s[i] += bias[i];
  std::vector<bool> open(n, rule.groups == 1);
  if (rule.groups > 1) {
    int size = n / rule.groups;
    std::vector<std::pair<double, int>> worth;
    for (int g = 0; g < rule.groups; ++g) {
      std::vector<double> own(s.begin() + g * size, s.begin() + (g + 1) * size);
      std::sort(own.rbegin(), own.rend());
      worth.push_back({-std::accumulate(own.begin(), own.begin() + rule.groupBest, 0.0), g});
    }
    std::sort(worth.begin(), worth.end());
    for (int i = 0; i < rule.groupChosen; ++i)
      std::fill_n(open.begin() + worth[i].second * size, size, true);
  }
  std::vector<Choice> choices;
  for (int j = 0; j < rule.chosen; ++j) {
    int best = -1;
    for (int i = 0; i < n; ++i)
      if (open[i] && (best < 0 || s[i] > s[best]))
        best = i;
    open[best] = false;
    choices.push_back({best, p[best]});
  }
  double all = 0;
  for (Choice &choice : choices)
    all += rule.score == SoftmaxChosen ? choice.weight = std::exp(choice.weight) : choice.weight;
  for (Choice &choice : choices)
    choice.weight *= rule.scale / (rule.normalize || rule.score == SoftmaxChosen ? all : 1);
  return choices;
}

// The table of routes that the choices make.
Buffer *makeTable(const Rule &rule, const Choices &choices) {
  pack::RoutesLayout layout = rule.layout();
  auto *table = new Buffer(layout.bytes(choices.size()), 0xEE);
  int active = 0, pair = 0;
  auto put = [&](int64_t at, auto value) { std::memcpy(table->data() + at, &value, 4); };
  for (size_t row = 0; row < choices.size(); ++row)
    for (int i = 0; i < rule.chosen; ++i) {
      int64_t at = layout.pairs() + layout.kPairBytes * (row * rule.chosen + i);
      put(at + layout.kChoice, int32_t(choices[row][i].expert));
      put(at + layout.kChoiceWeight, float(choices[row][i].weight));
    }
  for (int expert = 0; expert < rule.experts; ++expert) {
    int first = pair;
    for (size_t row = 0; row < choices.size(); ++row)
      for (const Choice &choice : choices[row])
        if (choice.expert == expert) {
          put(layout.pairs() + layout.kPairBytes * pair, int32_t(row));
          put(layout.pairs() + layout.kPairBytes * pair++ + layout.kWeight, float(choice.weight));
        }
    if (pair == first)
      continue;
    int64_t entry = layout.kExperts + layout.kExpertBytes * active++;
    put(entry, int32_t(expert));
    put(entry + layout.kFirst, int32_t(first));
    put(entry + layout.kCount, int32_t(pair - first));
  }
  put(0, int32_t(active));
  return table;
}

struct Pair {
  int row, expert;
  float weight;
};

// The pairs of a table, checked for order and completeness.
std::vector<Pair> readTable(const Rule &rule, Buffer &table, int rows) {
  pack::RoutesLayout layout = rule.layout();
  auto word = [&](int64_t at) { return *reinterpret_cast<int32_t *>(table.data() + at); };
  std::vector<Pair> pairs;
  int last = -1;
  for (int i = 0; i < word(0); ++i) {
    int64_t entry = layout.kExperts + layout.kExpertBytes * i;
    EXPECT_GT(word(entry), last) << "experts don't ascend";
    EXPECT_EQ(word(entry + layout.kFirst), int(pairs.size()));
    EXPECT_GT(word(entry + layout.kCount), 0);
    last = word(entry);
    for (int j = 0; j < word(entry + layout.kCount); ++j) {
      int64_t at = layout.pairs() + layout.kPairBytes * int64_t(pairs.size());
      float weight;
      std::memcpy(&weight, table.data() + at + layout.kWeight, 4);
      EXPECT_TRUE(j == 0 || word(at) > pairs.back().row) << "rows don't ascend";
      pairs.push_back({word(at), last, weight});
    }
  }
  EXPECT_EQ(int(pairs.size()), rows * rule.chosen);
  return pairs;
}

class RouteTest : public TargetTest {
protected:
  void check(const Rule &rule, int count = 9);
};

void RouteTest::check(const Rule &rule, int count) {
  std::string bias = rule.biased ? ", %b: memref<" + number(rule.experts) + "xf32>" : "";
  std::string text =
      fill("plan.kernel @k(%l: $M$B, %r: $T) {\n"
           "  pack.route %l $V $S into %r {$N groups = $G : i64, group_chosen = $C : "
           "i64, group_best = $H : i64, "
           "scale = $F : f32} : ($M$P, $T) -> ()\n}\n",
           {{"M", "memref<?x" + number(rule.experts) + "xf32>"},
            {"B", bias},
            {"T", rule.type()},
            {"V", rule.biased ? "bias %b" : ""},
            {"S", rule.score == Softmax   ? "softmax"
                  : rule.score == Sigmoid ? "sigmoid"
                                          : "softmax_chosen"},
            {"N", rule.normalize ? "normalize," : ""},
            {"G", number(rule.groups)},
            {"C", number(rule.groupChosen)},
            {"H", number(rule.groupBest)},
            {"F", std::to_string(rule.scale)},
            {"P", rule.biased ? ", memref<" + number(rule.experts) + "xf32>" : ""}});
  SCOPED_TRACE(text);
  Kernel kernel(target(), text);
  ASSERT_TRUE(bool(kernel));
  Random random(rule.experts + 10 * rule.chosen);
  Array<float> ratings(random.floats(count * rule.experts, 3.0f));
  Array<float> biases(random.floats(rule.experts, 0.5f));
  auto run = [&](int first, int rows) {
    auto table = std::make_unique<Buffer>(rule.layout().bytes(rows), 0xEE);
    std::vector<void *> bindings = {&ratings[first * rule.experts]};
    if (rule.biased)
      bindings.push_back(biases.data());
    bindings.push_back(table->data());
    kernel.run(bindings, {rows}, 0, 1, /*all=*/true);
    return readTable(rule, *table, rows);
  };
  std::vector<Pair> all = run(0, count);
  for (int row = 0; row < count; row += count / 9) {
    std::vector<Pair> alone = run(row, 1);
    for (const Choice &choice : choose(rule, &ratings[row * rule.experts], &biases[0])) {
      auto same = [&](const Pair &pair) { return pair.expert == choice.expert; };
      auto found = std::find_if(all.begin(), all.end(),
                                [&](const Pair &pair) { return pair.row == row && same(pair); });
      ASSERT_NE(found, all.end()) << "row " << row << " didn't choose expert " << choice.expert;
      ASSERT_NEAR(found->weight, choice.weight, 1e-6 * std::abs(choice.weight)) << "row " << row;
      auto again = std::find_if(alone.begin(), alone.end(), same);
      ASSERT_TRUE(again != alone.end() && again->weight == found->weight)
          << "row " << row << " alone";
    }
  }
}

TEST_P(RouteTest, ChoosesByASoftmaxOfAll) {
  check({8, 2});
  check({128, 8, Softmax, true});
  check({5, 5, Softmax, true, false, 0.5f});
  check({16, 3, Softmax, true, true});
}

// So many pairs that those who list them have several turns.
TEST_P(RouteTest, ListsThePairsOfManyRows) { check({6, 5, Softmax, true}, 300); }

TEST_P(RouteTest, ChoosesBeforeTheSoftmax) { check({33, 4, SoftmaxChosen}); }

TEST_P(RouteTest, ChoosesBySigmoidsWithABias) {
  check({8, 2, Sigmoid, true, true, 2.5f});
  check({40, 6, Sigmoid, false, true});
  check({12, 1, Sigmoid});
}

TEST_P(RouteTest, ChoosesFromTheBestGroups) {
  check({64, 6, Sigmoid, true, true, 2.5f, 8, 3, 2});
  check({24, 2, Softmax, false, false, 16.0f, 4, 1, 1});
}

TEST_P(RouteTest, TakesTheFirstOfEqualsAndSurvivesNonsense) {
  Rule rule{20, 3, Softmax, true};
  Kernel kernel(target(), "plan.kernel @k(%l: memref<?x20xf32>, %r: !pack.routes<20 x 3>) {\n"
                          "  pack.route %l softmax into %r {normalize} : (memref<?x20xf32>, "
                          "!pack.routes<20 x 3>) -> ()\n}\n");
  ASSERT_TRUE(bool(kernel));
  Array<float> ratings(20);
  Buffer table(rule.layout().bytes(1));
  kernel.run({ratings.data(), table.data()}, {1}, 0, 1);
  std::vector<Pair> pairs = readTable(rule, table, 1);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(pairs[i].expert, i);
  for (float nonsense : {NAN, INFINITY, -INFINITY}) {
    std::fill_n(&ratings[0], 20, nonsense);
    kernel.run({ratings.data(), table.data()}, {1}, 0, 1);
    int32_t active = table.as<int32_t>()[0];
    ASSERT_TRUE(active >= 1 && active <= 3);
    for (int i = 0; i < active; ++i) {
      int32_t expert = table.as<int32_t>()[16 + 4 * i];
      ASSERT_TRUE(expert >= 0 && expert < 20);
    }
  }
}

// Stacks of random matrices, one Matrix an expert.
struct Stack {
  Stack(const FormatSpec &format, int experts, int64_t rows, int64_t cols, uint64_t seed)
      : rows(rows), bytes(PackedLayout(format).matrixBytes(rows, cols)), packed(experts * bytes) {
    for (int e = 0; e < experts; ++e) {
      matrices.push_back(std::make_unique<Matrix>(format, rows, cols, seed + e));
      std::memcpy(packed.data() + e * bytes, matrices[e]->packed.data(), bytes);
    }
  }
  std::string type() const {
    std::string one = matrices[0]->type();
    return one.substr(0, one.size() - 1) + ", count " + number(matrices.size()) + ">";
  }

  int64_t rows, bytes;
  Buffer packed;
  std::vector<std::unique_ptr<Matrix>> matrices;
};

Choices randomChoices(const Rule &rule, int rows) {
  Random random(rows);
  Choices choices(rows);
  for (auto &row : choices) {
    std::vector<float> ratings = random.floats(rule.experts, 3.0f);
    row = choose(rule, ratings.data(), nullptr);
  }
  return choices;
}

class ExpertsTest : public TargetTest {
protected:
  static constexpr int kRows = 19;
  Rule rule{6, 2, Softmax, true};

  void checkGate(const FormatSpec &format, int64_t rows, bool biased, bool limited);
  void checkSum(const FormatSpec &format, int64_t rows, bool biased, bool add);
};

// Records of pairs: those of the rows, as pack.quantize would place them.
Activations pairRecords(pack::ActType type, const std::vector<Pair> &pairs, int rows) {
  Random random(3);
  std::vector<std::vector<float>> all, own;
  for (int row = 0; row < rows; ++row)
    all.push_back(random.floats(type.getWidth()));
  for (const Pair &pair : pairs)
    own.push_back(all[pair.row]);
  return Activations(type, own);
}

void ExpertsTest::checkGate(const FormatSpec &format, int64_t rows, bool biased, bool limited) {
  int64_t width = std::max<int64_t>(format.blockWeights, 32) * 3;
  Stack gate(format, rule.experts, rows, width, 1), up(format, rule.experts, rows, width, 100);
  std::unique_ptr<Buffer> table(makeTable(rule, randomChoices(rule, kRows)));
  std::vector<Pair> pairs = readTable(rule, *table, kRows);
  Activations act = pairRecords(actTypeFor({&format}, width), pairs, kRows);
  std::string bias = "memref<" + number(rule.experts * rows) + "xf32>";
  std::string text =
      fill("plan.kernel @k(%a: $A, %r: $R, %g: $W, %u: $W$B, %o: $O) {\n"
           "  pack.expert_gate %a routes %r weights(%g, %u) $b $S into %o {alpha = 1.702 : f32, "
           "limit = 0.7 : f32}"
           " : ($A, $R, $W, $W$T, $O) -> ()\n}\n",
           {{"A", act.typeText()},
            {"R", rule.type()},
            {"W", gate.type()},
            {"B", biased ? ", %b: " + bias + ", %c: " + bias : ""},
            {"b", biased ? "biases(%b, %c)" : ""},
            {"S", limited ? "limited_silu" : "silu"},
            {"T", biased ? ", " + bias + ", " + bias : ""},
            {"O", "memref<?x" + number(rows) + "xf32>"}});
  SCOPED_TRACE(text);
  Kernel kernel(target(), text);
  ASSERT_TRUE(bool(kernel));
  Random random(5);
  Array<float> biases[2] = {Array<float>(random.floats(rule.experts * rows)),
                            Array<float>(random.floats(rule.experts * rows))};
  Array<float> out(pairs.size() * rows, 0xEE);
  std::vector<void *> bindings = {act.record(0), table->data(), gate.packed.data(),
                                  up.packed.data()};
  if (biased)
    bindings.insert(bindings.end(), {biases[0].data(), biases[1].data()});
  bindings.push_back(out.data());
  int64_t units = (rows + 15) / 16;
  for (int64_t unit = 0; unit < units; ++unit)
    kernel.run(bindings, {kRows}, unit, unit + 1);
  for (size_t p = 0; p < pairs.size(); ++p)
    for (int64_t row = 0; row < rows; ++row) {
      Dot g = dot(*gate.matrices[pairs[p].expert], row, act, p);
      Dot u = dot(*up.matrices[pairs[p].expert], row, act, p);
      if (biased) {
        g.value += biases[0][pairs[p].expert * rows + row];
        u.value += biases[1][pairs[p].expert * rows + row];
      }
      double alpha = 1, shift = 0;
      if (limited) {
        alpha = 1.702, shift = 1;
        g.value = std::min(g.value, double(0.7f));
        u.value = std::clamp(u.value, -double(0.7f), double(0.7f));
      }
      double a = g.value / (1 + std::exp(-alpha * g.value)), b = u.value + shift;
      double slack = kTolerance * (1.2 * (g.size + 1) * std::abs(b) + std::abs(a) * (u.size + 1));
      ASSERT_NEAR(out[p * rows + row], a * b, slack) << "pair " << p << ", row " << row;
    }
  Array<float> again(pairs.size() * rows, 0xEE);
  bindings.back() = again.data();
  kernel.run(bindings, {kRows}, 0, units, /*all=*/true);
  ASSERT_EQ(std::memcmp(out.data(), again.data(), out.size()), 0) << "all units in one call";
}

void ExpertsTest::checkSum(const FormatSpec &format, int64_t rows, bool biased, bool add) {
  int64_t width = std::max<int64_t>(format.blockWeights, 32);
  constexpr float kScale = 0.75f;
  Stack down(format, rule.experts, rows, width, 7);
  std::string bias = "memref<" + number(rule.experts * rows) + "xf32>";
  pack::ActType type = actTypeFor({&format}, width);
  Choices choices = randomChoices(rule, kRows);
  std::unique_ptr<Buffer> table(makeTable(rule, choices));
  std::vector<Pair> pairs = readTable(rule, *table, kRows);
  Activations act = pairRecords(type, pairs, kRows);
  std::string text = fill("plan.kernel @k(%a: $A, %r: $R, %w: $W$B, %o: $O) {\n"
                          "  pack.expert_sum %a routes %r weight %w $b into %o {epilogue = $E : "
                          "i32, scale = 0.75 : f32}"
                          " : ($A, $R, $W$T, $O) -> ()\n}\n",
                          {{"A", act.typeText()},
                           {"R", rule.type()},
                           {"W", down.type()},
                           {"B", biased ? ", %b: " + bias : ""},
                           {"b", biased ? "bias %b" : ""},
                           {"E", number(add)},
                           {"T", biased ? ", " + bias : ""},
                           {"O", "memref<?x" + number(rows) + "xf32>"}});
  SCOPED_TRACE(text);
  Kernel kernel(target(), text);
  ASSERT_TRUE(bool(kernel));
  Random random(5);
  Array<float> biases(random.floats(rule.experts * rows));
  int64_t units = (rows + 15) / 16;
  auto run = [&](uint8_t *records, Buffer &routes, int tokens, bool split) {
    auto out = std::make_unique<Array<float>>(tokens * rows);
    for (size_t i = 0; i < out->count; ++i)
      (*out)[i] = 0.25f;
    std::vector<void *> bindings = {records, routes.data(), down.packed.data()};
    if (biased)
      bindings.push_back(biases.data());
    bindings.push_back(out->data());
    for (int64_t unit = 0; unit < units; unit += split ? 1 : units)
      kernel.run(bindings, {tokens}, unit, split ? unit + 1 : units, /*all=*/!split);
    return out;
  };
  auto out = run(act.record(0), *table, kRows, true);
  std::vector<double> sums(kRows * rows, add ? 0.25 : 0.0), sizes(kRows * rows, 0.25);
  for (size_t p = 0; p < pairs.size(); ++p)
    for (int64_t row = 0; row < rows; ++row) {
      Dot y = dot(*down.matrices[pairs[p].expert], row, act, p);
      double weight = kScale * double(pairs[p].weight);
      if (biased)
        y.value += biases[pairs[p].expert * rows + row];
      sums[pairs[p].row * rows + row] += weight * y.value;
      sizes[pairs[p].row * rows + row] += weight * (y.size + 1);
    }
  for (size_t i = 0; i < sums.size(); ++i)
    ASSERT_NEAR((*out)[i], sums[i], kTolerance * sizes[i]) << "value " << i;
  auto whole = run(act.record(0), *table, kRows, false);
  ASSERT_EQ(std::memcmp(out->data(), whole->data(), out->size()), 0) << "all units in one call";
  // A row alone, as a step of one token has it.
  for (int row : {0, kRows - 1}) {
    std::unique_ptr<Buffer> own(makeTable(rule, {choices[row]}));
    std::vector<Pair> ownPairs = readTable(rule, *own, 1);
    Buffer records(act.layout.stride * rule.chosen);
    for (int j = 0; j < rule.chosen; ++j)
      for (size_t p = 0; p < pairs.size(); ++p)
        if (pairs[p].row == row && pairs[p].expert == ownPairs[j].expert)
          std::memcpy(records.data() + j * act.layout.stride, act.record(p), act.layout.stride);
    auto alone = run(records.data(), *own, 1, true);
    ASSERT_EQ(std::memcmp(&(*out)[row * rows], alone->data(), 4 * rows), 0) << "row " << row;
  }
}

TEST_P(ExpertsTest, GatesInEveryFormat) {
  for (const FormatSpec *format : formatsFor(target()))
    checkGate(*format, 32, false, false);
}

TEST_P(ExpertsTest, GatesWithBiasesLimitsAndPartTiles) {
  for (const FormatSpec *format : {allFormats().front(), allFormats().back()}) {
    checkGate(*format, 21, true, false);
    checkGate(*format, 48, true, true);
  }
}

TEST_P(ExpertsTest, SumsInEveryFormat) {
  for (const FormatSpec *format : formatsFor(target()))
    checkSum(*format, 32, false, true);
}

TEST_P(ExpertsTest, SumsWithBiasesAndPartTiles) {
  for (const FormatSpec *format : {allFormats().front(), allFormats().back()}) {
    checkSum(*format, 21, true, true);
    checkSum(*format, 37, false, false);
  }
}

IZH_FOR_EACH_TARGET(RouteTest);
IZH_FOR_EACH_TARGET(ExpertsTest);

} // namespace
