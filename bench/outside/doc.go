// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package outside is the external system of the operators of external resources that are measured.
//
// It speaks HTTP, so that an operator that is built without this package can be measured, too. A
// resource has the path of its name, and is a [Resource] in JSON:
//
//	GET /name      200 with the resource, or 404
//	POST /name     creates it: 200 with the resource, or 409 if it exists
//	PUT /name      replaces it: 200 with the resource, or 404
//	DELETE /name   200, or 404
//
// The system chooses the password. Each call takes the same time.
package outside
