// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

// panicIn finds the panic that ended a Go program in the last lines of its log. The description has
// the runtime's message and the innermost place in the module in moduleDir.
func panicIn(lines []string, moduleDir string) (description string, ok bool) {
	begin := -1
	for i, text := range lines {
		if startsPanic(text) {
			begin = i
		}
	}
	if begin < 0 {
		return "", false
	}
	_, message, _ := strings.Cut(lines[begin], ": ")
	stack := lines[begin+1:]
	for len(stack) > 0 && !strings.HasPrefix(stack[0], "goroutine ") { // the message may have several lines
		stack = stack[1:]
	}
	description = oneLine(message)
	if len(stack) == 0 {
		return description, true
	}
	var frames []stackFrame
	for _, f := range framesOf(stack[1:]) {
		if frames = append(frames, f); f.isPanic() { // above are frames of the runtime, or of a deferred call
			frames = nil
		}
	}
	if f, ok := ownFrame(frames, moduleDir); ok {
		description += "\n    in " + f.String()
	}
	return description, true
}

// startsPanic reports whether a line is the first that the runtime writes when a program panics.
func startsPanic(text string) bool {
	return strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")
}

// A stackFrame is a function and a place in it.
type stackFrame struct{ function, place string }

func (f stackFrame) String() string { return f.function + ", " + f.place }

// isPanic reports whether the frame is that of the panic itself.
func (f stackFrame) isPanic() bool { return panicking.MatchString(f.function) }

var panicking = regexp.MustCompile(`^(panic|runtime\.(gopanic|goPanic\w*|panic\w*|sigpanic\w*))$`)

var (
	placeLine    = regexp.MustCompile(`^\t(\S.*\.(?:go|s):\d+)(?: \+0x[0-9a-f]+)?$`)
	functionName = regexp.MustCompile(`^[\w./~%@*()\[\]-]+$`)
)

// functionIn returns the function of the first line of a frame, without its arguments.
func functionIn(text string) (string, bool) {
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "created by "), " in goroutine ")
	for i, depth := len(text)-1, 0; i >= 0 && strings.HasSuffix(text, ")"); i-- {
		switch text[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return text[:i], functionName.MatchString(text[:i])
			}
		}
	}
	return text, functionName.MatchString(text)
}

// framesOf reads the frames of one goroutine, the innermost first.
func framesOf(lines []string) []stackFrame {
	var frames []stackFrame
	for i := 0; i+1 < len(lines) && lines[i] != ""; i++ {
		place := placeLine.FindStringSubmatch(lines[i+1])
		if place == nil {
			continue
		}
		function, _ := functionIn(lines[i])
		frames = append(frames, stackFrame{oneLine(function), oneLine(place[1])})
		i++
	}
	return frames
}

// ownFrame returns the innermost frame in the module; else the innermost outside of the standard
// library and downloaded modules; else the innermost.
func ownFrame(frames []stackFrame, moduleDir string) (stackFrame, bool) {
	for _, own := range []func(stackFrame) bool{
		func(f stackFrame) bool { return strings.HasPrefix(f.place, moduleDir+string(filepath.Separator)) },
		func(f stackFrame) bool {
			return !strings.Contains(f.place, "/pkg/mod/") && !strings.Contains(f.place, "@v") && strings.Contains(strings.SplitN(f.function, "/", 2)[0], ".")
		},
		func(stackFrame) bool { return true },
	} {
		for _, f := range frames {
			if own(f) {
				return f, true
			}
		}
	}
	return stackFrame{}, false
}

// stackField is the stack in a line of JSON, as zap writes it.
var stackField = regexp.MustCompile(`,?"(?:stacktrace|stack)":"(?:[^"\\]|\\.)*"`)

// withoutStacks returns lines of a log without stacks, and whether there were any.
func withoutStacks(lines []string) (rest []string, found bool) {
	for i := 0; i < len(lines); i++ {
		if i+1 < len(lines) && placeLine.MatchString(lines[i+1]) {
			if _, ok := functionIn(lines[i]); ok {
				found = true
				i++
				continue
			}
		}
		text := stackField.ReplaceAllString(lines[i], "")
		found = found || text != lines[i]
		rest = append(rest, loggedLine(text))
	}
	return rest, found
}

// loggedLine makes a line of the operator's log safe to show: it keeps the colors, and escapes
// other control characters as Go does.
func loggedLine(text string) string {
	var b strings.Builder
	last := 0
	for _, at := range escapes.FindAllStringIndex(text, -1) {
		b.WriteString(logged(text[last:at[0]]))
		b.WriteString(text[at[0]:at[1]])
		last = at[1]
	}
	b.WriteString(logged(text[last:]))
	if last > 0 {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// logged escapes characters that would control the terminal.
func logged(text string) string {
	return printable.Line(strings.ReplaceAll(strings.TrimSuffix(text, "\r"), "\t", "    "))
}
