// Statements. What reaches for files or other templates is refused.

#include "runtime/text/jinja/parser.h"

namespace izh::jinja {
namespace {

bool is_one_of(Text word, Text words) {
  for (uint32_t begin = 0; begin < words.size;) {
    uint32_t end = begin;
    while (end < words.size && words.data[end] != ' ') ++end;
    if (words.part(begin, end) == word) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

Node* Parser::statements(Text ends) {
  Level level(machine_);
  if (!level) return nullptr;
  NodeList list;
  bool ended = false;
  while (!machine_.failed() && !ended && now().kind != TokenKind::kEnd) {
    const Token token = now();
    if (token.kind == TokenKind::kData) {
      Node* node = make(NodeKind::kData);
      if (node) node->text = token.text;
      step();
      list.add(node);
    } else if (token.kind == TokenKind::kVariableBegin) {
      step();
      list.add(make(NodeKind::kPrint, tuple(true)));
      if (now().kind != TokenKind::kVariableEnd && !machine_.failed()) fail_here("'}}'");
      step();
    } else {
      step();
      list.add(block(ends, &ended));
    }
  }
  if (!ended && ends.size != 0 && !machine_.failed()) {
    machine_.fail("the template ends inside of a block, expected one of: %.*s",
                  static_cast<int>(ends.size), ends.data);
  }
  return list.first();
}

Node* Parser::body(Text ends) {
  end_block();
  return machine_.failed() ? nullptr : statements(ends);
}

void Parser::end_block() {
  if (machine_.failed()) return;
  if (now().kind != TokenKind::kBlockEnd) {
    fail_here("'%}'");
    return;
  }
  step();
}

// `{%` was read. Sets `*ended` and stays at the name if it is one of `ends`.
Node* Parser::block(Text ends, bool* ended) {
  if (now().kind != TokenKind::kName) return fail_here("the name of a block");
  if (is_one_of(now().text, ends)) {
    *ended = true;
    return nullptr;
  }
  const Text name = now().text;
  if (name == Text("if")) return if_statement();
  if (name == Text("for")) return for_statement();
  if (name == Text("set")) return set_statement();
  if (name == Text("macro")) return macro_statement();
  if (name == Text("call")) return call_statement();
  if (name == Text("filter")) return filter_statement();
  if (name == Text("with")) return with_statement();
  if (name == Text("generation")) return generation_statement();
  if (name == Text("break") || name == Text("continue")) {
    if (loops_ == 0) return fail_here("no 'break' or 'continue' outside of a loop");
    Node* node = make(name == Text("break") ? NodeKind::kBreak : NodeKind::kContinue);
    step();
    end_block();
    return node;
  }
  return fail_here("a statement that chat templates may have");
}

Node* Parser::if_statement() {
  Node* node = make(NodeKind::kIf);
  if (!node) return nullptr;
  step();
  node->a = tuple(true);
  node->b = body("elif else endif");
  if (machine_.failed()) return nullptr;
  if (is_name("elif")) {
    Level level(machine_);
    node->c = level ? if_statement() : nullptr;
    return node;
  }
  if (take_name("else")) node->c = body("endif");
  step();
  end_block();
  return node;
}

Node* Parser::for_statement() {
  Node* node = make(NodeKind::kFor);
  if (!node) return nullptr;
  step();
  node->a = target();
  if (!machine_.failed() && !take_name("in")) fail_here("'in'");
  node->b = tuple(false);
  if (take_name("if")) node->e = expression();
  node->recursive = take_name("recursive");
  ++loops_;
  node->c = body("endfor else");
  --loops_;
  if (machine_.failed()) return nullptr;
  if (take_name("else")) node->d = body("endfor");
  step();
  end_block();
  return node;
}

Node* Parser::target_part() {
  if (take_operator("(")) {
    Node* inner = target();
    expect_operator(")");
    return inner;
  }
  Node* node = make(NodeKind::kName);
  if (node) node->text = expect_name();
  return node;
}

// A name, an attribute of one, or several names.
Node* Parser::target() {
  Level level(machine_);
  if (!level) return nullptr;
  Node* first = target_part();
  if (take_operator(".")) {
    first = make(NodeKind::kAttribute, first);
    if (first) first->text = expect_name();
    return first;
  }
  if (!is_operator(",")) return first;
  NodeList parts;
  parts.add(first);
  while (!machine_.failed() && take_operator(",")) {
    if (is_name("in") || is_operator("=") || is_operator(")")) break;
    parts.add(target_part());
  }
  return make(NodeKind::kTuple, parts.first());
}

Node* Parser::set_statement() {
  Node* node = make(NodeKind::kSet);
  if (!node) return nullptr;
  step();
  node->a = target();
  if (take_operator("=")) {
    node->b = tuple(true);
    end_block();
    return node;
  }
  node->kind = NodeKind::kSetBlock;
  if (is_operator("|")) node->c = filters_and_tests(nullptr);
  node->b = body("endset");
  step();
  end_block();
  return node;
}

void Parser::parameters(Node* macro) {
  NodeList list;
  expect_operator("(");
  while (!machine_.failed() && !is_operator(")")) {
    Node* parameter = make(NodeKind::kParameter);
    if (!parameter) return;
    parameter->text = expect_name();
    if (take_operator("=")) parameter->a = expression();
    list.add(parameter);
    if (!take_operator(",")) break;
  }
  expect_operator(")");
  macro->a = list.first();
}

Node* Parser::macro_statement() {
  Node* node = make(NodeKind::kMacro);
  if (!node) return nullptr;
  step();
  node->text = expect_name();
  parameters(node);
  Node* outer = macro_;
  const uint32_t loops = loops_;
  macro_ = node;
  loops_ = 0;
  node->b = body("endmacro");
  macro_ = outer;
  loops_ = loops;
  step();
  end_block();
  return node;
}

Node* Parser::call_statement() {
  Node* node = make(NodeKind::kCallBlock);
  Node* caller = make(NodeKind::kMacro);
  if (!node || !caller) return nullptr;
  step();
  caller->text = "caller";
  if (is_operator("(")) parameters(caller);
  node->a = expression();
  if (!machine_.failed() && node->a->kind != NodeKind::kCall) return fail_here("a call");
  caller->b = body("endcall");
  node->b = caller;
  step();
  end_block();
  return node;
}

Node* Parser::filter_statement() {
  Node* node = make(NodeKind::kFilterBlock);
  if (!node) return nullptr;
  step();
  Node* first = filter(nullptr);
  node->b = first ? filters_and_tests(first) : nullptr;
  node->a = body("endfilter");
  step();
  end_block();
  return node;
}

Node* Parser::with_statement() {
  Node* node = make(NodeKind::kWith);
  if (!node) return nullptr;
  step();
  NodeList values;
  while (!machine_.failed() && now().kind == TokenKind::kName) {
    Node* one = make(NodeKind::kSet, target());
    expect_operator("=");
    if (!one) return nullptr;
    one->b = expression();
    values.add(one);
    if (!take_operator(",")) break;
  }
  node->a = values.first();
  node->b = body("endwith");
  step();
  end_block();
  return node;
}

// Marks what the model wrote, for training; the text is the same.
Node* Parser::generation_statement() {
  Node* node = make(NodeKind::kScope);
  if (!node) return nullptr;
  step();
  node->a = body("endgeneration");
  step();
  end_block();
  return node;
}

Node* parse_template(Machine& machine, Text source) {
  Array<Token> tokens;
  if (!tokenize_template(machine, source, &tokens)) return nullptr;
  Node* node = Parser(machine, tokens).statements({});
  return machine.failed() ? nullptr : node;
}

}  // namespace izh::jinja
