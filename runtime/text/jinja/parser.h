// Internal to jinja: the parser's state, shared by its two files.

#pragma once

#include "runtime/text/jinja/lexer.h"
#include "runtime/text/jinja/syntax.h"

namespace izh::jinja {

// Appends nodes to a list in order.
class NodeList {
 public:
  void add(Node* node) {
    if (!node) return;
    *end_ = node;
    end_ = &node->next;
  }
  Node* first() const { return first_; }

 private:
  Node* first_ = nullptr;
  Node** end_ = &first_;
};

class Parser {
 public:
  Parser(Machine& machine, const Array<Token>& tokens) : machine_(machine), tokens_(tokens) {}

  // Statements up to the end, or up to a block whose name is one of `ends`
  // (separated by spaces); that name is the current token then.
  Node* statements(Text ends);

 private:
  // In parse_expression.cpp.
  Node* expression();
  Node* expression_without_condition() { return disjunction(); }
  // One expression, or a tuple of several. Without parentheses; `conditions`:
  // whether "a if b" may stand in it.
  Node* tuple(bool conditions);
  Node* disjunction();
  Node* conjunction();
  Node* negation();
  Node* comparison();
  Node* binary(int level);
  Node* power();
  Node* unary(bool filters);
  Node* primary();
  Node* literal(Token token);
  Node* parenthesised();
  Node* list_display();
  Node* dict_display();
  Node* postfix(Node* node);
  Node* subscript(Node* node);
  Node* filters_and_tests(Node* node);
  Node* filter(Node* node);
  Node* test(Node* node);
  Node* arguments();
  Node* call(Node* node);

  // In parse_statement.cpp.
  Node* block(Text ends, bool* ended);
  Node* if_statement();
  Node* for_statement();
  Node* set_statement();
  Node* macro_statement();
  Node* call_statement();
  Node* filter_statement();
  Node* with_statement();
  Node* generation_statement();
  void parameters(Node* macro);
  Node* target();
  Node* target_part();
  Node* body(Text ends);
  void end_block();

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  void step() { at_ += at_ + 1 < tokens_.size(); }
  bool is_operator(Text text) const {
    return now().kind == TokenKind::kOperator && now().text == text;
  }
  bool is_name(Text text) const { return now().kind == TokenKind::kName && now().text == text; }
  // Steps over it if it is there.
  bool take_operator(Text text) {
    if (!is_operator(text)) return false;
    step();
    return true;
  }
  bool take_name(Text text) {
    if (!is_name(text)) return false;
    step();
    return true;
  }
  // Fails if it is not there.
  void expect_operator(Text text);
  Text expect_name();
  Node* fail_here(const char* expected);
  // nullptr after a failure.
  Node* make(NodeKind kind, Node* a = nullptr, Node* b = nullptr);

  Machine& machine_;
  const Array<Token>& tokens_;
  size_t at_ = 0;
  // The macro whose body is read.
  Node* macro_ = nullptr;
  uint32_t loops_ = 0;
};

}  // namespace izh::jinja
