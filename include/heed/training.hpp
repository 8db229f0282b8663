// SPDX-License-Identifier: MIT
#pragma once

/// Losses, optimizers, schedules, batches, the loop that uses them, and what checks them.
#include <heed/training/adam.hpp>
#include <heed/training/batches.hpp>
#include <heed/training/checkpoint.hpp>
#include <heed/training/cross_entropy.hpp>
#include <heed/training/early_stopping.hpp>
#include <heed/training/gradient_check.hpp>
#include <heed/training/gradient_norm.hpp>
#include <heed/training/mean_squared_error.hpp>
#include <heed/training/optimizer_step.hpp>
#include <heed/training/schedule.hpp>
#include <heed/training/sgd.hpp>
#include <heed/training/train.hpp>
