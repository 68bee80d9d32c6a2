// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install

import "context"

const (
	RevisionAnnotation = revisionAnnotation
	ServiceAnnotation  = serviceAnnotation
)

var SchemaOf = schemaOf

// Pass is what Start does again and again.
func (r *Rotator) Pass(ctx context.Context) error { return r.pass(ctx) }
