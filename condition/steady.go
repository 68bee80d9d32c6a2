// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"regexp"
	"strings"
)

// volatile matches what differs in a text from one try to the next although nothing else does, and
// before that what looks like it but is a name. Of alternatives that match at the same place, the
// first counts.
var volatile = regexp.MustCompile(strings.Join([]string{
	`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`,      // a UUID
	`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:?\d\d)?`,                     // a time
	`(?P<name>\d{1,3}(\.\d{1,3}){3}\b|[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*-\d{1,4}\b)`, // an IP address, or the name of one of several: "db-1"
	`0x[0-9a-fA-F]+`,                      // an address in memory
	`(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+\b`, // a duration
	`[0-9a-fA-F]{8,}(\.\d+)?`,             // an id in hexadecimal, if it has a digit, or a long number
	`\d+(\.\d+)?`,                         // any number: ports, counters, request ids
}, "|"))

// nameGroup is the part of volatile that is not.
var nameGroup = volatile.SubexpIndex("name")

// Same says whether two texts say the same but for numbers, times, addresses in memory and ids,
// which differ from one try of the same thing to the next. IPv4 addresses, and names that end in a
// hyphen and a number ("db-1"), say what a text is about: they count. [Set.HoldNumbers] keeps the
// first of two texts of failures that say the same.
func Same(a, b string) bool { return a == b || steady(a) == steady(b) }

// steady returns a text without what differs. Words of letters that happen to be hexadecimal digits
// stay.
func steady(text string) string {
	var b strings.Builder
	rest := 0
	for _, at := range volatile.FindAllStringSubmatchIndex(text, -1) {
		from, to := at[0], at[1]
		b.WriteString(text[rest:from])
		rest = to
		if at[2*nameGroup] >= 0 || !strings.ContainsAny(text[from:to], "0123456789-") {
			b.WriteString(text[from:to])
			continue
		}
		b.WriteByte('#')
	}
	b.WriteString(text[rest:])
	return b.String()
}

// longestMessage is what a person would read, far below what the API server would accept.
const longestMessage = 1024

// shorten cuts a message to so many bytes, and replaces what is not UTF-8, which would come back
// from the API server as something else.
func shorten(message string, most int) string {
	const cut = " ..."
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most-len(cut)], "") + cut
}
