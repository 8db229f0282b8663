// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/options.hpp>
#include <heed/core/config.hpp>
#include <heed/core/error.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/core/index.hpp>
#include <heed/core/owned_array.hpp>
#include <heed/core/random.hpp>
#include <heed/layers/parameters.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/training/optimizers.hpp>
#include <heed/training/schedule.hpp>

namespace heed {

/// Options of make_batches.
struct BatchOptions {
  Index batch_size = 32;
  bool shuffle = true;
  std::uint64_t seed = 0;
  /// Groups items of similar length to save padding: each window of this many batches of shuffled
  /// items is sorted by length before it is cut into batches. 0: no grouping.
  Index bucket_batches = 0;
};

/// The batches of one epoch, as indices into `lengths`, a list of any integers: every item is in
/// exactly one batch, and the last batch may be smaller. A pure function of its arguments, so that
/// an epoch and a batch number are a position in the data. Throws InvalidArgument for a batch_size
/// below 1 or bucket_batches below 0.
std::vector<std::vector<Index>> make_batches(const OwnedArray<Index>& lengths, Index epoch,
                                             const BatchOptions& options = {});

/// A batch of sequences, padded to the longest; the target of every token is the token after it.
struct TokenBatch {
  Tensor<Index, 2> tokens;     // (batch, length)
  Tensor<Index, 2> targets;    // (batch, length); `ignored` after the end of a sequence
  std::vector<Index> lengths;  // (batch): tokens that are not padding
};

/// The values after the end of a sequence.
struct PaddingTokens {
  Index padding = 0;
  Index ignored = -100;
};

/// A batch of the chosen sequences: a sequence of n + 1 tokens gives n tokens and n targets. Throws
/// InvalidArgument for an index without a sequence and for an empty sequence.
TokenBatch next_token_batch(std::span<const std::vector<Index>> sequences,
                            const OwnedArray<Index>& chosen, const PaddingTokens& pad = {});
/// The same with lists of any integers, or with the rows of a matrix, such as Tokens.
template <detail::ListsOf<Index> Sequences>
requires(!std::is_convertible_v<const Sequences&, std::span<const std::vector<Index>>>) TokenBatch
    next_token_batch(const Sequences& sequences, const OwnedArray<Index>& chosen,
                     const PaddingTokens& pad = {}) {
  std::vector<std::vector<Index>> same(detail::count_of_lists(sequences));  // the others stay empty
  for (const Index item : chosen) {
    if (item < 0 || item >= static_cast<Index>(same.size())) continue;  // refused below
    const OwnedArray<Index> list = detail::list_at(sequences, static_cast<std::size_t>(item));
    same[static_cast<std::size_t>(item)].assign(list.begin(), list.end());
  }
  return next_token_batch(std::span<const std::vector<Index>>(same), chosen, pad);
}

/// `count` windows of `length` tokens, with their targets, from random places of a text. Throws
/// InvalidArgument when the text has fewer than `length` + 1 tokens.
TokenBatch random_windows(std::span<const Index> text, Index count, Index length, Random& random);

namespace detail {

/// random_windows of `size` tokens, of which token(place) gives one.
TokenBatch draw_windows(std::size_t size, FunctionRef<Index(Index place)> token, Index count,
                        Index length, Random& random);

}  // namespace detail

/// The same of a list of any integers; only the tokens of the windows are read. Throws ShapeError
/// for a tensor of several rows, of which windows would reach from one to the next.
template <detail::ListOf<Index> Text>
requires(!detail::TextForList<Text> &&
         (!std::is_convertible_v<const Text&, std::span<const Index>> ||
          requires(const Text& text) { text.extents(); })) TokenBatch
    random_windows(const Text& text, Index count, Index length, Random& random) {
  detail::expect_list(text);
  const auto token = [&](Index place) { return detail::listed_value<Index>(text, place); };
  return detail::draw_windows(static_cast<std::size_t>(text.size()), token, count, length, random);
}

/// Options of EarlyStopping.
struct EarlyStoppingOptions {
  Index patience = 5;          // evaluations without improvement before training stops
  double min_improvement = 0;  // a loss must fall by more to count as improved
};

/// The state of EarlyStopping apart from its weights, as a checkpoint stores it.
struct EarlyStoppingState {
  double best_loss = std::numeric_limits<double>::infinity();
  Index best_evaluation = 0;
  Index evaluations = 0;
};

/// Watches a validation loss, keeps the weights of the best evaluation, and tells when to stop:
/// after `patience` evaluations without improvement.
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

  /// Records an evaluation; true when training should stop. A NaN is no improvement.
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

  /// The weights of the best evaluation; before the first one, those given to the constructor.
  const Model& best_model() const { return best_model_; }
  /// +inf before the first evaluation that was not NaN.
  double best_loss() const { return state_.best_loss; }
  /// Which evaluation was the best, counted from 1; 0: none.
  Index best_evaluation() const { return state_.best_evaluation; }
  Index evaluations() const { return state_.evaluations; }

  const EarlyStoppingState& state() const { return state_; }
  /// Continues from a loaded checkpoint.
  void set_state(const EarlyStoppingState& state) { state_ = state; }
  /// The weights that a checkpoint stores.
  static auto members(auto& stopping) {
    return Members{member("best_model", stopping.best_model_)};
  }

 private:
  EarlyStoppingOptions options_;
  Model best_model_;
  EarlyStoppingState state_;
};

/// The loss of a batch, and the number of tokens that it is the mean of.
struct BatchLoss {
  double loss = 0;
  Index tokens = 0;
};

/// What train reports after every step.
struct StepInfo {
  Index step = 0;  // counted from 0
  double loss = 0;
  double learning_rate = 0;
  double tokens_per_second = 0;  // of this step
  double gradient_norm = 0;      // before clipping
  bool taken = true;             // false: no weight has changed, see StepReport
  std::string refused_by = {};   // see StepReport
};

/// Options of train.
struct TrainOptions {
  Index steps = 1000;      // of the whole run, with those before first_step
  Index first_step = 0;    // after a checkpoint: the number of steps already taken
  Schedule schedule = {};  // the learning rate of every step; empty: the optimizer's own
  double max_gradient_norm = std::numeric_limits<double>::infinity();
  /// Batches per step. The gradients of each are computed alone and added in order, and the step
  /// takes their mean; the reported loss is the mean of theirs. More than one batch takes memory
  /// for a second set of gradients.
  Index accumulate = 1;
};

namespace detail {

/// Shuffles in place, after Fisher and Yates.
template <class T>
void shuffle(std::vector<T>& values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1],
              values[static_cast<std::size_t>(random.integer(static_cast<Index>(i)))]);
  }
}

/// Seconds of a clock that only goes forward. Not <chrono>: that is a tenth of what heed.hpp takes
/// to compile.
double seconds_now();

/// The loop of train: take_step(info) takes a step, fills in the rest of `info` and returns the
/// number of tokens.
template <class TakeStep, class OnStep>
Index train_steps(const TrainOptions& options, const TakeStep& take_step, const OnStep& on_step) {
  if (options.accumulate < 1 || options.steps < 0) {
    throw_invalid_argument("train: accumulate ", options.accumulate, ", expected 1 or more; steps ",
                           options.steps, ", expected 0 or more");
  }
  if (options.first_step < 0) {
    throw_invalid_argument("train: first_step ", options.first_step, ", expected 0 or more");
  }
  Index step = options.first_step;
  while (step < options.steps) {
    const double begin = seconds_now();
    StepInfo info{.step = step};
    if (options.schedule) info.learning_rate = options.schedule(step);
    const auto tokens = static_cast<double>(take_step(info));
    info.tokens_per_second = tokens / (seconds_now() - begin);
    ++step;
    if (!on_step(info)) break;
  }
  return step;
}

/// Adds the gradients of one batch.
template <class Model>
void add_gradients(Model& sum, const Model& gradients) {
  for_each_parameter([](std::string_view, auto& to, const auto& from) { to += from; }, sum,
                     gradients);
}

template <class Optimizer, class Model>
concept StepsModel = requires(Optimizer& optimizer, Model& model, const Model& gradients) {
  { optimizer.step(model, gradients, StepOptions{}) } -> std::convertible_to<StepReport>;
};

/// Lets the optimizer take a step with the sum of the gradients of all batches; `norm` as in
/// StepOptions.
template <class Model, class Optimizer>
void move_weights(Model& model, Optimizer& optimizer, const Model& gradients,
                  const TrainOptions& options, StepInfo& info,
                  const std::optional<GradientNorm>& norm = {}) {
  static_assert(StepsModel<Optimizer, Model>,
                "an optimizer of the program's own has a `heed::StepReport step(Model& model, "
                "const Model& gradients, const heed::StepOptions& options)`");
  std::optional<double> rate;
  if (options.schedule) rate = info.learning_rate;
  const StepReport report =
      optimizer.step(model, gradients,
                     {.learning_rate = rate,
                      .max_gradient_norm = options.max_gradient_norm,
                      .gradient_scale = 1 / static_cast<double>(options.accumulate),
                      .norm = norm});
  info.learning_rate = rate.value_or(report.learning_rate);
  info.gradient_norm = report.gradient_norm;
  info.taken = report.taken;
  info.refused_by = report.refused_by;
}

}  // namespace detail

/// A training loop. `compute(batch, gradients)` runs batch number `batch` forward and backward,
/// adds to `gradients`, which are 0, and returns a BatchLoss; batches count from 0, and step s has
/// those from s · accumulate on. `on_step(info)` is called after every step and may return false to
/// end the loop. Returns the number of steps of the whole run so far, with the `first_step` ones.
/// An optimizer of the program's own gets a rate only where there is a schedule, and otherwise
/// reports its own. Throws InvalidArgument for an accumulate below 1, and for steps or a first_step
/// below 0, and as the optimizer does. Short on purpose: copy it where it does not fit.
template <HasMembers Model, class Optimizer, class Compute, class OnStep = detail::Silent>
Index train(Model& model, Optimizer& optimizer, const TrainOptions& options, Compute&& compute,
            OnStep&& on_step = {}) {
  constexpr bool tells_loss = std::is_invocable_r_v<BatchLoss, Compute&, Index, Model&>;
  static_assert(tells_loss,
                "train: compute(heed::Index batch, Model& gradients) returns a heed::BatchLoss, "
                "{.loss = ..., .tokens = ...}");
  if constexpr (tells_loss) {
    Model gradients = zeros_like(model);
    std::optional<Model> others;  // of a batch that is not the first one of its step
    if (options.accumulate > 1) others = gradients;
    const auto take_step = [&](StepInfo& info) {
      Index tokens = 0;
      for (Index part = 0; part < options.accumulate; ++part) {
        Model& alone = part == 0 ? gradients : *others;
        set_zero(alone);
        const BatchLoss batch = compute(info.step * options.accumulate + part, alone);
        info.loss += batch.loss / static_cast<double>(options.accumulate);
        tokens += batch.tokens;
        if (part > 0) detail::add_gradients(gradients, alone);
      }
      detail::move_weights(model, optimizer, gradients, options, info);
      return tokens;
    };
    return detail::train_steps(
        options, take_step, [&](const StepInfo& info) { return detail::goes_on(on_step, info); });
  }
}

}  // namespace heed

#if HEED_DEFINITIONS
#include <heed/training/detail/train.inl>
#endif
