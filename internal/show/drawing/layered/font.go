// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package layered

import (
	"unicode"

	"golang.org/x/text/width"
)

// The sizes of letters and the heights of lines, in points.
const (
	labelSize, labelHeight   = 13, 16
	detailSize, detailHeight = 11, 14
	smallSize, smallHeight   = 11, 14 // beside edges and in the corner of frames
	pillSize                 = 10
)

// helvetica holds the widths of the letters from space to tilde, in thousandths of the size of the
// letters. Arial and Liberation Sans have the same.
var helvetica = [...]int{
	278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, // space to /
	556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, // 0 to ?
	1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, // @ to O
	667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, // P to _
	333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, // ` to o
	556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584, // p to ~
}

// textWidth returns the width of a line in points, rounded up. It is rather too large for letters
// that it does not know.
func textWidth(text string, size int) int {
	thousandths := 0
	for _, r := range text {
		thousandths += runeWidth(r)
	}
	return (thousandths*size + 999) / 1000
}

func runeWidth(r rune) int {
	if i := int(r - ' '); i >= 0 && i < len(helvetica) {
		return helvetica[i]
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0 // it stands above or below the letter before it
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 1150 // emoji are wider than ideographs
	}
	if unicode.IsLower(r) {
		return 650
	}
	if unicode.IsSpace(r) {
		return 300
	}
	return 1000
}

// widest returns the width of the widest of lines.
func widest(lines []string, size int) int {
	w := 0
	for _, line := range lines {
		w = max(w, textWidth(line, size))
	}
	return w
}
