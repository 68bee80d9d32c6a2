package condition

import (
	"regexp"
	"strings"
)

// volatile matches what differs in a text from one try to the next although nothing else does.
var volatile = regexp.MustCompile(strings.Join([]string{
	`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`, // a UUID
	`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:?\d\d)?`,                // a time
	`0x[0-9a-fA-F]+`,                      // an address
	`(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+\b`, // a duration
	`[0-9a-fA-F]{8,}(\.\d+)?`,             // an id in hexadecimal, if it has a digit, or a long number
	`\d+(\.\d+)?`,                         // any number: ports, counters, request ids
}, "|"))

// Same says whether two texts say the same but for numbers, times, addresses and ids, which differ from one try of the same thing to
// the next. [Set.HoldNumbers] keeps the first of two texts of failures that do.
func Same(a, b string) bool { return a == b || steady(a) == steady(b) }

// steady returns a text without what differs. Words of letters that happen to be hexadecimal digits stay.
func steady(text string) string {
	return volatile.ReplaceAllStringFunc(text, func(part string) string {
		if !strings.ContainsAny(part, "0123456789-") {
			return part
		}
		return "#"
	})
}

// longestMessage is what a person would read, far below what the API server would accept.
const longestMessage = 1024

// shorten cuts a message to so many bytes, and replaces what is not UTF-8, which would come back from the API server as something else.
func shorten(message string, most int) string {
	const cut = " ..."
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most-len(cut)], "") + cut
}
