// SPDX-License-Identifier: MIT
#pragma once

#include <limits>
#include <tuple>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>
#include <heed/layers/parameters.hpp>

namespace heed {

/// Options of EarlyStopping.
struct EarlyStoppingOptions {
  Index patience = 5;          // evaluations without improvement before training stops
  double min_improvement = 0;  // by which a loss must fall to count as one
};

/// What EarlyStopping remembers besides weights; a checkpoint holds it.
struct EarlyStoppingState {
  double best_loss = std::numeric_limits<double>::infinity();
  Index best_evaluation = 0;
  Index evaluations = 0;
};

/// Watches a validation loss, keeps the weights of its best evaluation, and says when waiting any
/// longer is over.
template <class Model>
class EarlyStopping {
 public:
  /// Throws InvalidArgument for a patience below 1 or a min_improvement below 0.
  explicit EarlyStopping(const Model& model, const EarlyStoppingOptions& options = {})
      : options_(options), best_model_(model) {
    if (options.patience < 1 || !(options.min_improvement >= 0)) {
      throw_invalid_argument("EarlyStopping: patience ", options.patience, ", min_improvement ",
                             options.min_improvement, "; expected 1 or more, 0 or more");
    }
  }

  /// Takes note of an evaluation; true when training should stop. A NaN is no improvement.
  bool update(double loss, const Model& model) {
    auto& [best_loss, best_evaluation, evaluations] = state_;
    const bool first = evaluations == 0;
    if (loss < best_loss - options_.min_improvement || (first && loss <= best_loss)) {
      best_model_ = Model(model);  // first, and whole: memory may run out
      best_loss = loss;
      best_evaluation = evaluations + 1;
    }
    ++evaluations;
    return evaluations - best_evaluation >= options_.patience;
  }

  /// The weights of the best evaluation; those of the beginning before any.
  const Model& best_model() const { return best_model_; }
  /// +inf before the first evaluation that was not NaN.
  double best_loss() const { return state_.best_loss; }
  /// Which evaluation was the best, counted from 1; 0: none.
  Index best_evaluation() const { return state_.best_evaluation; }
  Index evaluations() const { return state_.evaluations; }

  const EarlyStoppingState& state() const { return state_; }
  /// For a checkpoint that is loaded.
  void set_state(const EarlyStoppingState& state) { state_ = state; }
  /// The weights that a checkpoint holds.
  static auto members(auto& stopping) {
    return std::tuple{member("best_model", stopping.best_model_)};
  }

 private:
  EarlyStoppingOptions options_;
  Model best_model_;
  EarlyStoppingState state_;
};

}  // namespace heed
