// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package drawing

// A Tone is what a node means beyond its shape. Each has colors that people with any kind of color
// vision can distinguish from its neighbors', and no reader has to: the builder of a picture says
// the same in words or with a symbol.
type Tone int

const (
	// Plain says nothing.
	Plain Tone = iota
	// Faded is for what did not run.
	Faded
	// Active is for what is running.
	Active
	// Good is for what went well.
	Good
	// Again is for what asked for a requeue.
	Again
	// Waiting is for what waits for something outside.
	Waiting
	// Blocked is for what is blocked by something else in the picture.
	Blocked
	// Bad is for what failed.
	Bad

	toneCount
)

// Colors are how a tone looks on one background.
type Colors struct {
	Fill, Line, Text string
}

// A Look is how a tone looks.
type Look struct {
	// Class names the tone in CSS and Mermaid.
	Class string
	// Light is for a light background, Dark for a dark one.
	Light, Dark Colors
	Dashed      bool
	Bold        bool
}

// Look returns how t looks; an unknown tone looks plain.
func (t Tone) Look() Look {
	if t < 0 || t >= toneCount {
		return looks[Plain]
	}
	return looks[t]
}

// Looks returns the looks of all tones in a fixed order.
func Looks() []Look { return append([]Look(nil), looks[:]...) }

// LineColor is legible on a light and on a dark background alike: for what has no background of its
// own.
const LineColor = "#768390"

var looks = [toneCount]Look{
	Plain:   {Class: "plain", Light: Colors{"#ffffff", "#57606a", "#1f2328"}, Dark: Colors{"#21262d", "#8b949e", "#e6edf3"}},
	Faded:   {Class: "faded", Light: Colors{"#f6f8fa", "#7d8590", "#59636e"}, Dark: Colors{"#161b22", "#6e7681", "#9198a1"}, Dashed: true},
	Active:  {Class: "active", Light: Colors{"#ddf0ff", "#0a63c9", "#0a3069"}, Dark: Colors{"#0b2a52", "#58a6ff", "#cae8ff"}, Bold: true},
	Good:    {Class: "good", Light: Colors{"#dcf5ec", "#007a5e", "#003d2f"}, Dark: Colors{"#04352a", "#2dba94", "#c4f3e4"}},
	Again:   {Class: "again", Light: Colors{"#f1eafb", "#7a4fb5", "#3b1e66"}, Dark: Colors{"#2d1a4d", "#b58cf0", "#eadcff"}},
	Waiting: {Class: "waiting", Light: Colors{"#fff3d1", "#a86f00", "#4a3200"}, Dark: Colors{"#3a2a00", "#e3a72f", "#ffe7b0"}},
	Blocked: {Class: "blocked", Light: Colors{"#eeeae4", "#75664f", "#3d3425"}, Dark: Colors{"#2a261f", "#a8977d", "#e8dfd0"}, Dashed: true},
	Bad:     {Class: "bad", Light: Colors{"#ffe4da", "#c23b06", "#571a00"}, Dark: Colors{"#4a1600", "#ff8a5c", "#ffd9c9"}, Bold: true},
}
