// The tree of a template. Nodes are made once by the parser and never change.

#pragma once

#include "runtime/text/jinja/machine.h"

namespace izh::jinja {

enum class NodeKind : uint8_t {
  // Expressions. What a, b and c are is said behind each.
  kConstant,     // value
  kName,         // text
  kList,         // items: a, then next
  kTuple,        // items
  kDict,         // items: pairs
  kPair,         // a: key, b: value
  kAttribute,    // a.text
  kItem,         // a[b]
  kSlice,        // a[b:c:d]; parts may be missing
  kCall,         // a(arguments b)
  kFilter,       // a|text(arguments b); a may be missing in filter blocks
  kTest,         // a is text(arguments b)
  kNot,          // a
  kNegative,     // a
  kPositive,     // a
  kAnd,          // a, b
  kOr,           // a, b
  kBinary,       // a text b
  kCompare,      // a, then b: a list of kOperand
  kOperand,      // text a
  kConditional,  // a if b else c; c may be missing
  kArgument,     // a; text: its name, "*" or "**" for unpacked ones, or empty
  // Statements.
  kData,         // text
  kPrint,        // a
  kIf,           // if a then b else c
  kFor,          // for a in b: body c else d; e: filter
  kSet,          // a = b
  kSetBlock,     // a = body b, through the filters c
  kMacro,        // text(parameters a): body b
  kParameter,    // text, default a
  kCallBlock,    // a: the call, b: a kMacro
  kFilterBlock,  // body a through the filters b
  kWith,         // a: targets and values as kSet, b: body
  kScope,        // body a
  kBreak,
  kContinue,
};

struct Node {
  NodeKind kind;
  // kFor: it may call itself. kMacro: it reads varargs, or kwargs.
  bool recursive = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  uint32_t line = 0;
  Text text;
  Value value;
  Node* a = nullptr;
  Node* b = nullptr;
  Node* c = nullptr;
  Node* d = nullptr;
  Node* e = nullptr;
  // Of a list of items, arguments or statements.
  Node* next = nullptr;
};

// The statements of a template, or nullptr if it is empty or failed.
Node* parse_template(Machine& machine, Text source);

}  // namespace izh::jinja
