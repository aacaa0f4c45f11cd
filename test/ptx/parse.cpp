// Reads the text that LLVM's NVPTX back end writes.

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <set>

#include "test/ptx/program.h"

namespace izh::ptx {

unsigned size_of(Type type) {
  switch (type) {
  case Type::B8:
  case Type::S8:
  case Type::U8:
  case Type::Pred:
    return 1;
  case Type::B16:
  case Type::S16:
  case Type::U16:
  case Type::F16:
    return 2;
  case Type::B32:
  case Type::S32:
  case Type::U32:
  case Type::F32:
    return 4;
  default:
    return 8;
  }
}

namespace {

const std::map<std::string, Type, std::less<>> kTypes = {
    {"b8", Type::B8},   {"s8", Type::S8},   {"u8", Type::U8},   {"b16", Type::B16},
    {"s16", Type::S16}, {"u16", Type::U16}, {"f16", Type::F16}, {"b32", Type::B32},
    {"s32", Type::S32}, {"u32", Type::U32}, {"f32", Type::F32}, {"b64", Type::B64},
    {"s64", Type::S64}, {"u64", Type::U64}, {"f64", Type::F64}, {"pred", Type::Pred}};

const std::map<std::string, Op, std::less<>> kOps = {{"mov", Op::Mov},
                                                     {"ld", Op::Load},
                                                     {"st", Op::Store},
                                                     {"add", Op::Add},
                                                     {"sub", Op::Sub},
                                                     {"mul", Op::Mul},
                                                     {"mad", Op::Mad},
                                                     {"div", Op::Div},
                                                     {"rem", Op::Rem},
                                                     {"fma", Op::Fma},
                                                     {"neg", Op::Neg},
                                                     {"abs", Op::Abs},
                                                     {"min", Op::Min},
                                                     {"max", Op::Max},
                                                     {"sqrt", Op::Sqrt},
                                                     {"rcp", Op::Rcp},
                                                     {"ex2", Op::Ex2},
                                                     {"and", Op::And},
                                                     {"or", Op::Or},
                                                     {"xor", Op::Xor},
                                                     {"not", Op::Not},
                                                     {"shl", Op::Shl},
                                                     {"shr", Op::Shr},
                                                     {"popc", Op::Popc},
                                                     {"clz", Op::Clz},
                                                     {"cvt", Op::Convert},
                                                     {"cvta", Op::Mov},
                                                     {"setp", Op::Compare},
                                                     {"selp", Op::Select},
                                                     {"dp4a", Op::Dot4},
                                                     {"prmt", Op::Permute},
                                                     {"bfe", Op::BitField},
                                                     {"shfl", Op::Shuffle},
                                                     {"redux", Op::ReduceMax},
                                                     {"bar", Op::Barrier},
                                                     {"barrier", Op::Barrier},
                                                     {"bra", Op::Branch},
                                                     {"ret", Op::Return},
                                                     {"exit", Op::Return},
                                                     {"copysign", Op::CopySign},
                                                     {"lop3", Op::Lop3},
                                                     {"bfi", Op::BitInsert},
                                                     {"pragma", Op::Nop},
                                                     {"griddepcontrol", Op::AwaitGrid},
                                                     {"cp", Op::CopyAsync},
                                                     {"mbarrier", Op::MakeGate},
                                                     {"fence", Op::Nop},
                                                     {"ldmatrix", Op::LoadMatrices},
                                                     {"mma", Op::MultiplyMatrices},
                                                     {"atom", Op::AtomicAdd}};

const std::map<std::string, Test, std::less<>> kTests = {
    {"eq", Test::Eq},   {"ne", Test::Ne},   {"lt", Test::Lt},   {"le", Test::Le},
    {"gt", Test::Gt},   {"ge", Test::Ge},   {"lo", Test::Lt},   {"ls", Test::Le},
    {"hi", Test::Gt},   {"hs", Test::Ge},   {"ltu", Test::Ltu}, {"leu", Test::Leu},
    {"gtu", Test::Gtu}, {"geu", Test::Geu}, {"equ", Test::Equ}, {"neu", Test::Neu},
    {"num", Test::Num}, {"nan", Test::Nan}};

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != by)
      continue;
    std::string_view part = text.substr(begin, i - begin);
    while (!part.empty() && isspace(static_cast<unsigned char>(part.front())))
      part.remove_prefix(1);
    while (!part.empty() && isspace(static_cast<unsigned char>(part.back())))
      part.remove_suffix(1);
    parts.emplace_back(part);
    begin = i + 1;
  }
  return parts;
}

class Parser {
public:
  Parser(std::string_view text, Module::Content *out, std::string *error)
      : text_(text), out_(out), error_(error) {}

  bool run() {
    strip_comments();
    while (skip_space(), at_ < clean_.size()) {
      if (!directive())
        return false;
    }
    return true;
  }

private:
  bool fail(const std::string &what) {
    *error_ = "PTX: " + what;
    return false;
  }

  void strip_comments() {
    bool in_comment = false;
    for (size_t i = 0; i < text_.size(); ++i) {
      if (!in_comment && text_.compare(i, 2, "//") == 0)
        in_comment = true;
      if (text_[i] == '\n')
        in_comment = false;
      if (!in_comment && text_[i] != '\0')
        clean_ += text_[i];
    }
  }

  void skip_space() {
    while (at_ < clean_.size() && isspace(static_cast<unsigned char>(clean_[at_])))
      ++at_;
  }

  std::string until(char end) {
    const size_t begin = at_;
    while (at_ < clean_.size() && clean_[at_] != end)
      ++at_;
    std::string result = clean_.substr(begin, at_ - begin);
    if (at_ < clean_.size())
      ++at_;
    return result;
  }

  static bool begins(const std::string &text, const char *with) {
    return text.compare(0, strlen(with), with) == 0;
  }

  // At the top level of the module.
  bool directive() {
    const std::string rest = clean_.substr(at_, 64);
    if (begins(rest, ".version") || begins(rest, ".target") || begins(rest, ".address_size")) {
      until('\n');
      return true;
    }
    if (begins(rest, ".global") || begins(rest, ".const") || begins(rest, ".visible .global"))
      return global(until(';'));
    if (begins(rest, ".extern .shared"))
      return launched(until(';'));
    if (begins(rest, ".visible .entry") || begins(rest, ".entry"))
      return entry();
    return fail("'" + rest.substr(0, rest.find('\n')) + "' is not understood");
  }

  // .extern .shared .align 16 .b8 name[]: what a launch brings; one at most.
  bool launched(const std::string &line) {
    const size_t bracket = line.find("[]"), begin = line.rfind(' ', bracket) + 1;
    const std::string name = line.substr(begin, bracket - begin);
    if (bracket == std::string::npos || (!launched_.empty() && launched_ != name))
      return fail("'" + line + "' is not understood");
    launched_ = name;
    return true;
  }

  // .global .align 64 .b8 name[16] = {1, 2, ...}
  bool global(const std::string &line) {
    const size_t bracket = line.find('[');
    if (bracket == std::string::npos || line.find(".b8") == std::string::npos)
      return fail("a global that is no array of bytes: " + line.substr(0, 80));
    const size_t begin = line.rfind(' ', bracket) + 1;
    std::vector<uint8_t> &bytes = out_->globals[line.substr(begin, bracket - begin)];
    bytes.resize(strtoull(line.c_str() + bracket + 1, nullptr, 0));
    const size_t brace = line.find('{');
    if (brace == std::string::npos)
      return true;
    size_t i = 0;
    for (const std::string &number : split(line.substr(brace + 1, line.find('}') - brace - 1), ','))
      if (i < bytes.size())
        bytes[i++] = static_cast<uint8_t>(strtol(number.c_str(), nullptr, 0));
    return true;
  }

  bool entry() {
    std::string head = until('{');
    const size_t open = head.find('('), close = head.find(')');
    if (open == std::string::npos || close == std::string::npos)
      return fail("an entry without parameters");
    const std::vector<std::string> words = split(head.substr(0, open), ' ');
    names_.clear();
    constants_.clear();
    symbols_.clear();
    params_.clear();
    labels_.clear();
    floats_.clear();
    kernel_ = Kernel();
    kernel_.name = words.back();
    kernel_.slots.assign(kFirstFree, 0);
    for (const auto &[name, slot] : std::map<std::string, int32_t>{{"%tid.x", kTid},
                                                                   {"%ctaid.x", kCtaid},
                                                                   {"%ntid.x", kNtid},
                                                                   {"%nctaid.x", kNctaid},
                                                                   {"%laneid", kLaneid}})
      names_[name] = slot;
    uint32_t offset = 0;
    for (const std::string &param : split(head.substr(open + 1, close - open - 1), ',')) {
      params_[split(param, ' ').back()] = offset;
      kernel_.param_offsets.push_back(offset);
      offset += 8;
    }
    for (auto &[name, bytes] : out_->globals)
      symbols_[name] = reinterpret_cast<uint64_t>(bytes.data());
    if (!launched_.empty())
      symbols_[launched_] = kSharedBase + kLaunchOffset;
    return body();
  }

  bool body() {
    for (int depth = 1;;) {
      skip_space();
      if (at_ >= clean_.size())
        return fail("an entry without an end");
      if (clean_[at_] == '}' && --depth == 0) {
        ++at_;
        break;
      }
      if (clean_[at_] == '{')
        ++depth;
      if (clean_[at_] == '{' || clean_[at_] == '}') {
        ++at_;
        continue;
      }
      size_t end = at_;
      // Two colons are part of a name.
      while (end < clean_.size() && clean_[end] != ';' &&
             (clean_[end] != ':' || clean_[end + 1] == ':'))
        end += clean_[end] == ':' ? 2 : 1;
      if (end < clean_.size() && clean_[end] == ':') {
        labels_[split(clean_.substr(at_, end - at_), '\n').back()] = kernel_.code.size();
        at_ = end + 1;
        continue;
      }
      if (!statement(until(';')))
        return false;
    }
    for (Instruction &one : kernel_.code) {
      if (one.op != Op::Branch)
        continue;
      auto found = labels_.find(split(one.text, ' ').back());
      if (found == labels_.end())
        return fail("no label for '" + one.text + "' in " + kernel_.name);
      one.offset = static_cast<int64_t>(found->second);
    }
    Instruction last;
    last.op = Op::Return;
    kernel_.code.push_back(last);
    out_->kernels[kernel_.name] = kernel_;
    return true;
  }

  // .reg, .shared, .local or an instruction.
  bool statement(std::string line) {
    if (begins(line, ".reg") || begins(line, ".pragma"))
      return true;
    if (begins(line, ".shared") || begins(line, ".local")) {
      const bool shared = begins(line, ".shared");
      uint64_t &used = shared ? kernel_.shared_bytes : kernel_.local_bytes;
      // An array of bytes, or one number.
      const size_t bracket = std::min(line.find('['), line.size());
      const size_t begin = line.find_last_of(" \t", bracket - 1) + 1;
      const size_t dot = line.find_last_of('.', begin), end = line.find_first_of(" \t", dot);
      auto type = kTypes.find(line.substr(dot + 1, end - dot - 1));
      if (type == kTypes.end() || (bracket < line.size() && type->second != Type::B8))
        return fail("'" + line + "' is no array of bytes and no number");
      used = (used + 63) / 64 * 64;
      symbols_[line.substr(begin, bracket - begin)] = (shared ? kSharedBase : kLocalBase) + used;
      used += bracket < line.size() ? strtoull(line.c_str() + bracket + 1, nullptr, 0)
                                    : size_of(type->second);
      return true;
    }
    Instruction one;
    one.text = line;
    if (line[0] == '@') {
      const size_t end = line.find_first_of(" \t");
      one.negate = line[1] == '!';
      one.predicate = slot(line.substr(one.negate ? 2 : 1, end - (one.negate ? 2 : 1)));
      line = line.substr(line.find_first_not_of(" \t", end));
    }
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    const std::string rest = end < line.size() ? line.substr(end + 1) : "";
    if (!instruction(line.substr(0, end), rest, &one))
      return false;
    kernel_.code.push_back(one);
    return check_float(one);
  }

  // ptxas (13.0 and the driver's) stores the low bits of a register that a
  // float operation wrote as the number converted to an integer of that size.
  bool check_float(const Instruction &one) {
    const bool computes = one.op >= Op::Add && one.op <= Op::Ex2;
    if (computes && one.type == Type::F32)
      floats_.insert(one.to[0]);
    if (one.op != Op::Store || size_of(one.type) >= 4 || !floats_.count(one.to[0]))
      return true;
    return fail("'" + one.text + "' stores a part of a float, which ptxas would convert");
  }

  bool instruction(const std::string &name, const std::string &rest, Instruction *one) {
    const std::vector<std::string> words = split(name, '.');
    auto op = kOps.find(words[0]);
    if (words[0] == "shf") {
      one->op = words[1] == "l" ? Op::FunnelLeft : Op::FunnelRight;
    } else {
      if (op == kOps.end())
        return fail("the instruction '" + one->text + "' is not known");
      one->op = op->second;
    }
    if (one->op == Op::MultiplyMatrices)
      return matrices(words, rest, one);
    if (one->op == Op::MakeGate || name.starts_with("cp.async.bulk."))
      return bulk(name, rest, one);
    if (one->op == Op::CopyAsync)
      return copies(words, rest, one);
    bool has_type = false, warp = false, param = false;
    for (size_t i = 1; i < words.size(); ++i) {
      const std::string &word = words[i];
      if (auto type = kTypes.find(word); type != kTypes.end()) {
        (has_type ? one->from : one->type) = type->second;
        if (!has_type)
          one->from = type->second;
        has_type = true;
      } else if (auto test = kTests.find(word); one->op == Op::Compare && test != kTests.end()) {
        one->test = test->second;
      } else if (word == "f16x2" && one->op == Op::Convert) {
        one->type = Type::F16;
        one->count = 2;
        has_type = true;
      } else if (word == "ftz" && one->op == Op::Ex2) {
        one->flushes = true;
      } else if (word == "v2" || word == "v4") {
        one->count = static_cast<uint8_t>(word[1] - '0');
      } else if (word == "wide") {
        one->op = one->op == Op::Mad ? Op::MadWide : Op::MulWide;
      } else if (word == "hi") {
        if (one->op != Op::Mul)
          return fail("'" + one->text + "' is not understood");
        one->op = Op::MulHigh;
      } else if (word == "rni") {
        one->rounding = Rounding::NearestInt;
      } else if (word == "rzi") {
        one->rounding = Rounding::ZeroInt;
      } else if (word == "rmi") {
        one->rounding = Rounding::MinusInt;
      } else if (word == "rpi") {
        one->rounding = Rounding::PlusInt;
      } else if (word == "nc") {
        one->constant = true;
      } else if (word == "relaxed") {
        // Its program knows what it may find there.
        one->constant = true;
      } else if (one->op == Op::AwaitGrid && word == "launch_dependents") {
        one->op = Op::Nop;
      } else if (one->op == Op::AwaitGrid && word == "wait") {
        kernel_.overlaps = true;
      } else if (one->op == Op::ReduceMax && (word == "max" || word == "min")) {
        one->op = word == "max" ? Op::ReduceMax : Op::ReduceMin;
      } else if (word == "warp") {
        warp = true;
      } else if (word == "param") {
        param = true;
      } else if (word == "add" && one->op == Op::AtomicAdd) {
        // The only one that there is.
      } else if (!known_modifier(word)) {
        return fail("'." + word + "' of '" + one->text + "' is not known");
      }
    }
    if (one->op == Op::Barrier && warp)
      one->op = Op::WarpBarrier;
    if (one->op == Op::Load && param)
      one->op = Op::LoadParam;
    return operands(rest, one);
  }

  static bool known_modifier(const std::string &word) {
    for (const char *known : {"global",
                              "shared",
                              "local",
                              "lo",
                              "rn",
                              "rz",
                              "to",
                              "u64",
                              "sync",
                              "bfly",
                              "uni",
                              "aligned",
                              "cta",
                              "weak",
                              "approx",
                              "wrap",
                              "clamp",
                              "bound",
                              "sat",
                              "relu",
                              "L1",
                              "no_allocate",
                              "L1::no_allocate",
                              "const",
                              "xorsign",
                              "l",
                              "r",
                              "m8n8",
                              "x4",
                              "relaxed",
                              "acq_rel",
                              "mbarrier_init",
                              "release",
                              "cluster",
                              "gpu"})
      if (word == known)
        return true;
    return false;
  }

  // cp.async, which copies 16 bytes, and what orders copies.
  bool copies(const std::vector<std::string> &words, const std::string &rest, Instruction *one) {
    using Words = std::vector<std::string>;
    if (words == Words{"cp", "async", "commit_group"}) {
      one->op = Op::CommitCopies;
      return true;
    }
    if (words == Words{"cp", "async", "wait_group"}) {
      one->op = Op::AwaitCopies;
      one->offset = strtoll(rest.c_str(), nullptr, 0);
      return true;
    }
    const std::vector<std::string> list = operand_list(rest);
    // Copies through the first-level cache, which nothing keeps up to date.
    one->constant = words == Words{"cp", "async", "ca", "shared", "global"};
    if ((!one->constant && words != Words{"cp", "async", "cg", "shared", "global"}) ||
        list.size() != 3)
      return fail("'" + one->text + "' is not understood");
    one->depth = static_cast<uint32_t>(strtoul(list[2].c_str(), nullptr, 0));
    if (one->depth != 16)
      return fail("'" + one->text + "' copies a number of bytes that it can't");
    // Where to is operand 0, behind `offset`; from is operand 1, behind `second`.
    Instruction from = *one;
    auto inside = [](const std::string &text) { return text.substr(1, text.size() - 2); };
    if (!address(inside(list[1]), &from) || !address(inside(list[0]), one))
      return false;
    one->a[0] = one->a[3];
    one->a[1] = from.a[3];
    one->second = from.offset;
    return true;
  }

  // Bulk copies, and the gates that they meet at. Addresses are without offsets.
  bool bulk(const std::string &name, const std::string &rest, Instruction *one) {
    static const std::map<std::string, std::pair<Op, size_t>, std::less<>> known = {
        {"mbarrier.init.shared.b64", {Op::MakeGate, 2}},
        {"mbarrier.arrive.expect_tx.shared.b64", {Op::ExpectBytes, 3}},
        {"mbarrier.try_wait.parity.shared.b64", {Op::AwaitGate, 3}},
        {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", {Op::CopyBulk, 4}}};
    std::vector<std::string> list = operand_list(rest);
    auto found = known.find(name);
    if (found == known.end() || list.size() != found->second.second)
      return fail("'" + one->text + "' is not understood");
    one->op = found->second.first;
    if (one->op == Op::AwaitGate)
      one->to[0] = operand(list[0]);
    // What is given back there is nothing, or was taken.
    if (list.size() == 3)
      list.erase(list.begin());
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i][0] == '[')
        list[i] = list[i].substr(1, list[i].size() - 2);
      one->a[i] = operand(list[i]);
    }
    return true;
  }

  // mma of signed bytes or of float16: result, factors and what is added, in braces.
  bool matrices(const std::vector<std::string> &words, const std::string &rest, Instruction *one) {
    const std::vector<std::string> bytes = {"mma", "sync", "aligned", words[3], "row",
                                            "col", "s32",  "s8",      "s8",     "s32"};
    const std::vector<std::string> halves = {"mma", "sync", "aligned", "m16n8k16", "row",
                                             "col", "f32",  "f16",     "f16",      "f32"};
    const bool known = words == bytes && (words[3] == "m16n8k32" || words[3] == "m16n8k16");
    if (!known && words != halves)
      return fail("'" + one->text + "' is not understood");
    one->type = words == halves ? Type::F16 : Type::S8;
    // In bytes of a row of the first matrix.
    one->depth = words[3] == "m16n8k32" || words == halves ? 32 : 16;
    const std::vector<std::string> groups = operand_list(rest);
    if (groups.size() != 4 || !fill(groups[0], one->to, one))
      return fail("'" + one->text + "' is not understood");
    std::vector<int32_t> *lists[] = {&one->left, &one->right, &one->added};
    const size_t sizes[] = {one->depth / 8, one->depth / 16, 4};
    for (size_t i = 0; i < 3; ++i) {
      std::string names = groups[i + 1];
      if (names[0] == '{')
        names = names.substr(1, names.size() - 2);
      for (const std::string &name : split(names, ','))
        lists[i]->push_back(operand(name));
      if (lists[i]->size() != sizes[i])
        return fail("'" + one->text + "' has matrices of another size");
    }
    return true;
  }

  // Commas within braces and brackets don't count.
  static std::vector<std::string> operand_list(const std::string &rest) {
    std::vector<std::string> list;
    std::string current;
    int depth = 0;
    for (const char c : rest) {
      if (c == '{' || c == '[')
        ++depth;
      if (c == '}' || c == ']')
        --depth;
      if (c == ',' && depth == 0) {
        list.push_back(current);
        current.clear();
      } else if (!isspace(static_cast<unsigned char>(c))) {
        current += c;
      }
    }
    list.push_back(current);
    return list;
  }

  bool operands(const std::string &rest, Instruction *one) {
    if (one->op == Op::Branch || one->op == Op::Return || one->op == Op::Barrier ||
        one->op == Op::WarpBarrier || one->op == Op::AwaitGrid || one->op == Op::Nop)
      return true;
    const std::vector<std::string> list = operand_list(rest);
    const bool stores = one->op == Op::Store;
    size_t first = 0;
    if (!stores) {
      std::string to = list[first++];
      to = to.substr(0, to.find('|'));
      if (!fill(to, one->to, one))
        return false;
      if (one->op == Op::Mov && to[0] == '{')
        one->op = Op::MovUnpack;
    }
    size_t number = 0;
    for (size_t i = first; i < list.size(); ++i) {
      const std::string &text = list[i];
      if (text[0] == '[') {
        if (!address(text.substr(1, text.size() - 2), one))
          return false;
        if (!stores)
          continue;
        // A store's address is operand 0 and its values are `to`.
        one->a[0] = one->a[3];
        continue;
      }
      if (stores) {
        if (!fill(text, one->to, one))
          return false;
        continue;
      }
      if (text[0] == '{') {
        if (one->op != Op::Mov)
          return fail("'" + one->text + "' is not understood");
        one->op = Op::MovPack;
        if (!fill(text, one->a, one))
          return false;
        continue;
      }
      if (number > 3)
        return true; // a shuffle's mask
      one->a[number++] = operand(text);
    }
    // Where both are operands, the address is the first.
    if (one->op == Op::AtomicAdd)
      one->a[1] = one->a[0];
    if (one->op == Op::Load || one->op == Op::LoadMatrices || one->op == Op::AtomicAdd)
      one->a[0] = one->a[3];
    return true;
  }

  // A name, or names within braces.
  bool fill(const std::string &text, int32_t *slots, Instruction *one) {
    if (text[0] != '{') {
      slots[0] = operand(text);
      return true;
    }
    const std::vector<std::string> parts = split(text.substr(1, text.size() - 2), ',');
    if (parts.size() > 4)
      return fail("'" + one->text + "' has too many parts");
    for (size_t i = 0; i < parts.size(); ++i)
      slots[i] = operand(parts[i]);
    if (one->op == Op::Mov)
      one->count = static_cast<uint8_t>(parts.size());
    return true;
  }

  // name or name+offset, to operand 3 and the offset.
  bool address(const std::string &text, Instruction *one) {
    const size_t plus = text.find_first_of("+-", 1);
    const std::string name = text.substr(0, plus);
    if (plus != std::string::npos)
      one->offset = strtoll(text.c_str() + plus + (text[plus] == '+'), nullptr, 0);
    if (one->op == Op::LoadParam) {
      auto found = params_.find(name);
      if (found == params_.end())
        return fail("no parameter '" + name + "'");
      one->offset += found->second;
      return true;
    }
    one->a[3] = operand(name);
    return true;
  }

  int32_t slot(const std::string &name) {
    auto [entry, is_new] = names_.insert({name, static_cast<int32_t>(kernel_.slots.size())});
    if (is_new)
      kernel_.slots.push_back(0);
    return entry->second;
  }

  int32_t constant(uint64_t value) {
    auto [entry, is_new] = constants_.insert({value, static_cast<int32_t>(kernel_.slots.size())});
    if (is_new)
      kernel_.slots.push_back(value);
    return entry->second;
  }

  int32_t operand(const std::string &text) {
    if (text[0] == '%')
      return slot(text);
    if (text == "_")
      return slot("_");
    if (auto symbol = symbols_.find(text); symbol != symbols_.end())
      return constant(symbol->second);
    if (text.compare(0, 2, "0f") == 0 || text.compare(0, 2, "0d") == 0)
      return constant(strtoull(text.c_str() + 2, nullptr, 16));
    // The names of a nested block.
    if (isalpha(static_cast<unsigned char>(text[0])) && text != "true" && text != "false")
      return slot(text);
    if (text == "true" || text == "false")
      return constant(text == "true");
    if (text[0] == '-')
      return constant(static_cast<uint64_t>(strtoll(text.c_str(), nullptr, 0)));
    return constant(strtoull(text.c_str(), nullptr, 0));
  }

  std::string_view text_;
  std::string clean_;
  std::string launched_; // the name of what launches bring
  size_t at_ = 0;
  Module::Content *out_;
  std::string *error_;
  Kernel kernel_;
  std::set<int32_t> floats_; // slots that float operations write
  std::map<std::string, int32_t> names_;
  std::map<uint64_t, int32_t> constants_;
  std::map<std::string, uint64_t> symbols_;
  std::map<std::string, uint32_t> params_;
  std::map<std::string, size_t> labels_;
};

} // namespace

Module::Module(std::unique_ptr<Content> content) : content_(std::move(content)) {}
Module::~Module() = default;

std::unique_ptr<Module> Module::parse(std::string_view text, std::string *error) {
  auto content = std::make_unique<Content>();
  if (!Parser(text, content.get(), error).run())
    return nullptr;
  return std::unique_ptr<Module>(new Module(std::move(content)));
}

const Kernel *Module::find(std::string_view name) const {
  auto found = content_->kernels.find(name);
  return found == content_->kernels.end() ? nullptr : &found->second;
}

} // namespace izh::ptx
