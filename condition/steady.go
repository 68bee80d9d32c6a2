package condition

import (
	"regexp"
	"strings"
)

// volatile matches what differs in a text from one try to the next although nothing else does.
var volatile = regexp.MustCompile(strings.Join([]string{
	`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`, // a UUID
	`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[-+]\d\d:?\d\d)?`,                // a time
	`0x[0-9a-fA-F]+`, // an address
	`\b[0-9a-fA-F]*\d[0-9a-fA-F]*[a-fA-F][0-9a-fA-F]{6,}\b`, // an id in hexadecimal
	`\d+(\.\d+)?`, // any number: ports, durations, counters, request ids
}, "|"))

// Same says whether two texts say the same but for numbers, times, addresses and ids, which differ from one try of the same thing to
// the next. A condition that has one of them keeps it rather than take the other.
func Same(a, b string) bool {
	return a == b || volatile.ReplaceAllString(a, "#") == volatile.ReplaceAllString(b, "#")
}

// shorten cuts a message that the API server would refuse, and one that nobody would read.
func shorten(message string) string {
	const most = 1024
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most], "") + " ..."
}
