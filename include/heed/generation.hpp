// SPDX-License-Identifier: MIT
#pragma once

/// Generating tokens: samplers, stop conditions, sessions with caches, beam search.
#include <heed/generation/generate.hpp>
#include <heed/generation/sampler.hpp>
#include <heed/generation/session.hpp>
#include <heed/generation/translation_session.hpp>
