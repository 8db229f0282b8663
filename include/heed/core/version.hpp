// SPDX-License-Identifier: MIT
#pragma once

#define HEED_VERSION_MAJOR 0
#define HEED_VERSION_MINOR 1
#define HEED_VERSION_PATCH 0
/// "0.1.0".
#define HEED_VERSION HEED_VERSION_OF(HEED_VERSION_MAJOR, HEED_VERSION_MINOR, HEED_VERSION_PATCH)
#define HEED_VERSION_OF(major, minor, patch) HEED_VERSION_TEXT(major, minor, patch)
#define HEED_VERSION_TEXT(major, minor, patch) #major "." #minor "." #patch
