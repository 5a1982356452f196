// SPDX-License-Identifier: Apache-2.0
// What the shared library shows: declarations marked CASTOR_API; everything else is hidden.
#pragma once

#ifndef CASTOR_API
#define CASTOR_API __attribute__((visibility("default")))
#endif
