// A sorted map whose copies share structure, so that publishing a change costs O(log n) whatever
// the size of the catalog.
//
// A treap: sorted by key, heap-ordered by a hash of the key, so its shape depends on its content
// alone. Nodes are immutable; an edit copies the path to the root.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace cellar::catalog {

inline uint64_t MixBits(uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}
inline uint64_t PriorityOf(uint64_t key) { return MixBits(key); }
inline uint64_t PriorityOf(const std::pair<uint64_t, uint64_t>& key) {
  return MixBits(MixBits(key.first) ^ key.second);
}
inline uint64_t PriorityOf(const std::pair<uint64_t, std::string>& key) {
  return MixBits(MixBits(key.first) ^ std::hash<std::string>()(key.second));
}

// A value type: copies are cheap and independent. Immutable ones may be shared by threads.
template <typename Key, typename Value>
class PersistentMap {
 public:
  // Null when absent; valid as long as a map that holds the entry.
  template <typename AnyKey>
  const Value* Find(const AnyKey& key) const {
    const Node* node = root_.get();
    while (node != nullptr) {
      if (key < node->key) {
        node = node->left.get();
      } else if (node->key < key) {
        node = node->right.get();
      } else {
        return &node->value;
      }
    }
    return nullptr;
  }

  // Inserts or replaces.
  void Set(const Key& key, Value value) {
    root_ = Insert(root_, key, PriorityOf(key), std::move(value));
  }
  void Erase(const Key& key) {
    if (Find(key) != nullptr) root_ = Remove(root_, key);
  }

  // Calls visit(key, value) in key order from the first key that is not below `start`, until it
  // returns false.
  template <typename AnyKey, typename Visit>
  void VisitFrom(const AnyKey& start, Visit&& visit) const {
    WalkFrom(root_.get(), start, visit);
  }
  template <typename Visit>
  void VisitAll(Visit&& visit) const {
    Walk(root_.get(), visit);
  }

 private:
  struct Node;
  using NodePtr = std::shared_ptr<const Node>;
  struct Node {
    Key key;
    uint64_t priority;
    Value value;
    NodePtr left, right;
  };

  static NodePtr Make(Key key, uint64_t priority, Value value, NodePtr left, NodePtr right) {
    return std::make_shared<const Node>(
        Node{std::move(key), priority, std::move(value), std::move(left), std::move(right)});
  }
  static NodePtr With(const Node& node, NodePtr left, NodePtr right) {
    return Make(node.key, node.priority, node.value, std::move(left), std::move(right));
  }

  static NodePtr Insert(const NodePtr& node, const Key& key, uint64_t priority, Value value) {
    if (node == nullptr) return Make(key, priority, std::move(value), nullptr, nullptr);
    if (key < node->key) {
      NodePtr left = Insert(node->left, key, priority, std::move(value));
      if (left->priority <= node->priority) return With(*node, left, node->right);
      return With(*left, left->left, With(*node, left->right, node->right));
    }
    if (node->key < key) {
      NodePtr right = Insert(node->right, key, priority, std::move(value));
      if (right->priority <= node->priority) return With(*node, node->left, right);
      return With(*right, With(*node, node->left, right->left), right->right);
    }
    return Make(key, priority, std::move(value), node->left, node->right);
  }

  static NodePtr Remove(const NodePtr& node, const Key& key) {
    if (key < node->key) return With(*node, Remove(node->left, key), node->right);
    if (node->key < key) return With(*node, node->left, Remove(node->right, key));
    return Join(node->left, node->right);
  }
  static NodePtr Join(const NodePtr& left, const NodePtr& right) {
    if (left == nullptr) return right;
    if (right == nullptr) return left;
    if (left->priority >= right->priority) {
      return With(*left, left->left, Join(left->right, right));
    }
    return With(*right, Join(left, right->left), right->right);
  }

  template <typename AnyKey, typename Visit>
  static bool WalkFrom(const Node* node, const AnyKey& start, Visit& visit) {
    if (node == nullptr) return true;
    if (node->key < start) return WalkFrom(node->right.get(), start, visit);
    return WalkFrom(node->left.get(), start, visit) && visit(node->key, node->value) &&
           Walk(node->right.get(), visit);
  }
  template <typename Visit>
  static bool Walk(const Node* node, Visit& visit) {
    if (node == nullptr) return true;
    return Walk(node->left.get(), visit) && visit(node->key, node->value) &&
           Walk(node->right.get(), visit);
  }

  NodePtr root_;
};

}  // namespace cellar::catalog
