// SPDX-License-Identifier: MIT
#pragma once

/// Choosing and writing tokens: samplers, stop rules, sessions with caches, beam search.
#include <heed/generation/beam_search.hpp>
#include <heed/generation/generate.hpp>
#include <heed/generation/sampler.hpp>
#include <heed/generation/sampling_steps.hpp>
#include <heed/generation/session.hpp>
#include <heed/generation/session_options.hpp>
#include <heed/generation/stop_strings.hpp>
#include <heed/generation/translation_session.hpp>
