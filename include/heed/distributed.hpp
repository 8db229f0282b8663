// SPDX-License-Identifier: MIT
#pragma once

/// Beyond one machine: the same bits from several processes, over MPI. Opt-in, with the target
/// heed::mpi; docs/11.
#include <heed/distributed/agreement.hpp>
#include <heed/distributed/attention_by_heads.hpp>
#include <heed/distributed/communicator.hpp>
#include <heed/distributed/reshard.hpp>
#include <heed/distributed/ring_schedule.hpp>
#include <heed/distributed/sharded_attention.hpp>
#include <heed/distributed/sharded_backward.hpp>
#include <heed/distributed/sharded_cache.hpp>
#include <heed/distributed/sharded_training.hpp>
#include <heed/distributed/tensor_parallel.hpp>
#include <heed/distributed/token_shards.hpp>
