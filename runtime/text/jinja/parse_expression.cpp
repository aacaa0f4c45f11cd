// Expressions, by recursive descent; precedence is Jinja's, which is not quite
// Python's ('~' binds tighter than '+').

#include <cstdlib>

#include "runtime/text/jinja/parser.h"

namespace izh::jinja {

Node* Parser::make(NodeKind kind, Node* a, Node* b) {
  Node* node = machine_.make<Node>();
  if (!node) return nullptr;
  node->kind = kind;
  node->line = now().line;
  node->a = a;
  node->b = b;
  return node;
}

Node* Parser::fail_here(const char* expected) {
  machine_.line = now().line;
  const Text found = now().text;
  const char* what = now().kind == TokenKind::kEnd ? "the end of the template" : "the end of a tag";
  if (found.size != 0) {
    machine_.fail("found '%.*s', expected %s", found.size > 40 ? 40 : static_cast<int>(found.size),
                  found.data, expected);
  } else {
    machine_.fail("found %s, expected %s", what, expected);
  }
  return nullptr;
}

void Parser::expect_operator(Text text) {
  if (machine_.failed() || take_operator(text)) return;
  char expected[] = "'..'";
  expected[1] = text.data[0];
  expected[2] = '\'';
  expected[3] = 0;
  fail_here(expected);
}

Text Parser::expect_name() {
  if (now().kind != TokenKind::kName) {
    fail_here("a name");
    return {};
  }
  const Text text = now().text;
  step();
  return text;
}

Node* Parser::expression() {
  Level level(machine_);
  if (!level) return nullptr;
  Node* node = disjunction();
  while (!machine_.failed() && take_name("if")) {
    node = make(NodeKind::kConditional, node, disjunction());
    if (node && take_name("else")) node->c = expression();
  }
  return node;
}

Node* Parser::disjunction() {
  Node* node = conjunction();
  while (!machine_.failed() && take_name("or")) node = make(NodeKind::kOr, node, conjunction());
  return node;
}

Node* Parser::conjunction() {
  Node* node = negation();
  while (!machine_.failed() && take_name("and")) node = make(NodeKind::kAnd, node, negation());
  return node;
}

Node* Parser::negation() {
  Level level(machine_);
  if (!level) return nullptr;
  if (take_name("not")) return make(NodeKind::kNot, negation());
  return comparison();
}

Node* Parser::comparison() {
  Node* first = binary(0);
  NodeList operands;
  while (!machine_.failed()) {
    Text text;
    if (now().kind == TokenKind::kOperator) {
      static constexpr Text kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
      for (const Text& one : kOperators) {
        if (now().text == one) text = now().text;
      }
      if (text.size == 0) break;
      step();
    } else if (take_name("in")) {
      text = "in";
    } else if (is_name("not") && ahead().kind == TokenKind::kName && ahead().text == Text("in")) {
      step();
      step();
      text = "not in";
    } else {
      break;
    }
    Node* operand = make(NodeKind::kOperand, binary(0));
    if (operand) operand->text = text;
    operands.add(operand);
  }
  return operands.first() ? make(NodeKind::kCompare, first, operands.first()) : first;
}

Node* Parser::binary(int level) {
  static constexpr Text kOperators[3][4] = {
      {"+", "-", {}, {}}, {"~", {}, {}, {}}, {"*", "/", "//", "%"}};
  if (level == 3) return power();
  Node* node = binary(level + 1);
  while (!machine_.failed() && now().kind == TokenKind::kOperator) {
    Text found;
    for (const Text& one : kOperators[level]) {
      if (one.size != 0 && now().text == one) found = one;
    }
    if (found.size == 0) break;
    step();
    node = make(NodeKind::kBinary, node, binary(level + 1));
    if (node) node->text = found;
  }
  return node;
}

Node* Parser::power() {
  Node* node = unary(true);
  while (!machine_.failed() && take_operator("**")) {
    node = make(NodeKind::kBinary, node, unary(true));
    if (node) node->text = "**";
  }
  return node;
}

Node* Parser::unary(bool filters) {
  Level level(machine_);
  if (!level) return nullptr;
  Node* node;
  if (take_operator("-")) {
    node = make(NodeKind::kNegative, unary(false));
  } else if (take_operator("+")) {
    node = make(NodeKind::kPositive, unary(false));
  } else {
    node = postfix(primary());
  }
  return filters ? filters_and_tests(node) : node;
}

Node* Parser::literal(Token token) {
  Node* node = make(NodeKind::kConstant);
  if (!node) return nullptr;
  step();
  char digits[64];
  uint32_t count = 0;
  switch (token.kind) {
    case TokenKind::kString: {
      // Strings side by side are one.
      Text text = token.text;
      while (now().kind == TokenKind::kString && !machine_.failed()) {
        text = machine_.concat(text, now().text).text();
        step();
      }
      node->value = make_string(text);
      return node;
    }
    default:
      for (uint32_t i = 0; i < token.text.size && count + 1 < sizeof(digits); ++i) {
        if (token.text.data[i] != '_') digits[count++] = token.text.data[i];
      }
      digits[count] = 0;
      if (token.kind == TokenKind::kFloat) {
        node->value = make_float(strtod(digits, nullptr));
      } else if (count > 18) {
        machine_.line = node->line;
        machine_.fail("the number %s is too large", digits);
      } else {
        node->value = make_int(strtoll(digits, nullptr, 10));
      }
      return node;
  }
}

Node* Parser::primary() {
  Level level(machine_);
  if (!level) return nullptr;
  const Token token = now();
  switch (token.kind) {
    case TokenKind::kName: {
      struct Word {
        Text text;
        Value value;
      };
      const Word words[] = {{"true", make_bool(true)},   {"True", make_bool(true)},
                            {"false", make_bool(false)}, {"False", make_bool(false)},
                            {"none", make_none()},       {"None", make_none()}};
      Node* node = make(NodeKind::kName);
      if (!node) return nullptr;
      step();
      node->text = token.text;
      for (const Word& word : words) {
        if (!(word.text == token.text)) continue;
        node->kind = NodeKind::kConstant;
        node->value = word.value;
      }
      if (macro_) {
        macro_->uses_varargs |= token.text == Text("varargs");
        macro_->uses_kwargs |= token.text == Text("kwargs");
      }
      return node;
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat:
    case TokenKind::kString:
      return literal(token);
    case TokenKind::kOperator:
      if (take_operator("(")) return parenthesised();
      if (take_operator("[")) return list_display();
      if (take_operator("{")) return dict_display();
      return fail_here("an expression");
    default:
      return fail_here("an expression");
  }
}

Node* Parser::parenthesised() {
  if (take_operator(")")) return make(NodeKind::kTuple);
  Node* node = tuple(true);
  expect_operator(")");
  return node;
}

Node* Parser::tuple(bool conditions) {
  NodeList items;
  Node* first = conditions ? expression() : expression_without_condition();
  if (!is_operator(",")) return first;
  items.add(first);
  while (!machine_.failed() && take_operator(",")) {
    const bool ends = now().kind == TokenKind::kVariableEnd || now().kind == TokenKind::kBlockEnd ||
                      is_operator(")") || is_operator("=") || is_name("in");
    if (ends) break;
    items.add(conditions ? expression() : expression_without_condition());
  }
  return make(NodeKind::kTuple, items.first());
}

Node* Parser::list_display() {
  NodeList items;
  while (!machine_.failed() && !is_operator("]")) {
    items.add(expression());
    if (!take_operator(",")) break;
  }
  expect_operator("]");
  return make(NodeKind::kList, items.first());
}

Node* Parser::dict_display() {
  NodeList pairs;
  while (!machine_.failed() && !is_operator("}")) {
    Node* key = expression();
    expect_operator(":");
    pairs.add(make(NodeKind::kPair, key, expression()));
    if (!take_operator(",")) break;
  }
  expect_operator("}");
  return make(NodeKind::kDict, pairs.first());
}

Node* Parser::postfix(Node* node) {
  while (!machine_.failed()) {
    if (take_operator(".")) {
      const Token token = now();
      if (token.kind == TokenKind::kInteger) {
        node = make(NodeKind::kItem, node, literal(token));
        continue;
      }
      node = make(NodeKind::kAttribute, node);
      if (node) node->text = expect_name();
    } else if (take_operator("[")) {
      node = subscript(node);
    } else if (is_operator("(")) {
      node = call(node);
    } else {
      break;
    }
  }
  return node;
}

Node* Parser::subscript(Node* node) {
  Node* parts[3] = {};
  uint32_t colons = 0;
  while (!machine_.failed() && !is_operator("]")) {
    if (is_operator(":") && colons < 2) {
      step();
      ++colons;
      continue;
    }
    if (parts[colons]) break;
    parts[colons] = colons == 0 ? tuple(true) : expression();
  }
  expect_operator("]");
  if (colons == 0 && !parts[0]) return fail_here("an index");
  Node* result = make(colons ? NodeKind::kSlice : NodeKind::kItem, node, parts[0]);
  if (result) {
    result->c = parts[1];
    result->d = parts[2];
  }
  return result;
}

Node* Parser::arguments() {
  NodeList list;
  expect_operator("(");
  while (!machine_.failed() && !is_operator(")")) {
    Text name;
    if (take_operator("*")) {
      name = "*";
    } else if (take_operator("**")) {
      name = "**";
    } else if (now().kind == TokenKind::kName && ahead().kind == TokenKind::kOperator &&
               ahead().text == Text("=")) {
      name = now().text;
      step();
      step();
    }
    Node* argument = make(NodeKind::kArgument, expression());
    if (argument) argument->text = name;
    list.add(argument);
    if (!take_operator(",")) break;
  }
  expect_operator(")");
  return list.first();
}

Node* Parser::call(Node* node) { return make(NodeKind::kCall, node, arguments()); }

Node* Parser::filters_and_tests(Node* node) {
  while (!machine_.failed()) {
    if (take_operator("|")) {
      node = filter(node);
    } else if (take_name("is")) {
      node = test(node);
    } else if (is_operator("(")) {
      node = call(node);
    } else {
      break;
    }
  }
  return node;
}

Node* Parser::filter(Node* node) {
  Node* result = make(NodeKind::kFilter, node);
  if (!result) return nullptr;
  result->text = expect_name();
  if (is_operator("(")) result->b = arguments();
  return result;
}

Node* Parser::test(Node* node) {
  const bool negated = take_name("not");
  Node* result = make(NodeKind::kTest, node);
  if (!result) return nullptr;
  result->text = expect_name();
  const Token& token = now();
  const bool argument_follows =
      token.kind == TokenKind::kString || token.kind == TokenKind::kInteger ||
      token.kind == TokenKind::kFloat || is_operator("[") || is_operator("{") ||
      (token.kind == TokenKind::kName && !is_name("else") && !is_name("or") && !is_name("and") &&
       !is_name("if") && !is_name("is") && !is_name("in") && !is_name("not"));
  if (is_operator("(")) {
    result->b = arguments();
  } else if (argument_follows) {
    result->b = make(NodeKind::kArgument, postfix(primary()));
  }
  return negated ? make(NodeKind::kNot, result) : result;
}

}  // namespace izh::jinja
