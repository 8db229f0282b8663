// SPDX-License-Identifier: MIT
#pragma once

#include <limits>

#include <heed/core/error.hpp>
#include <heed/core/index.hpp>

namespace heed {

/// Options of EarlyStopping.
struct EarlyStoppingOptions {
  Index patience = 5;          // evaluations without improvement before training stops
  double min_improvement = 0;  // by which a loss must fall to count as one
};

/// Watches a validation loss, keeps the weights of its best evaluation, and says when waiting any
/// longer is over.
template <class Model>
class EarlyStopping {
 public:
  /// Throws ShapeError for a patience below 1 or a min_improvement below 0.
  explicit EarlyStopping(const Model& model, const EarlyStoppingOptions& options = {})
      : options_(options), best_model_(model) {
    if (options.patience < 1 || !(options.min_improvement >= 0)) {
      throw_shape_error("EarlyStopping: patience ", options.patience, ", min_improvement ",
                        options.min_improvement, "; expected 1 or more, 0 or more");
    }
  }

  /// Takes note of an evaluation; true when training should stop. A NaN is no improvement.
  bool update(double loss, const Model& model) {
    ++evaluations_;
    if (loss < best_loss_ - options_.min_improvement || (evaluations_ == 1 && loss <= best_loss_)) {
      best_loss_ = loss;
      best_evaluation_ = evaluations_;
      best_model_ = model;
    }
    return evaluations_ - best_evaluation_ >= options_.patience;
  }

  /// The weights of the best evaluation; those of the beginning before any.
  const Model& best_model() const { return best_model_; }
  /// +inf before the first evaluation that was not NaN.
  double best_loss() const { return best_loss_; }
  /// Which evaluation was the best, counted from 1; 0: none.
  Index best_evaluation() const { return best_evaluation_; }
  Index evaluations() const { return evaluations_; }

 private:
  EarlyStoppingOptions options_;
  Model best_model_;
  double best_loss_ = std::numeric_limits<double>::infinity();
  Index best_evaluation_ = 0;
  Index evaluations_ = 0;
};

}  // namespace heed
