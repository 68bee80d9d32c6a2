// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package layered lays a drawing out in layers and writes it as SVG.
//
// The layout is the one of Sugiyama, Tagawa and Toda, with frames: every edge leads from a layer to
// a later one, long edges bend on the layers between, the order within a layer avoids crossings,
// and what is in a frame stays together. Both the layers and the coordinates across them are found
// with the network simplex method, as in "A Technique for Drawing Directed Graphs" by Gansner,
// Koutsofios, North and Vo.
//
// Whatever is drawn, boxes do not overlap, a frame holds its nodes and no others, and an edge
// touches no node but its own two. Labels have as much room as they need in Helvetica, Arial or
// Liberation Sans; no font is read. The same drawing gives the same bytes.
//
// The package does nothing when it is initialized.
package layered
