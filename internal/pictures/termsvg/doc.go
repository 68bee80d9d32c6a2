// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package termsvg draws the recording of a terminal as an SVG that plays by itself.
//
//	cast, err := termsvg.ReadCast(file)          // in the format of asciinema, version 2
//	err = termsvg.SVG(out, cast, "make demo")
//
// The picture contains no script: the frames stand side by side, and a CSS animation moves from one
// to the next. Where nothing is animated (a viewer without CSS, a reader who prefers less motion)
// the last frame is shown. The same recording gives the same bytes.
//
// What cannot be shown: characters that take two columns, and blinking.
package termsvg
