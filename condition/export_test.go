// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

// Similar is similar, for its own tests.
var Similar = similar
