// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/random.hpp>
#include <heed/layers/parameters.hpp>

namespace heed {

/// Two tensors of 12 and 5 weights: the model of the goldens.
template <class T = double>
struct TinyModel {
  Tensor<T, 2> weight;
  Tensor<T, 1> bias;

  TinyModel() : weight(Extents<2>{3, 4}), bias(Extents<1>{5}) {}
  static auto members(auto& model) {
    return Members{member("weight", model.weight), member("bias", model.bias)};
  }
};

/// The 17 numbers of one row as a model.
template <class T>
TinyModel<T> tiny_model(const double* values) {
  TinyModel<T> model;
  for (T& value : model.weight) value = static_cast<T>(*values++);
  for (T& value : model.bias) value = static_cast<T>(*values++);
  return model;
}

template <class T>
TinyModel<T> random_tiny_model(Random& random) {
  double values[17];
  for (double& value : values) value = random.normal();
  return tiny_model<T>(values);
}

/// A layer with a backward of its own: (x W + b)², element by element.
struct TinyLayer {
  Tensor<double, 2> weight;
  Tensor<double, 1> bias;
  struct Saved {
    Tensor<double, 2> input;
  };

  TinyLayer() : weight(Extents<2>{2, 3}), bias(Extents<1>{3}) {}
  static auto members(auto& layer) {
    return Members{member("weight", layer.weight), member("bias", layer.bias)};
  }
  /// (rows, 2) to (rows, 3)
  Tensor<double, 2> forward(const Tensor<double, 2>& input, Saved& saved) const {
    saved.input = input;
    Tensor<double, 2> out = linear(input);
    for (double& value : out) value *= value;
    return out;
  }
  Tensor<double, 2> backward(const Tensor<double, 2>& grad_out, const Saved& saved,
                             TinyLayer& gradients) const {
    Tensor<double, 2> grad_linear = linear(saved.input);
    for (Index i = 0; i < grad_linear.size(); ++i) {
      grad_linear.data()[i] *= 2 * grad_out.data()[i];
    }
    Tensor<double, 2> grad_input(saved.input.extents());
    for (Index row = 0; row < grad_input.extent(0); ++row) {
      for (Index to = 0; to < 3; ++to) {
        gradients.bias(to) += grad_linear(row, to);
        for (Index from = 0; from < 2; ++from) {
          gradients.weight(from, to) += saved.input(row, from) * grad_linear(row, to);
          grad_input(row, from) += weight(from, to) * grad_linear(row, to);
        }
      }
    }
    return grad_input;
  }

 private:
  Tensor<double, 2> linear(const Tensor<double, 2>& input) const {
    Tensor<double, 2> out({input.extent(0), 3});
    for (Index row = 0; row < out.extent(0); ++row) {
      for (Index to = 0; to < 3; ++to) {
        out(row, to) = bias(to);
        for (Index from = 0; from < 2; ++from) out(row, to) += input(row, from) * weight(from, to);
      }
    }
    return out;
  }
};

}  // namespace heed
