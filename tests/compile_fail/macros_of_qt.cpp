// SPDX-License-Identifier: MIT
// Qt takes these words from programs, unless QT_NO_KEYWORDS is defined.
#define signals public
#define slots
#define emit
#define foreach(variable, container) for (variable : container)
#define forever for (;;)

#include <heed/heed.hpp>
#include <heed/ostream.hpp>
#include <heed/pretrained.hpp>
#include <heed/text.hpp>
