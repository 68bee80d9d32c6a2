// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

// Expire makes everything before a resource version unknown.
func (s *Server) Expire(resourceVersion uint64) { s.expire(resourceVersion) }
