// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/cluster/private"
)

// operatorEnded returns the error that describes the end of the operator: a panic by its message
// and the place in the operator's code, any other end by the last lines of the log. Stacks are only
// in the log file.
func (r *runner) operatorEnded() error {
	<-r.operator.ended
	err := fmt.Errorf("%w: %s after %s", ErrOperatorEnded, r.operator.howItEnded(), age(time.Since(r.start)))
	lines := r.operator.log.last()
	if len(lines) == 0 {
		return fmt.Errorf("%w; it logged nothing", err)
	}
	if p, ok := panicIn(lines, r.project.ModuleDir); ok {
		return fmt.Errorf("%w: it panicked: %s%s", err, p, r.whereTheLogIs(lines))
	}
	if r.Logs {
		return err
	}
	shown, omitted := withoutStacks(lines)
	where := ""
	if omitted || len(shown) > tailLines {
		where = r.whereTheLogIs(lines)
	}
	shown = shown[max(0, len(shown)-tailLines):]
	if kinds := undefined(lines); len(kinds) > 0 {
		where += fmt.Sprintf("\n    the API server does not have %s: if the operator watches it, give the file of its definition to --crds, besides those of the operator itself", strings.Join(kinds, ", "))
	}
	return fmt.Errorf("%w; its last lines:\n    %s%s", err, strings.Join(shown, "\n    "), where)
}

// noKind matches what controller-runtime says of a kind that the API server does not have, as
// text and in JSON.
var noKind = regexp.MustCompile(`no matches for kind \\*"([^"\\]+)\\*" in version \\*"([^"\\]+)\\*"`)

// undefined returns the kinds of which a log says that the API server does not have them.
func undefined(lines []string) []string {
	var kinds []string
	for _, line := range lines {
		for _, found := range noKind.FindAllStringSubmatch(line, -1) {
			kinds = append(kinds, found[1]+" of "+found[2])
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// whereTheLogIs says in which file the log is. Without --logs=FILE, it writes the last lines to a
// file.
func (r *runner) whereTheLogIs(lines []string) string {
	file := r.LogFile
	if file == "" {
		file = r.program + ".log"
		if err := private.Write(file, []byte(strings.Join(lines, "\n")+"\n")); err != nil {
			return fmt.Sprintf("\n    its log could not be written: %v; --logs=FILE writes it to another place", err)
		}
	}
	return "\n    its log is in " + file
}
