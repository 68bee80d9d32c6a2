// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package failure

// Unavailable is for the tests.
var Unavailable = unavailable
