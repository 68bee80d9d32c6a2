// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package drawing is a picture before it is drawn: nodes, edges and clusters with a meaning instead
// of a look.
//
// What a workflow or a document of the language looks like is decided by the packages that build a
// [Graph]. What a [Shape] and a [Tone] look like is decided here, once for every format: [DOT] and
// [Mermaid] in this package, and SVG in package layered below it, which has to know where
// everything is.
//
// Every function here is deterministic: nodes, edges and clusters appear in the order in which they
// were added.
package drawing
