// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package failure

// IsUnavailable is for the tests.
var IsUnavailable = unavailable
