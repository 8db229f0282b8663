// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

// heed calls MPI's C functions alone; its C++ ones are another library to link.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#if __has_include(<mpi.h>)
#include <mpi.h>
#else
#error "heed/distributed.hpp needs MPI, not found: install libopenmpi-dev, compile with mpicxx"
#include <libopenmpi-dev>  // stops the compiler here
#endif

#include <heed/core/detail/exceptions.hpp>
#include <heed/core/detail/shared.hpp>
#include <heed/core/error.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/core/index.hpp>
#include <heed/tensor/copy.hpp>
#include <heed/tensor/layout.hpp>
#include <heed/tensor/tensor.hpp>
#include <heed/tensor/view_of.hpp>

namespace heed {

/// Communication that failed. The message names the MPI function, the other rank where there is
/// one, and the fault.
class CommunicationError : public detail::ErrorAs<std::runtime_error> {
 public:
  using ErrorAs::ErrorAs;
};

namespace detail {

/// Throws CommunicationError unless an MPI function returned success; `parts` say what was done.
template <class... Parts>
void check_mpi(int code, const Parts&... parts) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  raise(CommunicationError(message(parts..., ": ", static_cast<const char*>(text))));
}

/// The type of elements that are moved and never computed with: only their size counts.
template <class T>
MPI_Datatype datatype_of() {
  static_assert(std::is_trivially_copyable_v<T>, "ranks exchange plain values (float, Index, …)");
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8,
                "ranks exchange values of 1, 2, 4 or 8 bytes");
  if constexpr (sizeof(T) == 1) return MPI_BYTE;
  if constexpr (sizeof(T) == 2) return MPI_UINT16_T;
  if constexpr (sizeof(T) == 4) return MPI_UINT32_T;
  return MPI_UINT64_T;
}

/// A number as MPI takes it. Throws InvalidArgument for one that does not fit.
inline int mpi_int(Index value, const char* what) {
  if (value < 0 || value > std::numeric_limits<int>::max()) {
    throw_invalid_argument("communicator: ", what, " is ", value, ", expected 0 to 2147483647");
  }
  return static_cast<int>(value);
}

/// Numbers in several places of memory as one message from MPI_BOTTOM: counts[i] of types[i] at
/// places[i]. To be freed.
inline MPI_Datatype type_of_places(std::span<const int> counts, std::span<const MPI_Aint> places,
                                   std::span<const MPI_Datatype> types) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  check_mpi(MPI_Type_create_struct(
                mpi_int(static_cast<Index>(counts.size()), "the number of parts of a message"),
                counts.data(), places.data(), types.data(), &type),
            "MPI_Type_create_struct");
  check_mpi(MPI_Type_commit(&type), "MPI_Type_commit");
  return type;
}

/// The numbers of views, where they lie, as one message from MPI_BOTTOM. To be freed.
template <class T>
MPI_Datatype type_of_views(std::span<const TensorView<const T, 4>> views) {
  std::vector<MPI_Datatype> parts;
  std::vector<MPI_Aint> places(views.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    check_mpi(MPI_Get_address(views[i].data_handle(), &places[i]), "MPI_Get_address");
    MPI_Datatype part = datatype_of<T>();
    for (std::size_t axis = 4; axis-- > 0;) {
      MPI_Datatype inner = part;
      check_mpi(MPI_Type_create_hvector(
                    mpi_int(views[i].extent(axis), "an extent of a message"), 1,
                    static_cast<MPI_Aint>(views[i].stride(axis) * static_cast<Index>(sizeof(T))),
                    inner, &part),
                "MPI_Type_create_hvector");
      if (axis < 3) MPI_Type_free(&inner);
    }
    parts.push_back(part);
  }
  const MPI_Datatype type = type_of_places(std::vector<int>(views.size(), 1), places, parts);
  for (MPI_Datatype& part : parts) MPI_Type_free(&part);
  return type;
}

/// A view in row-major order: in place, or a copy of one that is not.
template <class T, std::size_t Rank>
class PackedView {
 public:
  explicit PackedView(const TensorView<T, Rank>& view) : view_(view) {
    if (is_row_major(view)) return;
    copy_ = Tensor<std::remove_const_t<T>, Rank>::copy_of(view);
    view_ = copy_.view();
  }
  T* data() const { return view_.data_handle(); }
  /// Copies what was received back, if there is a copy.
  void write_to(const TensorView<T, Rank>& view) const {
    if (!copy_.empty()) heed::copy(copy_, view);
  }

 private:
  TensorView<T, Rank> view_;
  Tensor<std::remove_const_t<T>, Rank> copy_;
};

}  // namespace detail

/// The processes that compute together, each with its number: 0 ≤ rank < size. A value: copies
/// share one MPI communicator, which the last copy frees. MPI errors in it are CommunicationErrors
/// instead of the end of the program. Views are of any strides, with values of 1, 2, 4 or 8 bytes
/// that are all moved as they are. Calls block until the view may be used again, and all ranks make
/// the collective ones (split, broadcast, all_gather, barrier) in the same order. One thread of a
/// process communicates.
class Communicator {
 public:
  /// The ranks of `ranks`, in a communicator of its own. Collective.
  explicit Communicator(MPI_Comm ranks) {
    MPI_Comm own = MPI_COMM_NULL;
    detail::check_mpi(MPI_Comm_dup(ranks, &own), "MPI_Comm_dup");
    take(own);
  }

  Index rank() const { return rank_; }
  Index size() const { return size_; }
  /// MPI's handle, for what this class does not have.
  MPI_Comm handle() const { return owned_->handle; }
  /// Another handle of the same ranks, for the messages inside collective calls of the library:
  /// whatever tags the program uses, its own messages never meet these.
  MPI_Comm inner_handle() const { return owned_->inner; }
  /// The bytes that this rank has sent over all copies, those of broadcast and all_gather left out.
  std::uint64_t bytes_sent() const { return owned_->sent; }

  /// The ranks that give the same color, ordered by `key`, both 0 or more, then by their old ranks:
  /// rows and columns of a grid of ranks, for two axes of parallelism. Collective.
  Communicator split(Index color, Index key = 0) const {
    MPI_Comm own = MPI_COMM_NULL;
    detail::check_mpi(MPI_Comm_split(handle(), detail::mpi_int(color, "a color"),
                                     detail::mpi_int(key, "a key"), &own),
                      "MPI_Comm_split");
    Communicator part;
    part.take(own);
    return part;
  }

  /// Sends the values to a rank, which receives as many with the same tag, 0 to 32767.
  template <Viewable X>
  void send(const X& values, Index to, Index tag = 0) const {
    const auto view = view_of(values);
    const detail::PackedView packed(view);
    using T = ValueOf<const X>;
    detail::check_mpi(
        MPI_Send(packed.data(), count_of(view), detail::datatype_of<T>(),
                 detail::mpi_int(to, "a rank"), detail::mpi_int(tag, "a tag"), handle()),
        "MPI_Send to rank ", to);
    count_sent(view.size() * static_cast<Index>(sizeof(T)));
  }
  /// Receives the values that a rank sends. Throws CommunicationError for another number of them.
  template <Viewable X>
  void receive(X&& values, Index from, Index tag = 0) const {
    const auto view = view_of(values);
    const detail::PackedView packed(view);
    const auto type = detail::datatype_of<ValueOf<X>>();
    MPI_Status status;
    detail::check_mpi(MPI_Recv(packed.data(), count_of(view), type, detail::mpi_int(from, "a rank"),
                               detail::mpi_int(tag, "a tag"), handle(), &status),
                      "MPI_Recv from rank ", from);
    int count = 0;
    MPI_Get_count(&status, type, &count);
    if (count != view.size()) {
      detail::raise(CommunicationError(detail::message("receive: rank ", from, " sent ", count,
                                                       " values, expected ", view.size())));
    }
    packed.write_to(view);
  }
  /// Sends the values of rank `root` to all others; views are equally large everywhere. Collective.
  template <Viewable X>
  void broadcast(X&& values, Index root) const {
    const auto view = view_of(values);
    const detail::PackedView packed(view);
    detail::check_mpi(MPI_Bcast(packed.data(), count_of(view), detail::datatype_of<ValueOf<X>>(),
                                detail::mpi_int(root, "a rank"), handle()),
                      "MPI_Bcast from rank ", root);
    if (rank_ != root) packed.write_to(view);
  }
  /// Gathers the values of all ranks on all ranks: `all` is (size, …) over the extents of `mine`,
  /// which are equal everywhere. Collective. Throws ShapeError if the two do not fit.
  template <Viewable X, Viewable All>
  void all_gather(const X& mine, All&& all) const {
    const auto view = view_of(mine);
    const auto to = view_of(all);
    using T = ValueOf<const X>;
    static_assert(std::is_same_v<T, ValueOf<All>>, "all_gather: scalar types differ");
    static_assert(to.rank() == view.rank() + 1, "all_gather: `all` has one axis more, the ranks");
    bool fits = to.extent(0) == size_;
    for (std::size_t axis = 0; axis < view.rank(); ++axis) {
      fits = fits && to.extent(axis + 1) == view.extent(axis);
    }
    if (!fits) {
      throw_shape_error("all_gather: ", view.extents(), " of ", size_, " ranks into ",
                        to.extents());
    }
    const detail::PackedView packed(view);
    const detail::PackedView packed_all(to);
    detail::check_mpi(
        MPI_Allgather(packed.data(), count_of(view), detail::datatype_of<T>(), packed_all.data(),
                      count_of(view), detail::datatype_of<T>(), handle()),
        "MPI_Allgather");
    packed_all.write_to(to);
  }
  /// Returns when all ranks have called it. Collective.
  void barrier() const { detail::check_mpi(MPI_Barrier(handle()), "MPI_Barrier"); }

  /// Adds to bytes_sent what was sent through `handle` or `inner_handle`.
  void count_sent(Index bytes) const { owned_->sent += static_cast<std::uint64_t>(bytes); }

 private:
  struct Owned {
    explicit Owned(MPI_Comm ranks) : handle(ranks) {}  // owns it, and `inner` where it is made
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() {
      int ended = 0;
      if (MPI_Finalized(&ended) != MPI_SUCCESS || ended != 0) return;
      if (inner != MPI_COMM_NULL) MPI_Comm_free(&inner);
      MPI_Comm_free(&handle);
    }
    MPI_Comm handle;
    mutable MPI_Comm inner = MPI_COMM_NULL;
    mutable std::uint64_t sent = 0;
  };

  Communicator() = default;

  void take(MPI_Comm own) {
    owned_ = detail::Shared<Owned>(new Owned(own));
    MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
    detail::check_mpi(MPI_Comm_dup(own, &owned_->inner), "MPI_Comm_dup");  // errors return here too
    int rank = 0, size = 0;
    detail::check_mpi(MPI_Comm_rank(own, &rank), "MPI_Comm_rank");
    detail::check_mpi(MPI_Comm_size(own, &size), "MPI_Comm_size");
    rank_ = rank;
    size_ = size;
  }

  template <class View>
  static int count_of(const View& view) {
    return detail::mpi_int(view.size(), "the number of values of a message");
  }

  detail::Shared<Owned> owned_;
  Index rank_ = 0;
  Index size_ = 1;
};

namespace detail {

/// Consecutive numbers in memory.
struct NumberRun {
  std::byte* at = nullptr;
  Index count = 0, bytes_of_one = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;

  template <class T>
  static NumberRun of(T* values, Index count) {
    auto* const at = const_cast<std::remove_const_t<T>*>(values);
    return {reinterpret_cast<std::byte*>(at), count, static_cast<Index>(sizeof(T)),
            datatype_of<T>()};
  }
};
using NumberRuns = std::vector<NumberRun>;

/// Sends the numbers sent[r] to each rank r, which receives them in its received[this rank].
/// Collective. MPI counts with an int: a longer run is sent in parts of `most` numbers.
inline void exchange(const Communicator& ranks, const std::vector<NumberRuns>& sent,
                     const std::vector<NumberRuns>& received, Index most = 1 << 30) {
  std::vector<MPI_Request> requests;
  const auto start = [&](const NumberRuns& runs, const auto& begin) {
    std::vector<int> counts;
    std::vector<MPI_Aint> places;
    std::vector<MPI_Datatype> types;
    for (const NumberRun& run : runs) {
      for (Index first = 0; first < run.count; first += most) {
        counts.push_back(static_cast<int>(smaller(run.count - first, most)));
        check_mpi(MPI_Get_address(run.at + first * run.bytes_of_one, &places.emplace_back()),
                  "MPI_Get_address");
        types.push_back(run.type);
      }
    }
    if (counts.empty()) return;
    MPI_Datatype type = type_of_places(counts, places, types);
    begin(type, &requests.emplace_back(MPI_REQUEST_NULL));
    MPI_Type_free(&type);  // MPI keeps it for as long as it needs it
  };
  for (int rank = 0; rank < ranks.size(); ++rank) {
    start(received[static_cast<std::size_t>(rank)], [&](MPI_Datatype type, MPI_Request* request) {
      check_mpi(MPI_Irecv(MPI_BOTTOM, 1, type, rank, 0, ranks.inner_handle(), request),
                "MPI_Irecv from rank ", rank);
    });
  }
  for (int rank = 0; rank < ranks.size(); ++rank) {
    start(sent[static_cast<std::size_t>(rank)], [&](MPI_Datatype type, MPI_Request* request) {
      check_mpi(MPI_Isend(MPI_BOTTOM, 1, type, rank, 0, ranks.inner_handle(), request),
                "MPI_Isend to rank ", rank);
      MPI_Count bytes = 0;
      MPI_Type_size_x(type, &bytes);
      if (rank != ranks.rank()) ranks.count_sent(static_cast<Index>(bytes));
    });
  }
  check_mpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
            "MPI_Waitall");
}

/// Ends the job: every rank, at once.
[[noreturn]] inline void end_ranks(const Communicator& world, const char* text) {
  std::fprintf(stderr, "rank %lld of %lld: %s\n", static_cast<long long>(world.rank()),
               static_cast<long long>(world.size()), text);
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();  // MPI_Abort may return, says the standard
}

}  // namespace detail

/// A program of ranks: MPI_Init, `body` with all ranks, MPI_Finalize; returns what `body` returns.
/// An exception in any rank ends all of them: the others may be waiting for it. stderr then tells
/// its rank and message, and the status is 1. MPI is left to the program where it has initialized
/// it.
inline int run_ranks(int argc, char** argv, FunctionRef<int(const Communicator&)> body) {
  int initialized = 0, given = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0) MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
  int status = 1;
  {
    const Communicator world(MPI_COMM_WORLD);
    status = detail::handled<std::exception>(
        [&] { return body(world); },
        [&](const std::exception& error) -> int { detail::end_ranks(world, error.what()); });
  }
  if (initialized == 0) MPI_Finalize();
  return status;
}

}  // namespace heed
