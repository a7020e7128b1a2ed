#include "cellar/tableapi/filter.h"

#include <fmt/core.h>

#include <algorithm>
namespace cellar {
namespace {

const char* Name(Filter::Op op) {
  switch (op) {
    case Filter::Op::kLiteral: return "literal";
    case Filter::Op::kColumn: return "column";
    case Filter::Op::kAnd: return "and";
    case Filter::Op::kOr: return "or";
    case Filter::Op::kNot: return "not";
    case Filter::Op::kXor: return "xor";
    case Filter::Op::kEqual: return "=";
    case Filter::Op::kNotEqual: return "<>";
    case Filter::Op::kLess: return "<";
    case Filter::Op::kLessOrEqual: return "<=";
    case Filter::Op::kGreater: return ">";
    case Filter::Op::kGreaterOrEqual: return ">=";
    case Filter::Op::kIn: return "in";
    case Filter::Op::kIsNull: return "is null";
    case Filter::Op::kIsNotNull: return "is not null";
    case Filter::Op::kStartsWith: return "starts with";
    case Filter::Op::kEndsWith: return "ends with";
    case Filter::Op::kContains: return "contains";
    case Filter::Op::kConcat: return "||";
    case Filter::Op::kAdd: return "+";
    case Filter::Op::kSubtract: return "-";
    case Filter::Op::kMultiply: return "*";
    case Filter::Op::kDivide: return "/";
    case Filter::Op::kModulo: return "%";
    case Filter::Op::kNegate: return "negate";
  }
  return "?";
}

void Print(const Filter& filter, std::string* text) {
  switch (filter.op()) {
    case Filter::Op::kColumn: text->append(filter.column()); return;
    case Filter::Op::kLiteral: {
      const Cell& cell = filter.literal();
      switch (cell.kind()) {
        case Cell::Kind::kNull: text->append("NULL"); break;
        case Cell::Kind::kBool: text->append(cell.int_value() != 0 ? "true" : "false"); break;
        case Cell::Kind::kInt: text->append(std::to_string(cell.int_value())); break;
        case Cell::Kind::kDouble: text->append(fmt::format("{}", cell.double_value())); break;
        case Cell::Kind::kText: text->append(fmt::format("'{}'", cell.bytes())); break;
        case Cell::Kind::kBytes: text->append(fmt::format("{} bytes", cell.bytes().size())); break;
      }
      return;
    }
    default: break;
  }
  text->append("(").append(Name(filter.op()));
  for (const Filter& arg : filter.args()) {
    text->append(" ");
    Print(arg, text);
  }
  text->append(")");
}

}  // namespace

Filter Filter::Literal(Cell value, std::string type) {
  auto node = std::make_shared<Node>();
  node->op = Op::kLiteral;
  node->literal = std::move(value);
  node->name = std::move(type);
  return Filter(std::shared_ptr<const Node>(std::move(node)));
}

Filter Filter::Column(std::string name) {
  auto node = std::make_shared<Node>();
  node->op = Op::kColumn;
  node->name = std::move(name);
  return Filter(std::shared_ptr<const Node>(std::move(node)));
}

Filter Filter::Call(Op op, std::vector<Filter> args) {
  auto node = std::make_shared<Node>();
  node->op = op;
  for (Filter& arg : args) {
    // a && b && c is one node of three arguments.
    if ((op == Op::kAnd || op == Op::kOr) && arg.op() == op) {
      node->args.insert(node->args.end(), arg.args().begin(), arg.args().end());
      continue;
    }
    node->args.push_back(std::move(arg));
  }
  for (const Filter& arg : node->args) {
    node->depth = std::max(node->depth, arg.depth() + 1);
    node->nodes += arg.nodes();
  }
  // Whoever gets it refuses it; a tree without end would overflow the stack before that.
  if (node->depth > kMaxDepth) node->args.clear();
  return Filter(std::shared_ptr<const Node>(std::move(node)));
}

Filter Filter::In(std::vector<Filter> values) const {
  values.insert(values.begin(), *this);
  return Call(Op::kIn, std::move(values));
}

std::string Filter::ToString() const {
  std::string text;
  Print(*this, &text);
  return text;
}

}  // namespace cellar
