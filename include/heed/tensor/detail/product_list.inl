// SPDX-License-Identifier: MIT
#pragma once

#include <heed/core/index.hpp>
#include <heed/core/parallel.hpp>
#include <heed/tensor/detail/product_cut.hpp>
#include <heed/tensor/detail/product_problem.hpp>
#include <heed/tensor/detail/product_work.hpp>

namespace heed::detail {

/// Products that are computed together: threads are woken once, for the pieces of all.
template <class T>
class ProductList {
 public:
  /// The problem must outlive the list.
  void add(const ProductProblem<T>& problem) {
    problems_[count_++] = &problem;
    work_.add(problem.rows, problem.columns, problem.depth);
  }
  Index count() const { return count_; }
  const ProductProblem<T>& operator[](Index index) const { return *problems_[index]; }

  /// Calls run(problem, piece) for all pieces, on the pool's threads where these are worth waking.
  template <class Run>
  void for_each_piece(const Run& run) const {
    if (work_.parallel()) return share_pieces(run);
    for (Index i = 0; i < count_; ++i) {
      const ProductCut cut((*this)[i].rows, (*this)[i].columns, 1);
      for (Index piece = 0; piece < cut.count(); ++piece) run((*this)[i], cut.piece(piece));
    }
  }

 private:
  template <class Run>
  void share_pieces(const Run& run) const {
    ProductCut cuts[most_products];
    for (Index i = 0; i < count_; ++i) {
      cuts[i] = ProductCut((*this)[i].rows, (*this)[i].columns, work_.pieces());
    }
    if (work_.is_small()) return share_evenly(cuts, run);
    Index pieces = 0;
    for (Index i = 0; i < count_; ++i) pieces += cuts[i].count();
    parallel_for(pieces, [&](Index piece) {
      Index i = 0;
      for (; piece >= cuts[i].count(); ++i) piece -= cuts[i].count();
      run((*this)[i], cuts[i].piece(piece));
    });
  }
  /// A part of every product to each thread, the same ones in every call: weights stay in the
  /// caches of the threads that read them. Handing out pieces one by one would take too long.
  template <class Run>
  void share_evenly(const ProductCut* cuts, const Run& run) const {
    const Index threads = thread_count();
    parallel_for(threads, [&](Index thread) {
      for (Index i = 0; i < count_; ++i) {
        const Index first = i % 2 == 0 ? thread : threads - 1 - thread;  // the last have least
        for (Index at = first; at < cuts[i].count(); at += threads) {
          run((*this)[i], cuts[i].piece(at));
        }
      }
    });
  }

  const ProductProblem<T>* problems_[most_products];
  Index count_ = 0;
  ProductWork work_;
};

}  // namespace heed::detail
