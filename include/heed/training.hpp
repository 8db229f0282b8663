// SPDX-License-Identifier: MIT
#pragma once

/// Losses, optimizers, learning rate schedules, batches, a training loop, checkpoints and gradient
/// checks.
#include <heed/training/checkpoint.hpp>
#include <heed/training/gradient_check.hpp>
#include <heed/training/losses.hpp>
#include <heed/training/optimizers.hpp>
#include <heed/training/schedule.hpp>
#include <heed/training/train.hpp>
