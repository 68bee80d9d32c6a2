// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import "regexp"

const momentPattern = `\d{4}-\d\d-\d\d(` +
	`T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)|` + // as objects have them
	` \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4} [A-Z]{3,4}( m=[+-]\d+\.\d+)?)` // as Go prints them

// Moment matches times, as objects have them or as Go prints them, and Moments times within a text.
var (
	Moment  = regexp.MustCompile(`^` + momentPattern + `$`)
	Moments = regexp.MustCompile(momentPattern)
)

// Timeless returns a value without what grows with each change: times, and generations that were
// seen.
func Timeless(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, child := range v {
			if name != "observedGeneration" {
				out[name] = Timeless(child)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = Timeless(child)
		}
		return out
	case string:
		if Moment.MatchString(v) {
			return "(time)"
		}
	}
	return value
}
