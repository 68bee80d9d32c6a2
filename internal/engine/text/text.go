// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package text shortens what an operator says of an object, in its conditions and events.
package text

import "strings"

// Longest is what a person would read, in bytes. The API server accepts no longer note of an event,
// and far longer messages of conditions.
const Longest = 1024

// Shorten cuts a text to at most so many bytes, and replaces what is not UTF-8: the API server
// would replace it, and the text would seem to change.
func Shorten(text string, most int) string {
	const cut = " ..."
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(cut)], "") + cut
}
